//! Runs that cannot start or that fail are reported.

use anyhow::ensure;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use serde_json::json;

use crate::world::{IMAGES, World, condition, list, pod};

/// The proposal: conditions, the last failed image, and an event.
pub async fn an_image_that_fails_is_named() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let missing = "registry.example/cron/missing:v1";
    let scene = world.cron("v1beta1", list(&[IMAGES[0], missing]), json!({})).await?;
    let failed = |cron: &_| condition(cron, "LastRunSucceeded").0 == "ImagesFailed";
    let cron = scene.until("a run that fails", failed).await?;
    let (_, message) = condition(&cron, "LastRunSucceeded");
    ensure!(message.ends_with(&format!("1 of 2 images are not on every node: {missing}")), "{message}");
    let image = cron.status.and_then(|status| status.last_failed_image);
    ensure!(image.as_deref() == Some(missing), "{image:?}");
    let message = scene.event("RunFailed").await?;
    ensure!(message.contains(missing), "{message}");
    scene.end().await
}

pub async fn a_run_that_the_server_refuses_is_named_in_its_words() -> anyhow::Result<()> {
    let world = World::shared().await?;
    // The definition does not contain the fields of Jobs; only the server can say what is wrong with one.
    let mut pod = pod(&["exit", "0"]);
    pod["spec"]["restartPolicy"] = json!("Sometimes");
    let scene = world.cron("v1beta1", json!({"jobTemplate": {"spec": {"template": pod}}}), json!({})).await?;
    let refused = |cron: &_| condition(cron, "Scheduling").0 == "Refused";
    let (_, message) = condition(&scene.until("a refusal", refused).await?, "Scheduling");
    let words = "spec.template.spec.restartPolicy";
    ensure!(message.contains("does not take Job nightly-") && message.contains(words), "{message}");
    let message = scene.event("RunRefused").await?;
    ensure!(message.contains(words), "{message}");
    ensure!(scene.runs::<Job>()?.list_metadata(&ListParams::default()).await?.items.is_empty());
    scene.end().await
}

/// kruise T106.
pub async fn a_schedule_that_cannot_run_is_reported() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let spec = json!({"schedule": "0 2 * * *", "timeZone": "Mars/Olympus"});
    let scene = world.cron("v1alpha1", list(&IMAGES), spec).await?;
    let unknown = |cron: &_| condition(cron, "Scheduling").0 == "UnknownTimeZone";
    scene.until("the condition", unknown).await?;
    let message = scene.event("UnknownTimeZone").await?;
    ensure!(message.contains("Mars/Olympus"), "{message}");
    scene.end().await
}
