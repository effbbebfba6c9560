//! Runs of every kind.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, TemplateKind};
use prewarm_testkit::wait;
use serde_json::json;

use crate::world::{IMAGES, VERSIONS, World, is_complete, list, pod};

/// How long a pause is observed: three runs would be due.
const PAUSE: Duration = Duration::from_secs(15);

fn kind(cron: &AdvancedCronJob) -> Option<TemplateKind> {
    cron.status.as_ref().and_then(|status| status.type_)
}

/// kruise T12.
pub async fn a_cron_job_makes_jobs_that_complete() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let template = json!({"jobTemplate": {"spec": {"backoffLimit": 0, "template": pod(&["exit", "0"])}}});
        let scene = world.cron(version, template, json!({})).await?;
        let cron = scene.until("a complete run", is_complete).await?;
        ensure!(kind(&cron) == Some(TemplateKind::Job), "{:?}", cron.status);
        ensure!(cron.status.is_some_and(|status| status.last_schedule_time.is_some()));
        let jobs = scene.runs::<Job>()?.list(&ListParams::default()).await?.items;
        let ended =
            jobs.iter().filter(|job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1)));
        ensure!(ended.count() >= 1, "{jobs:#?}");
        scene.event("RunScheduled").await?;
        scene.event("RunCompleted").await?;
        scene.end().await?;
    }
    Ok(())
}

/// kruise T13.
pub async fn a_cron_job_makes_broadcast_jobs_that_complete() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let template = json!({"broadcastJobTemplate": {"spec": {"template": pod(&["exit", "0"])}}});
        let scene = world.cron(version, template, json!({})).await?;
        let cron = scene.until("a complete run", is_complete).await?;
        ensure!(kind(&cron) == Some(TemplateKind::BroadcastJob), "{:?}", cron.status);
        let jobs = scene.runs::<BroadcastJob>()?.list(&ListParams::default()).await?.items;
        let ran = |job: &&BroadcastJob| job.status.as_ref().is_some_and(|status| status.succeeded == 2);
        ensure!(jobs.iter().any(|job| ran(&job)), "on both nodes: {jobs:#?}");
        scene.end().await?;
    }
    Ok(())
}

/// The proposal's test plan: the run is made on schedule, the status follows, and the images are present.
pub async fn a_cron_job_pulls_its_images_on_every_node() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let scene = world.cron(version, list(&IMAGES), json!({})).await?;
        let cron = scene.until("a run", |cron| {
            cron.status.as_ref().is_some_and(|status| status.last_schedule_time.is_some())
        });
        let cron = cron.await?;
        let status = cron.status.context("a status")?;
        let time = status.last_schedule_time.context("a time")?.0;
        let name = format!("nightly-{}", time.as_second());
        let run = scene.runs::<ImageListPullJob>()?.get(&name).await?;
        ensure!(
            run.metadata.annotations.unwrap_or_default()["apps.kruise.io/scheduled-at"] == time.to_string()
        );
        ensure!(run.metadata.labels.unwrap_or_default()["app"] == "prefetch");
        let made = run.metadata.creation_timestamp.context("a time")?.0;
        ensure!(made.duration_since(time).as_secs() <= 5, "made at {made}, scheduled for {time}");
        let cron = scene.until("a complete run", is_complete).await?;
        ensure!(kind(&cron) == Some(TemplateKind::ImageListPullJob));
        for node in &world.nodes {
            let images = node.images().await?;
            for image in IMAGES {
                ensure!(images.iter().any(|known| known == image), "{} has {images:?}", node.name());
            }
        }
        scene.end().await?;
    }
    Ok(())
}

/// kruise T14.
pub async fn a_paused_cron_job_makes_no_runs_until_it_goes_on() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let scene =
            world.cron(version, list(&IMAGES[..1]), json!({"successfulJobsHistoryLimit": 100})).await?;
        scene.until("a complete run", is_complete).await?;
        scene.edit(json!({"spec": {"paused": true}})).await?;
        scene.until("the pause", |cron| crate::world::condition(cron, "Scheduling").0 == "Paused").await?;
        let runs = scene.runs::<ImageListPullJob>()?;
        let before = runs.list_metadata(&ListParams::default()).await?.items.len();
        tokio::time::sleep(PAUSE).await;
        let paused = runs.list_metadata(&ListParams::default()).await?.items.len();
        ensure!(paused == before, "{paused} runs, {before} before the pause");
        scene.edit(json!({"spec": {"paused": false}})).await?;
        wait::until("another run", async || {
            let now = runs.list_metadata(&ListParams::default()).await?.items.len();
            Ok((now > before).then_some(()))
        })
        .await?;
        let message = scene.event("RunsSkipped").await?;
        ensure!(message.contains("the cron job was paused"), "{message}");
        scene.end().await?;
    }
    Ok(())
}

/// kruise R97, W23.
pub async fn old_runs_go_and_a_deleted_cron_job_takes_all_of_them_along() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let scene = world
        .cron("v1beta1", list(&IMAGES), json!({"schedule": "@every 2s", "successfulJobsHistoryLimit": 1}))
        .await?;
    let runs = scene.runs::<ImageListPullJob>()?;
    let last = |cron: &AdvancedCronJob| {
        cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref()).map(|time| time.0)
    };
    let first = last(&scene.until("a run", |cron| last(cron).is_some()).await?);
    let far = |cron: &AdvancedCronJob| {
        last(cron).zip(first).is_some_and(|(now, first)| now.duration_since(first).as_secs() >= 10)
    };
    scene.until("further runs", far).await?;
    scene.edit(json!({"spec": {"paused": true}})).await?;
    wait::until("one run to be left", async || {
        Ok((runs.list_metadata(&ListParams::default()).await?.items.len() == 1).then_some(()))
    })
    .await?;
    scene.end().await?;
    wait::until("the end of all runs", async || {
        Ok(runs.list_metadata(&ListParams::default()).await?.items.is_empty().then_some(()))
    })
    .await
}
