//! Runs that meet others, pauses, and time that was lost.

use prewarm_api::kruise::SkipReason;
use prewarm_embedded::faults::Verb;
use serde_json::json;

use crate::support::{
    HOUR, IMAGE, VERSIONS, cluster, condition, edit, last, past_the_hour, reasons, runs, skipped, status,
    until_minute, writes_to,
};

/// kruise T14.
#[tokio::test(start_paused = true)]
async fn a_paused_cron_job_makes_nothing_until_it_goes_on() {
    for version in VERSIONS {
        let cluster = cluster(1, 1).await;
        cluster.cron(version, "base", &json!({"schedule": "*/1 * * * *"})).await;
        cluster.pass(130).await;
        edit(&cluster, "base", json!({"spec": {"paused": true}})).await;
        cluster.pass(1).await;
        let before = last(&cluster.crons().get("base").await.unwrap());
        cluster.pass(120).await;
        let cron = cluster.crons().get("base").await.unwrap();
        assert_eq!(last(&cron), before, "{version}");
        assert_eq!(condition(&cron, "Scheduling").1, "Paused");
        edit(&cluster, "base", json!({"spec": {"paused": false}})).await;
        let cron = cluster.cron_within(180, "base", |cron| last(cron) > before).await;
        assert_eq!(skipped(&cron), [(SkipReason::Paused, 1)]);
        assert_eq!(condition(&cron, "Scheduling").1, "OnSchedule");
    }
}

/// kruise R101: the run that is due starts right after the one before has ended.
#[tokio::test(start_paused = true)]
async fn under_forbid_there_is_never_a_second_run() {
    let cluster = cluster(1, 25 * 60).await;
    // Large enough that it does not count as stalled meanwhile.
    cluster.nodes["node-1"].runtime.image(IMAGE).size(1 << 30);
    let template = json!({"imageListPullJobTemplate": {"spec": {"pullPolicy": {"timeoutSeconds": HOUR}}}});
    let spec = json!({"schedule": "*/10 * * * *", "concurrencyPolicy": "Forbid", "template": template});
    cluster.cron("v1beta1", "base", &spec).await;
    cluster.cron_within(HOUR, "base", |cron| condition(cron, "Scheduling").1 == "Forbidden").await;
    assert_eq!(runs(&cluster).await.len(), 1);
    // The image is there after 25 minutes; of the two runs that were due meanwhile, the later one happens.
    let cron = cluster.cron_within(HOUR, "base", |cron| !skipped(cron).is_empty()).await;
    assert_eq!(skipped(&cron), [(SkipReason::Forbidden, 1)]);
    assert_eq!(runs(&cluster).await.len(), 2);
    assert_eq!(condition(&cron, "Scheduling").1, "OnSchedule");
    cluster.pass(5).await;
    assert!(reasons(&cluster, "base").await.contains(&"RunsSkipped".to_owned()));
}

/// kruise R101: without a policy, an image list that goes on is replaced.
#[tokio::test(start_paused = true)]
async fn an_image_list_that_goes_on_is_replaced_by_the_next() {
    let cluster = cluster(1, 15 * 60).await;
    let template = json!({"imageListPullJobTemplate": {"spec": {"pullPolicy": {"timeoutSeconds": HOUR}}}});
    cluster.cron("v1beta1", "base", &json!({"schedule": "@every 10m", "template": template})).await;
    cluster.pass(20 * 60 + 5).await;
    let cron = cluster.crons().get("base").await.unwrap();
    assert_eq!(runs(&cluster).await.len(), 1);
    assert_eq!(status(&cron).active.unwrap().len(), 1);
    assert_eq!(condition(&cron, "LastRunSucceeded").1, "Replaced");
    assert_eq!(reasons(&cluster, "base").await, ["RunReplaced", "RunScheduled", "RunScheduled"]);
}

#[tokio::test(start_paused = true)]
async fn jobs_may_run_beside_each_other() {
    let cluster = cluster(0, 1).await;
    let template = json!({"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}});
    cluster.cron("v1beta1", "jobs", &json!({"schedule": "0 * * * *", "template": template})).await;
    past_the_hour(&cluster).await;
    cluster.pass(2 * HOUR).await;
    let cron = cluster.crons().get("jobs").await.unwrap();
    assert_eq!(status(&cron).active.unwrap().len(), 3);
}

/// kruise W24.
#[tokio::test(start_paused = true)]
async fn after_a_long_outage_the_latest_run_happens_and_the_cron_job_goes_on() {
    let mut cluster = cluster(1, 1).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "*/1 * * * *"})).await;
    cluster.pass(70).await;
    cluster.kill_controller().await;
    cluster.pass(10 * HOUR).await;
    cluster.start_controller();
    let cron = cluster.cron_within(5, "base", |cron| !skipped(cron).is_empty()).await;
    let [(SkipReason::Missed, count)] = skipped(&cron)[..] else { panic!("{:?}", skipped(&cron)) };
    assert!((595..=600).contains(&count), "{count}");
    let before = last(&cron);
    cluster.pass(60).await;
    let cron = cluster.crons().get("base").await.unwrap();
    assert!(last(&cron) > before);
    assert_eq!(skipped(&cron), [(SkipReason::Missed, count)], "nothing is counted twice");
}

/// kruise R99.
#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_start_in_time_does_not_happen() {
    let mut cluster = cluster(1, 1).await;
    let spec = json!({"schedule": "0 * * * *", "startingDeadlineSeconds": 300});
    cluster.cron("v1beta1", "base", &spec).await;
    until_minute(&cluster, 30).await;
    cluster.kill_controller().await;
    cluster.pass(2 * HOUR).await;
    cluster.start_controller();
    let cron = cluster.cron_within(5, "base", |cron| !skipped(cron).is_empty()).await;
    assert_eq!(skipped(&cron), [(SkipReason::TooLate, 2)]);
    assert_eq!(runs(&cluster).await.len(), 0);
    assert_eq!(reasons(&cluster, "base").await, ["RunsSkipped"]);
}

/// kruise W44: a run costs itself, its status at the beginning and at the end, and their events; in between, nothing.
#[tokio::test(start_paused = true)]
async fn a_cron_job_is_written_only_when_something_has_happened() {
    let cluster = cluster(1, 1).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *"})).await;
    until_minute(&cluster, 30).await;
    let statuses = || writes_to(&cluster, Verb::Patch, "/advancedcronjobs/");
    let (before, written) = (statuses(), cluster.faults.writes());
    cluster.pass(29 * 60).await;
    assert_eq!((statuses(), cluster.faults.writes()), (before, written), "idle");
    cluster.pass(HOUR).await;
    assert_eq!(statuses() - before, 2);
}
