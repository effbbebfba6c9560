//! Jobs that are paused, by hand or by their failure policy.

use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_sim::Act;
use serde_json::json;

use crate::support::{SECOND, cluster, counters, counts, edit, reaches, reasons};

/// kruise T119, R116.
#[tokio::test(start_paused = true)]
async fn a_paused_job_lets_its_pods_run_and_makes_none() {
    let (cluster, player) = cluster(4).await;
    cluster.broadcast("sweep", json!({"parallelism": 1})).await;
    counts(&cluster, "sweep", [4, 1, 0, 0]).await;
    edit(&cluster, "sweep", json!({"spec": {"paused": true}})).await;
    reaches(&cluster, "sweep", BroadcastJobPhase::Paused).await;
    counts(&cluster, "sweep", [4, 0, 1, 0]).await;
    cluster.pass(60).await;
    assert_eq!(player.pods_by_node().len(), 1);
    edit(&cluster, "sweep", json!({"spec": {"paused": false}})).await;
    reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    cluster.pass(2).await;
    assert_eq!(reasons(&cluster, "sweep").await, ["Continue", "JobComplete"]);
}

/// kruise T118, R117, W26: the pause is in the spec, and whoever resumes is not paused again for the same failure.
#[tokio::test(start_paused = true)]
async fn a_failure_pauses_the_job_until_it_is_resumed() {
    let (cluster, player) = cluster(4).await;
    player.act("node-1", Act::Fails(SECOND));
    player.act("node-3", Act::Fails(SECOND));
    cluster.broadcast("sweep", json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}})).await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Paused).await;
    assert!(job.spec.paused);
    assert_eq!((counters(&job), job.status.unwrap().paused_failures), ([4, 0, 0, 1], Some(1)));
    cluster.pass(60).await;
    assert_eq!(player.pods_by_node().len(), 1, "nobody goes on by himself");
    edit(&cluster, "sweep", json!({"spec": {"paused": false}})).await;
    // The next failure pauses it again.
    let again = cluster
        .broadcast_within(60, "sweep", |job| job.status.as_ref().unwrap().paused_failures == Some(2))
        .await;
    assert_eq!(counters(&again), [4, 0, 1, 2]);
    edit(&cluster, "sweep", json!({"spec": {"paused": false}})).await;
    let done = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(counters(&done), [4, 0, 2, 2]);
    cluster.pass(2).await;
    let mut told = reasons(&cluster, "sweep").await;
    told.sort();
    told.dedup();
    assert_eq!(told, ["Continue", "JobComplete", "Paused"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_outlives_the_controller() {
    let (mut cluster, player) = cluster(2).await;
    player.act("node-1", Act::Fails(SECOND));
    cluster.broadcast("sweep", json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}})).await;
    reaches(&cluster, "sweep", BroadcastJobPhase::Paused).await;
    cluster.kill_controller().await;
    cluster.start_controller();
    cluster.pass(60).await;
    assert_eq!(player.pods_by_node().len(), 1);
}
