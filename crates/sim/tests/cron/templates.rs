//! What is made, and when.

use kube::api::ListParams;
use prewarm_api::kruise::TemplateKind;
use prewarm_sim::Act;
use serde_json::json;
use std::time::Duration;

use crate::support::{VERSIONS, cluster, condition, end_job, last, reasons, runs, status, told};

fn job_template() -> serde_json::Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "tool:1"}]});
    json!({"imageListPullJobTemplate": null, "jobTemplate": {"metadata": {"labels": {"app": "sweep"}},
        "spec": {"template": {"spec": pod}}}})
}

/// kruise T12, T102.
#[tokio::test(start_paused = true)]
async fn a_cron_job_makes_jobs() {
    for version in VERSIONS {
        let cluster = cluster(1, 1).await;
        let spec = json!({"schedule": "*/1 * * * *", "template": job_template()});
        cluster.cron(version, "nightly", &spec).await;
        let cron = cluster.cron_within(120, "nightly", |cron| last(cron).is_some()).await;
        assert_eq!(status(&cron).type_, Some(TemplateKind::Job));
        let jobs = cluster.batch_jobs().list(&ListParams::default()).await.unwrap().items;
        let job = &jobs[0].metadata;
        let time = last(&cron).unwrap();
        assert_eq!(job.name.as_deref(), Some(format!("nightly-{}", time.as_second()).as_str()));
        assert_eq!(job.annotations.as_ref().unwrap()["apps.kruise.io/scheduled-at"], time.to_string());
        assert_eq!(job.labels.as_ref().unwrap()["app"], "sweep");
        let active = status(&cron).active.unwrap();
        assert_eq!(
            (active[0].kind.as_deref(), active[0].name.as_deref()),
            (Some("Job"), job.name.as_deref())
        );
        end_job(&cluster, job.name.as_deref().unwrap(), "Complete").await;
        // kruise W21: a Job that ends wakes its cron job.
        let ended = |cron: &_| condition(cron, "LastRunSucceeded").1 == "Complete";
        let cron = cluster.cron_within(5, "nightly", ended).await;
        assert_eq!(status(&cron).active, None, "{version}");
    }
}

/// kruise T13, T101.
#[tokio::test(start_paused = true)]
async fn a_cron_job_makes_broadcast_jobs() {
    for version in VERSIONS {
        let cluster = cluster(2, 1).await;
        let _player = cluster.play(Act::Succeeds(Duration::from_secs(2)));
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "tool:1"}]});
        let template = json!({"imageListPullJobTemplate": null,
            "broadcastJobTemplate": {"spec": {"template": {"spec": pod}}}});
        cluster.cron(version, "sweep", &json!({"schedule": "*/1 * * * *", "template": template})).await;
        let ended = |cron: &_| condition(cron, "LastRunSucceeded").1 == "Complete";
        let cron = cluster.cron_within(180, "sweep", ended).await;
        assert_eq!(status(&cron).type_, Some(TemplateKind::BroadcastJob), "{version}");
        assert!(!cluster.broadcasts().list(&ListParams::default()).await.unwrap().items.is_empty());
    }
}

/// kruise T103, and the proposal's own case.
#[tokio::test(start_paused = true)]
async fn a_cron_job_pulls_image_lists() {
    for version in VERSIONS {
        let cluster = cluster(2, 3).await;
        cluster.cron(version, "base", &json!({"schedule": "*/5 * * * *"})).await;
        let cron = cluster.cron_within(400, "base", |cron| last(cron).is_some()).await;
        assert_eq!(status(&cron).type_, Some(TemplateKind::ImageListPullJob));
        assert_eq!(status(&cron).active.unwrap().len(), 1);
        let ended = |cron: &_| condition(cron, "LastRunSucceeded").1 == "Complete";
        cluster.cron_within(60, "base", ended).await;
        let runs = runs(&cluster).await;
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].status.as_ref().unwrap().succeeded, 1, "{version}");
        assert_eq!(cluster.nodes["node-1"].pulls(crate::support::IMAGE), 1);
        assert_eq!(reasons(&cluster, "base").await, ["RunCompleted", "RunScheduled"]);
    }
}

/// kruise T100: the time of a run is that of the zone, and UTC where nobody names one.
#[tokio::test(start_paused = true)]
async fn a_schedule_is_read_in_its_zone() {
    for version in VERSIONS {
        let cluster = cluster(0, 1).await;
        let zones = [
            ("plain", json!({"schedule": "30 10 * * ?"}), "2026-11-15T10:30:00Z"),
            ("zone", json!({"schedule": "30 16 * * ?", "timeZone": "Asia/Shanghai"}), "2026-11-15T08:30:00Z"),
            ("inside", json!({"schedule": "TZ=Asia/Shanghai 30 17 * * ?"}), "2026-11-15T09:30:00Z"),
        ];
        for (name, spec, _) in &zones {
            cluster.cron(version, name, spec).await;
        }
        cluster.pass(3 * 3600).await;
        for (name, _, time) in zones {
            let cron = cluster.crons().get(name).await.unwrap();
            assert_eq!(last(&cron), Some(time.parse().unwrap()), "{name} in {version}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_in_which_an_image_failed_names_it() {
    let cluster = cluster(1, 1).await;
    let images = json!([crate::support::IMAGE, "registry.example/missing:1"]);
    let list =
        json!({"images": images, "pullPolicy": {"backoffLimit": 0}, "completionPolicy": {"type": "Always"}});
    let template = json!({"imageListPullJobTemplate": {"spec": list}});
    cluster.cron("v1beta1", "base", &json!({"schedule": "@every 10m", "template": template})).await;
    let failed = |cron: &_| condition(cron, "LastRunSucceeded").1 == "ImagesFailed";
    let cron = cluster.cron_within(700, "base", failed).await;
    let (_, _, message) = condition(&cron, "LastRunSucceeded");
    assert!(
        message.ends_with("1 of 2 images are not on every node: registry.example/missing:1"),
        "{message}"
    );
    assert_eq!(status(&cron).last_failed_image.as_deref(), Some("registry.example/missing:1"));
    let (reason, note) = told(&cluster, "base").await.pop().unwrap();
    assert_eq!(reason, "RunFailed");
    assert!(note.contains("registry.example/missing:1"), "{note}");
}

/// What is edited counts for the next run.
#[tokio::test(start_paused = true)]
async fn an_edited_image_list_is_what_the_next_run_pulls() {
    let cluster = cluster(1, 1).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "@every 10m"})).await;
    cluster.pass(700).await;
    let images = json!({"imageListPullJobTemplate": {"spec": {"images": ["registry.example/next:1"]}}});
    crate::support::edit(&cluster, "base", json!({"spec": {"template": images}})).await;
    cluster.pass(600).await;
    let runs = runs(&cluster).await;
    assert_eq!(runs.last().unwrap().spec.images, ["registry.example/next:1"]);
    assert_eq!(runs.len(), 2);
}
