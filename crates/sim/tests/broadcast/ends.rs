//! How jobs end.

use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_sim::Act;
use serde_json::json;

use crate::support::{SECOND, cluster, condition, counters, counts, pods, pods_asked_for, reaches, reasons};

#[tokio::test(start_paused = true)]
async fn every_node_runs_the_pod_once() {
    let (cluster, player) = cluster(5).await;
    cluster.broadcast("sweep", json!({"parallelism": 2})).await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(counters(&job), [5, 0, 5, 0]);
    assert_eq!(condition(&job, "Complete").unwrap().0, "True");
    assert!(player.pods_by_node().values().all(|pods| *pods == 1));
    assert_eq!(player.most(), (2, 1), "never above parallelism, and one on each node");
    cluster.pass(2).await;
    assert_eq!(reasons(&cluster, "sweep").await, ["JobComplete"]);
}

/// kruise T114; that they are made in batches is shown on the kernel.
#[tokio::test(start_paused = true)]
async fn ten_nodes_get_ten_pods_with_one_request_each() {
    let (cluster, _player) = cluster(10).await;
    cluster.broadcast("sweep", json!({"parallelism": 20})).await;
    counts(&cluster, "sweep", [10, 10, 0, 0]).await;
    let posts = pods_asked_for(&cluster);
    assert_eq!(posts, 10);
}

/// kruise T115, T117.
#[tokio::test(start_paused = true)]
async fn a_failure_ends_the_job_and_its_other_pods() {
    let (cluster, player) = cluster(4).await;
    player.act("node-2", Act::Fails(SECOND));
    player.act("node-3", Act::Hangs);
    cluster.broadcast("sweep", json!({"parallelism": 3})).await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Failed).await;
    assert_eq!(job.status.as_ref().unwrap().active, 0);
    cluster.pass(5).await;
    let live = pods(&cluster).await.into_iter().filter(|pod| {
        !matches!(
            pod.status.as_ref().and_then(|status| status.phase.as_deref()),
            Some("Succeeded" | "Failed")
        )
    });
    assert_eq!(live.count(), 0);
    assert_eq!(reasons(&cluster, "sweep").await, ["failed pod is found"]);
    assert!(player.pods_by_node().values().all(|pods| *pods == 1), "no pod was made again");
}

/// kruise T116.
#[tokio::test(start_paused = true)]
async fn a_job_that_continues_ends_with_its_failures_counted() {
    let (cluster, player) = cluster(4).await;
    player.act("node-2", Act::Fails(SECOND));
    cluster.broadcast("sweep", json!({"parallelism": 1, "failurePolicy": {"type": "Continue"}})).await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(counters(&job), [4, 0, 3, 1]);
}

/// kruise W26: such a pod counted as failed and kept the job from its end.
#[tokio::test(start_paused = true)]
async fn a_pod_over_its_restart_limit_does_not_block_the_end() {
    let (cluster, player) = cluster(2).await;
    player.act("node-2", Act::Restarts(9));
    let template = json!({"spec": {"restartPolicy": "OnFailure"}});
    let policy = json!({"type": "Continue", "restartLimit": 3});
    cluster.broadcast("sweep", json!({"template": template, "failurePolicy": policy})).await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(counters(&job), [2, 0, 1, 1]);
    cluster.pass(5).await;
    assert_eq!(pods(&cluster).await.len(), 1, "what would go on for ever is gone");
}

/// kruise T120, and W26: a controller that begins in between knows the deadline from the status.
#[tokio::test(start_paused = true)]
async fn the_deadline_holds_over_a_restart_of_the_controller() {
    let (mut cluster, player) = cluster(2).await;
    player.act("node-2", Act::Hangs);
    let policy = json!({"type": "Always", "activeDeadlineSeconds": 30});
    cluster.broadcast("sweep", json!({"completionPolicy": policy})).await;
    counts(&cluster, "sweep", [2, 1, 1, 0]).await;
    cluster.kill_controller().await;
    cluster.start_controller();
    cluster.pass(20).await;
    assert_eq!(counters(&cluster.broadcasts().get("sweep").await.unwrap()), [2, 1, 1, 0]);
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Failed).await;
    assert_eq!(counters(&job), [2, 0, 1, 1]);
    cluster.pass(2).await;
    assert_eq!(reasons(&cluster, "sweep").await, ["DeadlineExceeded"]);
    assert_eq!(pods(&cluster).await.len(), 1);
}

/// kruise T16, R111.
#[tokio::test(start_paused = true)]
async fn a_job_goes_by_its_ttl() {
    let (cluster, _player) = cluster(1).await;
    let policy = json!({"type": "Always", "ttlSecondsAfterFinished": 30});
    cluster.broadcast("sweep", json!({"completionPolicy": policy})).await;
    let job = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(job.spec.completion_policy.ttl_seconds_after_finished, Some(30));
    cluster.pass(25).await;
    assert!(cluster.broadcasts().get_opt("sweep").await.unwrap().is_some());
    cluster.pass(10).await;
    assert!(cluster.broadcasts().get_opt("sweep").await.unwrap().is_none());
}
