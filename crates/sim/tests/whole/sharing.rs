//! Two jobs that want the same image on the same node (kruise R53, W3, W4): nobody's pull is disturbed, and nothing is
//! pulled twice without a reason.

use prewarm_api::kruise::{ImagePullJob, ImagePullPolicy};
use prewarm_runtime::Code;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{cluster, node_image, owners, tag, told_within};

const IMAGE: &str = "nginx:1";

fn spec(policy: &str) -> Value {
    json!({"image": IMAGE, "imagePullPolicy": policy, "pullPolicy": {"timeoutSeconds": 60, "backoffLimit": 0}})
}

fn succeeded(job: &ImagePullJob) -> bool {
    job.status.as_ref().is_some_and(|status| status.succeeded == 1)
}

/// One node, on which a first job is done.
async fn after_success() -> Cluster {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.pull("first", spec("IfNotPresent")).await;
    assert!(succeeded(&cluster.finished_within(30, "first").await));
    cluster
}

/// One node, on which a first job is pulling.
async fn while_pulling() -> Cluster {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).hangs();
    cluster.pull("first", spec("IfNotPresent")).await;
    cluster.nodes["node-1"].runtime.started(IMAGE).await;
    cluster.pass(2).await;
    cluster
}

fn pulls(cluster: &Cluster) -> usize {
    cluster.nodes["node-1"].pulls(IMAGE)
}

#[tokio::test(start_paused = true)]
async fn what_is_there_satisfies_a_second_job_without_a_pull() {
    let cluster = after_success().await;
    let before = tag(&cluster, "node-1", IMAGE).await.unwrap();
    cluster.pull("second", spec("IfNotPresent")).await;
    assert!(succeeded(&cluster.finished_within(10, "second").await));
    let after = tag(&cluster, "node-1", IMAGE).await.unwrap();
    assert_eq!((after.version, &after.created_at), (before.version, &before.created_at));
    assert_eq!(
        (pulls(&cluster), owners(&cluster, "node-1", IMAGE).await),
        (1, vec!["first".into(), "second".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_job_that_asks_always_has_it_pulled_again() {
    let cluster = after_success().await;
    cluster.pull("second", spec("Always")).await;
    assert!(succeeded(&cluster.finished_within(30, "second").await));
    let after = tag(&cluster, "node-1", IMAGE).await.unwrap();
    assert_eq!((after.version, after.image_pull_policy), (1, ImagePullPolicy::Always));
    assert_eq!(pulls(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn what_has_failed_is_tried_again_for_a_second_job() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).fails(1, Code::Unknown, "connection refused");
    cluster.pull("first", spec("IfNotPresent")).await;
    let first = cluster.finished_within(60, "first").await.status.unwrap();
    assert_eq!(first.failed, 1);
    cluster.pull("second", spec("IfNotPresent")).await;
    assert!(succeeded(&cluster.finished_within(60, "second").await));
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().version, 1);
    assert_eq!(cluster.status("first").await, first, "what is over stays as it was");
}

#[tokio::test(start_paused = true)]
async fn a_pull_under_way_serves_a_second_job_undisturbed() {
    for policy in ["IfNotPresent", "Always"] {
        let cluster = while_pulling().await;
        cluster.pull("second", spec(policy)).await;
        cluster.pass(10).await;
        assert_eq!(owners(&cluster, "node-1", IMAGE).await.len(), 2, "{policy}");
        cluster.nodes["node-1"].runtime.image(IMAGE).recovers();
        for job in ["first", "second"] {
            assert!(succeeded(&cluster.finished_within(30, job).await), "{policy}");
        }
        assert_eq!(
            (tag(&cluster, "node-1", IMAGE).await.unwrap().version, pulls(&cluster)),
            (0, 1),
            "{policy}"
        );
    }
}

/// kruise W3: the first job goes on until its node is done again, and both end.
#[tokio::test(start_paused = true)]
async fn a_job_that_goes_on_elsewhere_counts_the_new_round() {
    let cluster = cluster(2, &[IMAGE]).await;
    cluster.nodes["node-2"].runtime.image(IMAGE).hangs();
    cluster.pull("first", json!({"image": IMAGE, "parallelism": 2})).await;
    cluster.job_within(10, "first", succeeded).await;
    cluster
        .pull(
            "second",
            json!({"image": IMAGE, "imagePullPolicy": "Always", "selector": {"names": ["node-1"]}}),
        )
        .await;
    assert!(succeeded(&cluster.finished_within(30, "second").await));
    cluster.nodes["node-2"].runtime.image(IMAGE).recovers();
    let first = cluster.finished_within(30, "first").await.status.unwrap();
    assert_eq!((first.succeeded, first.failed), (2, 0));
    let pulls: Vec<usize> = cluster.nodes.values().map(|node| node.pulls(IMAGE)).collect();
    assert_eq!(pulls, [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_image_is_pulled_for_a_second_job() {
    let cluster = after_success().await;
    assert!(cluster.nodes["node-1"].runtime.remove(IMAGE));
    cluster.pass(120).await;
    cluster.pull("second", spec("IfNotPresent")).await;
    assert!(succeeded(&cluster.finished_within(60, "second").await));
    assert_eq!((tag(&cluster, "node-1", IMAGE).await.unwrap().version, pulls(&cluster)), (1, 2));
    assert!(cluster.nodes["node-1"].runtime.has(IMAGE));
}

#[tokio::test(start_paused = true)]
async fn jobs_made_together_cause_one_pull() {
    let cluster = cluster(2, &[IMAGE]).await;
    for name in ["first", "second", "third"] {
        cluster.pull(name, json!({"image": IMAGE, "parallelism": 2})).await;
    }
    for name in ["first", "second", "third"] {
        assert_eq!(cluster.finished_within(30, name).await.status.unwrap().succeeded, 2);
    }
    assert_eq!(pulls(&cluster), 1);
    assert_eq!(owners(&cluster, "node-1", IMAGE).await.len(), 3);
}

/// kruise W4.
#[tokio::test(start_paused = true)]
async fn no_job_is_cut_short_by_the_limits_of_another() {
    let cluster = while_pulling().await;
    let own = tag(&cluster, "node-1", IMAGE).await.unwrap().pull_policy;
    let long = json!({
        "image": IMAGE, "pullPolicy": {"timeoutSeconds": 900, "backoffLimit": 5},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 50_000, "activeDeadlineSeconds": 40_000},
    });
    cluster.pull("long", long).await;
    cluster.pass(2).await;
    let shared = tag(&cluster, "node-1", IMAGE).await.unwrap().pull_policy;
    assert_eq!((shared.timeout_seconds, shared.backoff_limit), (900, 5));
    assert!(shared.ttl_seconds_after_finished >= 50_300);
    assert_eq!(shared.active_deadline_seconds, None, "the first job has none");
    let short = json!({
        "image": IMAGE, "pullPolicy": {"timeoutSeconds": 1, "backoffLimit": 0},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 1},
    });
    cluster.pull("short", short).await;
    cluster.pass(5).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().pull_policy, shared);
    assert_ne!(own, shared);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_both_jobs_is_the_later_one() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).hangs();
    for (name, deadline) in [("first", 1000), ("second", 2000), ("third", 700)] {
        let completion = json!({"type": "Always", "activeDeadlineSeconds": deadline});
        cluster.pull(name, json!({"image": IMAGE, "completionPolicy": completion})).await;
        cluster.pass(2).await;
    }
    let policy = tag(&cluster, "node-1", IMAGE).await.unwrap().pull_policy;
    assert_eq!(policy.active_deadline_seconds, Some(2000));
}

#[tokio::test(start_paused = true)]
async fn the_job_that_stays_keeps_the_entry_and_its_result() {
    let cluster = after_success().await;
    cluster.pull("second", spec("IfNotPresent")).await;
    cluster.finished_within(30, "second").await;
    cluster.delete_job("first").await;
    cluster.pass(5).await;
    assert_eq!(owners(&cluster, "node-1", IMAGE).await, ["second"]);
    assert_eq!((tag(&cluster, "node-1", IMAGE).await.unwrap().version, pulls(&cluster)), (0, 1));
    cluster.delete_job("second").await;
    cluster.pass(5).await;
    assert!(node_image(&cluster, "node-1").await.spec.images.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_runtime_is_told_stays_while_another_job_uses_it() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).hangs();
    let with = |team: &str| json!({"image": IMAGE, "sandboxConfig": {"labels": {"team": team}}});
    cluster.pull("first", with("red")).await;
    told_within(&cluster, 10, "node-1", IMAGE).await;
    cluster.pull("second", with("blue")).await;
    cluster.pass(5).await;
    let images = node_image(&cluster, "node-1").await.spec.images;
    let labels = images["nginx"].sandbox_config.clone().unwrap().labels.unwrap();
    assert_eq!(labels["team"], "red");
    assert_eq!(owners(&cluster, "node-1", IMAGE).await.len(), 2);
}
