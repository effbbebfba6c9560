//! Stories of BroadcastJobs. Agents have no part in them.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::kruise::{BroadcastJob, BroadcastJobPhase};
use prewarm_sim::{Act, Cluster};
use serde_json::{Value, json};

use crate::Scenario;
use crate::scenarios::{PATIENCE, scenarios};

const SECOND: Duration = Duration::from_secs(1);

scenarios! { BROADCASTS:
    "a pod on every node", 3, [], on_every_node;
    "a pod that fails", 3, [], fails;
    "a pod that fails while others go on", 3, [], continues;
    "a pause for a failure", 3, [], pauses;
    "pods that take too long", 2, [], too_late;
    "a broadcast that goes by its TTL", 2, [], goes;
    "a node that stops fitting and fits again", 2, [], cordoned;
    "a broadcast that is deleted early", 2, [], deleted;
}

async fn on_every_node(cluster: &mut Cluster) {
    let player = cluster.play(Act::Succeeds(2 * SECOND));
    cluster.broadcast("sweep", json!({"parallelism": 2})).await;
    reaches(cluster, BroadcastJobPhase::Completed).await;
    assert!(player.most().0 <= 2 && player.most().1 == 1, "{:?}", player.most());
    assert!(player.pods_by_node().values().all(|pods| *pods == 1), "{:?}", player.pods_by_node());
}

async fn fails(cluster: &mut Cluster) {
    let player = cluster.play(Act::Hangs);
    player.act("node-1", Act::Fails(20 * SECOND));
    cluster.broadcast("sweep", json!({})).await;
    reaches(cluster, BroadcastJobPhase::Failed).await;
    gone(cluster, 1).await;
}

async fn continues(cluster: &mut Cluster) {
    let player = cluster.play(Act::Succeeds(SECOND));
    player.act("node-1", Act::Fails(SECOND));
    cluster.broadcast("sweep", json!({"parallelism": 1, "failurePolicy": {"type": "Continue"}})).await;
    reaches(cluster, BroadcastJobPhase::Completed).await;
    assert!(player.pods_by_node().values().all(|pods| *pods == 1), "{:?}", player.pods_by_node());
}

async fn pauses(cluster: &mut Cluster) {
    let player = cluster.play(Act::Succeeds(SECOND));
    player.act("node-1", Act::Fails(SECOND));
    cluster.broadcast("sweep", json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}})).await;
    cluster
        .broadcast_within(PATIENCE, "sweep", |job| {
            job.status.as_ref().is_some_and(|status| status.paused_failures == Some(1))
        })
        .await;
    edit(cluster, json!({"spec": {"paused": false}})).await;
    reaches(cluster, BroadcastJobPhase::Completed).await;
}

async fn too_late(cluster: &mut Cluster) {
    let _player = cluster.play(Act::Hangs);
    let policy = json!({"type": "Always", "activeDeadlineSeconds": 60});
    cluster.broadcast("sweep", json!({"completionPolicy": policy})).await;
    reaches(cluster, BroadcastJobPhase::Failed).await;
    gone(cluster, 0).await;
}

async fn goes(cluster: &mut Cluster) {
    let _player = cluster.play(Act::Succeeds(SECOND));
    let policy = json!({"type": "Always", "ttlSecondsAfterFinished": 20});
    cluster.broadcast("sweep", json!({"completionPolicy": policy})).await;
    let is_gone = async || cluster.broadcasts().get_opt("sweep").await.expect("the API").is_none();
    cluster.written_within(Duration::from_secs(PATIENCE), "the end of the job", is_gone).await;
}

async fn cordoned(cluster: &mut Cluster) {
    let _player = cluster.play(Act::Hangs);
    cluster.broadcast("sweep", json!({"completionPolicy": {"type": "Never"}})).await;
    active(cluster, 2).await;
    unschedulable(cluster, json!(true)).await;
    active(cluster, 1).await;
    gone(cluster, 1).await;
    unschedulable(cluster, Value::Null).await;
    active(cluster, 2).await;
    // Until the last of them runs.
    cluster.pass(2).await;
}

async fn deleted(cluster: &mut Cluster) {
    let _player = cluster.play(Act::Hangs);
    cluster.broadcast("sweep", json!({})).await;
    active(cluster, 2).await;
    cluster.broadcasts().delete("sweep", &DeleteParams::background()).await.expect("a job to delete");
    cluster.pass(10).await;
}

async fn reaches(cluster: &Cluster, phase: BroadcastJobPhase) {
    let has = |job: &BroadcastJob| job.status.as_ref().is_some_and(|status| status.phase == Some(phase));
    cluster.broadcast_within(PATIENCE, "sweep", has).await;
}

async fn active(cluster: &Cluster, count: i32) {
    let has = |job: &BroadcastJob| job.status.as_ref().is_some_and(|status| status.active == count);
    cluster.broadcast_within(PATIENCE, "sweep", has).await;
}

/// Waits until only so many pods are left.
async fn gone(cluster: &Cluster, left: usize) {
    let is_so = async || {
        cluster.pods().list(&kube::api::ListParams::default()).await.expect("pods").items.len() == left
    };
    cluster.written_within(Duration::from_secs(PATIENCE), "the end of pods", is_so).await;
}

async fn edit(cluster: &Cluster, patch: Value) {
    let patch = Patch::Merge(patch);
    cluster.broadcasts().patch("sweep", &PatchParams::default(), &patch).await.expect("a job to edit");
}

async fn unschedulable(cluster: &Cluster, value: Value) {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let patch = Patch::Merge(json!({"spec": {"unschedulable": value}}));
    nodes.patch("node-2", &PatchParams::default(), &patch).await.expect("a node to edit");
}
