//! Nodes that come, go, and change.

use kube::api::DeleteParams;
use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_sim::Act;
use serde_json::json;

use crate::support::{cluster, counters, counts, edit_node, pods, reaches};

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_gets_its_pod_at_once() {
    let (cluster, _player) = cluster(1).await;
    cluster.broadcast("sweep", json!({"completionPolicy": {"type": "Never"}})).await;
    counts(&cluster, "sweep", [1, 0, 1, 0]).await;
    cluster.make_node("node-2", json!({})).await;
    counts(&cluster, "sweep", [2, 0, 2, 0]).await;
}

/// kruise R115.
#[tokio::test(start_paused = true)]
async fn pods_leave_a_node_that_does_not_fit_any_more() {
    let (cluster, player) = cluster(2).await;
    player.act("node-2", Act::Hangs);
    cluster.broadcast("sweep", json!({"completionPolicy": {"type": "Never"}})).await;
    counts(&cluster, "sweep", [2, 1, 1, 0]).await;
    edit_node(&cluster, "node-2", json!({"spec": {"unschedulable": true}})).await;
    counts(&cluster, "sweep", [1, 0, 1, 0]).await;
    assert_eq!(pods(&cluster).await.len(), 1);
    edit_node(&cluster, "node-2", json!({"spec": {"unschedulable": null}})).await;
    counts(&cluster, "sweep", [2, 1, 1, 0]).await;
    assert_eq!(player.pods_by_node()["node-2"], 2);
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_stays_on_a_node_that_does_not_fit_any_more() {
    let (cluster, player) = cluster(2).await;
    cluster.broadcast("sweep", json!({"completionPolicy": {"type": "Never"}})).await;
    counts(&cluster, "sweep", [2, 0, 2, 0]).await;
    edit_node(&cluster, "node-2", json!({"spec": {"unschedulable": true}})).await;
    cluster.pass(10).await;
    edit_node(&cluster, "node-2", json!({"spec": {"unschedulable": null}})).await;
    cluster.pass(10).await;
    assert_eq!(player.pods_by_node()["node-2"], 1, "it did its work");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_deleted_takes_its_pod_along() {
    let (mut cluster, player) = cluster(2).await;
    player.act("node-2", Act::Hangs);
    cluster.broadcast("sweep", json!({})).await;
    counts(&cluster, "sweep", [2, 1, 1, 0]).await;
    cluster.delete_node("node-2").await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(counters(&job), [1, 0, 1, 0]);
    assert_eq!(pods(&cluster).await.len(), 1);
}

/// kruise T113, R114.
#[tokio::test(start_paused = true)]
async fn only_nodes_that_fit_are_desired() {
    let (cluster, _player) = cluster(3).await;
    edit_node(&cluster, "node-1", json!({"spec": {"unschedulable": true}})).await;
    edit_node(&cluster, "node-2", json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}))
        .await;
    cluster.broadcast("plain", json!({})).await;
    let tolerations = json!([{"key": "gpu", "operator": "Exists"}]);
    cluster.broadcast("tolerant", json!({"template": {"spec": {"tolerations": tolerations}}})).await;
    assert_eq!(counters(&reaches(&cluster, "plain", BroadcastJobPhase::Completed).await), [1, 0, 1, 0]);
    assert_eq!(counters(&reaches(&cluster, "tolerant", BroadcastJobPhase::Completed).await), [2, 0, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_deletes_is_made_again() {
    let (cluster, player) = cluster(1).await;
    player.act("node-1", Act::Hangs);
    cluster.broadcast("sweep", json!({})).await;
    counts(&cluster, "sweep", [1, 1, 0, 0]).await;
    let name = pods(&cluster).await[0].metadata.name.clone().unwrap();
    cluster.pods().delete(&name, &DeleteParams::default()).await.unwrap();
    cluster.pass(5).await;
    assert_eq!(player.pods_by_node()["node-1"], 2);
}
