//! Runs that are over.

use prewarm_embedded::faults::Verb;
use serde_json::json;

use crate::support::{
    HOUR, VERSIONS, cluster, condition, delete_run, last, reasons, runs, status, until_minute, writes_to,
};

/// kruise R97.
#[tokio::test(start_paused = true)]
async fn as_many_runs_are_kept_as_the_limits_say() {
    let cluster = cluster(1, 1).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *", "successfulJobsHistoryLimit": 2})).await;
    until_minute(&cluster, 30).await;
    cluster.pass(4 * HOUR).await;
    let kept = runs(&cluster).await;
    assert_eq!(kept.len(), 2);
    let newest = kept.last().unwrap().metadata.name.clone().unwrap();
    let cron = cluster.crons().get("base").await.unwrap();
    assert!(newest.ends_with(&last(&cron).unwrap().as_second().to_string()));
}

/// kruise W23: with no run left, the last one does not come again.
#[tokio::test(start_paused = true)]
async fn without_any_history_a_run_happens_once() {
    let cluster = cluster(1, 1).await;
    let limits =
        json!({"schedule": "0 * * * *", "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0});
    cluster.cron("v1beta1", "base", &limits).await;
    until_minute(&cluster, 30).await;
    cluster.pass(3 * HOUR).await;
    assert_eq!(runs(&cluster).await.len(), 0);
    assert_eq!(writes_to(&cluster, Verb::Create, "/imagelistpulljobs"), 3);
    let cron = cluster.crons().get("base").await.unwrap();
    assert!(last(&cron).is_some());
    assert_eq!(condition(&cron, "LastRunSucceeded").1, "Complete");
}

/// kruise T104: three that ended well, two that failed and one that goes on, with room for two and one.
#[tokio::test(start_paused = true)]
async fn limits_hold_for_each_kind_of_end() {
    for version in VERSIONS {
        limits_hold(version).await;
    }
}

async fn limits_hold(version: &str) {
    let mut cluster = cluster(1, 1).await;
    let limits = json!({"schedule": "*/5 * * * *", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 2,
        "startingDeadlineSeconds": 360});
    cluster.cron(version, "base", &limits).await;
    cluster.pass(15 * 60 + 30).await;
    let images = |images: serde_json::Value| {
        let policies = json!({"images": images, "pullPolicy": {"backoffLimit": 0, "timeoutSeconds": 1000}});
        json!({"spec": {"template": {"imageListPullJobTemplate": {"spec": policies}}}})
    };
    crate::support::edit(&cluster, "base", images(json!(["registry.example/missing:1"]))).await;
    cluster.pass(10 * 60).await;
    cluster.publish("registry.example/slow:1", std::time::Duration::from_mins(15));
    crate::support::edit(&cluster, "base", images(json!(["registry.example/slow:1"]))).await;
    cluster.pass(5 * 60).await;
    assert_eq!(runs(&cluster).await.len(), 6);
    let limits = json!({"spec": {"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1}});
    crate::support::edit(&cluster, "base", limits).await;
    cluster.pass(5 * 60).await;
    let kept = runs(&cluster).await;
    let ended = |succeeded: bool| {
        let of = |run: &&prewarm_api::kruise::ImageListPullJob| {
            let status = run.status.clone().unwrap_or_default();
            status.completion_time.is_some() && (status.succeeded == status.desired) == succeeded
        };
        kept.iter().filter(of).count()
    };
    assert_eq!((kept.len(), ended(true), ended(false)), (4, 2, 1));
    let cron = cluster.crons().get("base").await.unwrap();
    assert_eq!(status(&cron).active.unwrap().len(), 1);
}

/// kruise W21.
#[tokio::test(start_paused = true)]
async fn a_deleted_run_wakes_its_cron_job_and_is_not_made_again() {
    let cluster = cluster(1, 15 * 60).await;
    let template = json!({"imageListPullJobTemplate": {"spec": {"pullPolicy": {"timeoutSeconds": HOUR}}}});
    let spec = json!({"schedule": "@every 1h", "concurrencyPolicy": "Forbid", "template": template});
    cluster.cron("v1beta1", "base", &spec).await;
    cluster.pass(HOUR + 60).await;
    let run = runs(&cluster).await.remove(0).metadata.name.unwrap();
    delete_run(&cluster, &run).await;
    let gone = |cron: &_| condition(cron, "LastRunSucceeded").1 == "Deleted";
    let cron = cluster.cron_within(5, "base", gone).await;
    assert_eq!(status(&cron).active, None);
    cluster.pass(600).await;
    assert_eq!(runs(&cluster).await.len(), 0);
    assert_eq!(reasons(&cluster, "base").await, ["RunDeleted", "RunScheduled"]);
}
