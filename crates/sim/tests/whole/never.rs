//! Jobs that never end: the daily pull (kruise R56), and images that vanish from nodes (kruise W13).

use prewarm_api::kruise::ImagePullJob;
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::{cluster, tag, told_within};

const IMAGE: &str = "nginx:1";
const HOUR: u64 = 3600;

async fn never(nodes: usize) -> Cluster {
    let cluster = cluster(nodes, &[IMAGE]).await;
    let spec = json!({
        "image": IMAGE, "parallelism": 9, "imagePullPolicy": "Always", "completionPolicy": {"type": "Never"},
    });
    cluster.pull("warm", spec).await;
    cluster.job_within(30, "warm", all_succeeded).await;
    cluster
}

fn all_succeeded(job: &ImagePullJob) -> bool {
    job.status.as_ref().is_some_and(|status| status.succeeded == status.desired && status.desired > 0)
}

fn pulls(cluster: &Cluster) -> Vec<usize> {
    cluster.nodes.values().map(|node| node.pulls(IMAGE)).collect()
}

/// kruise R56.
#[tokio::test(start_paused = true)]
async fn a_job_that_never_ends_pulls_once_a_day() {
    let cluster = never(1).await;
    for round in 1..=2 {
        let begin = tokio::time::Instant::now();
        cluster.pass(24 * HOUR - 660).await;
        assert_eq!(pulls(&cluster), [round], "not more than ten minutes early");
        while pulls(&cluster) != [round + 1] {
            cluster.pass(10).await;
            let late = begin.elapsed().as_secs() - (24 * HOUR - 660);
            assert!(late < 1320, "not more than ten minutes late");
        }
        let status = cluster.job_within(5, "warm", all_succeeded).await.status.unwrap();
        assert_eq!((status.failed, status.completion_time), (0, None));
    }
}

/// kruise R56: a failed node is asked again with the daily pull.
#[tokio::test(start_paused = true)]
async fn a_failed_node_is_tried_again_with_the_daily_pull() {
    let cluster = cluster(1, &[]).await;
    let spec =
        json!({"image": IMAGE, "pullPolicy": {"backoffLimit": 0}, "completionPolicy": {"type": "Never"}});
    cluster.pull("warm", spec).await;
    cluster.job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.failed == 1)).await;
    cluster.nodes["node-1"].runtime.image(IMAGE);
    cluster.pass(23 * HOUR).await;
    assert!(!cluster.nodes["node-1"].runtime.has(IMAGE));
    cluster.pass(2 * HOUR).await;
    assert!(all_succeeded(&cluster.jobs().get("warm").await.unwrap()));
    assert!(cluster.nodes["node-1"].runtime.has(IMAGE));
}

/// kruise W13.
#[tokio::test(start_paused = true)]
async fn an_image_that_vanishes_is_pulled_again_and_the_second_time_only_after_hours() {
    let cluster = never(1).await;
    let node = &cluster.nodes["node-1"];
    node.runtime.remove(IMAGE);
    let limit = std::time::Duration::from_mins(5);
    cluster.within(limit, "the image", async || node.runtime.has(IMAGE)).await;
    cluster.pass(60).await;
    let renewed = tag(&cluster, "node-1", IMAGE).await.unwrap();
    assert_eq!((renewed.version, node.pulls(IMAGE)), (1, 2));
    assert!(renewed.renewed_at.is_some());
    node.runtime.remove(IMAGE);
    cluster.pass(5 * HOUR).await;
    assert_eq!(node.pulls(IMAGE), 2, "somebody keeps removing it");
    cluster.pass(HOUR + 60).await;
    assert_eq!((node.pulls(IMAGE), node.runtime.has(IMAGE)), (3, true));
}

/// kruise W13: two losses far apart are two single losses.
#[tokio::test(start_paused = true)]
async fn losses_far_apart_are_each_made_good_at_once() {
    let cluster = never(1).await;
    let node = &cluster.nodes["node-1"];
    for round in 2..=4 {
        node.runtime.remove(IMAGE);
        cluster.pass(300).await;
        assert_eq!((node.pulls(IMAGE), node.runtime.has(IMAGE)), (round, true));
        cluster.pass(2 * HOUR).await;
    }
}

/// kruise W13: a job that ends has given its answer.
#[tokio::test(start_paused = true)]
async fn a_loss_after_the_end_of_a_job_is_nobodys() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.pull("warm", json!({"image": IMAGE})).await;
    cluster.finished_within(30, "warm").await;
    cluster.nodes["node-1"].runtime.remove(IMAGE);
    cluster.pass(1200).await;
    assert_eq!(cluster.nodes["node-1"].pulls(IMAGE), 1);
}

/// kruise W1: an entry of a job that ends is not its daily trigger.
#[tokio::test(start_paused = true)]
async fn the_daily_pull_needs_the_job() {
    let cluster = never(1).await;
    cluster.delete_job("warm").await;
    cluster.pass(26 * HOUR).await;
    assert_eq!(pulls(&cluster), [1]);
    cluster.pull("again", json!({"image": IMAGE})).await;
    told_within(&cluster, 5, "node-1", IMAGE).await;
    assert_eq!(cluster.finished_within(10, "again").await.status.unwrap().succeeded, 1);
}
