//! Invalid NodeImages, stored under looser definitions than ours. The node's other work continues.

use anyhow::{Context as _, ensure};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, NodeImage, NodeImageStatus, PullPhase};

use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::{Node, Runtime, wait};
use serde_json::{Value, json};

use crate::cluster::{Cluster, node_images};
use crate::desk::{Desk, find};
use crate::loosen::without_rules;
use crate::program::Agent;
use prewarm_testkit::install;

const GOOD: &str = "registry.example/bad/web";
const FAR: &str = "2999-12-31T23:59:59Z";

/// Tags that were reported before the agent started, each in another way.
const REPORTED: [&str; 4] = ["v1", "v2", "v3", "v4"];

/// The number of entries in the spec, and how many of them name no image or the same image as another.
const ENTRIES: usize = 18;
const INVALID: usize = 9;

fn spec() -> Value {
    let policy = json!({ "ttlSecondsAfterFinished": 3600, "timeoutSeconds": 60, "backoffLimit": 1 });
    let tag = |tag: &str, version: i64| json!({ "tag": tag, "version": version, "pullPolicy": policy });
    let odd_policy = json!({ "ttlSecondsAfterFinished": -1, "timeoutSeconds": -5, "backoffLimit": -7 });
    let long = format!("registry.example/{}", "long/".repeat(200));
    json!({ "images": {
        GOOD: { "tags": [
            tag("v1", 5), tag("v2", 0), tag("v3", 0), tag("v4", 0),
            { "tag": "odd", "version": 0, "createdAt": FAR, "pullPolicy": odd_policy },
            { "tag": "bare" },
        ] },
        "registry.example/bad/twins": { "tags": [tag("v1", 3), tag("v1", 7), tag("v1", 5)] },
        "registry.example/bad/words": { "tags": [
            { "tag": "v1", "createdAt": "yesterday", "pullPolicy": policy },
            { "tag": "v2", "imagePullPolicy": "Sometimes", "pullPolicy": policy },
            { "tag": "", "pullPolicy": policy },
            { "tag": "!", "pullPolicy": policy },
            { "tag": "x".repeat(5000), "pullPolicy": policy },
        ] },
        "Registry.example//NAME": { "tags": [tag("v1", 0)] },
        "": { "tags": [tag("v1", 0)] },
        "no\u{e4}scii \u{1b}[31m": { "tags": [tag("v1", 0)] },
        long: { "tags": [tag("v1", 0)] },
    } })
}

/// An earlier status: a version in the future, a long message, and wrong clocks.
fn status() -> Value {
    let odd = |tag: &str, version: i64, phase: &str, rest: Value| {
        let mut odd = json!({ "tag": tag, "version": version, "phase": phase });
        for (key, value) in rest.as_object().expect("it is an object") {
            odd[key] = value.clone();
        }
        odd
    };
    json!({ "desired": -4, "succeeded": 99, "imageStatuses": {
        GOOD: { "tags": [
            odd("v1", 9, "Succeeded", json!({ "startTime": FAR, "completionTime": FAR })),
            odd("v2", 0, "Pulling", json!({ "message": "m".repeat(1_000_000), "startTime": "2020-01-01T00:00:00Z" })),
            odd("v3", 0, "Pulling", json!({ "startTime": FAR, "progress": 5000, "failedAttempts": -3 })),
            odd("v4", 0, "Pending", json!({ "completionTime": "tomorrow" })),
        ] },
    } })
}

pub async fn the_work_goes_on_around_entries_that_make_no_sense() -> anyhow::Result<()> {
    let loose: Vec<_> = node_images().iter().map(without_rules).collect();
    let cluster = &Cluster::start(&loose).await?;
    let image = Image::new("bad").layer(Layer::of(100_000)).build();
    cluster.registry.push("bad/web", &["v1", "v2", "v3", "v4", "v5", "odd", "bare"], &image).await?;
    cluster.registry.push("bad/twins", &["v1"], &image).await?;
    let node = cluster.node(Runtime::Containerd).await?;
    let desk = cluster.desk(&node)?;
    store(&desk).await?;
    let agent = Agent::start(cluster, &node, &[]).await?;

    let status = desk.settled(ENTRIES).await.with_context(|| agent.process.log_tail())?;
    good_ones_are_there(&status)?;
    bad_ones_say_why(&status)?;
    ensure!(json!(status).to_string().len() < 30_000, "nothing of the long message is left");

    install::definitions(&desk.client, &node_images()).await?;
    reports_go_on_under_our_rules(cluster, &node, &agent).await?;
    the_wrong_entries_can_be_taken_out(&desk).await?;
    agent.process.check()?;
    agent.was_refused_nothing()
}

/// The stored spec would be refused today, but its status is written all the same.
async fn reports_go_on_under_our_rules(cluster: &Cluster, node: &Node, agent: &Agent) -> anyhow::Result<()> {
    let desk = cluster.desk(node)?;
    wait::until("our rules to be in force", async || {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        let answer = desk.api.patch(&desk.node, &params, &Patch::Merge(another(json!({})))).await;
        Ok(answer.is_err().then_some(()))
    })
    .await?;
    // The registry is held until the loss is reported; a quick pull would leave nothing to report.
    cluster.registry.process.freeze()?;
    node.remove(&format!("{GOOD}:odd")).await?;
    let is = |phase: PullPhase| move |tag: &ImageTagStatus| (tag.phase == phase).then_some(());
    desk.until_tag("to be pulled again", (GOOD, "odd"), is(PullPhase::Pulling)).await?;
    cluster.registry.process.thaw()?;
    desk.until_tag("to be back", (GOOD, "odd"), is(PullPhase::Succeeded)).await?;
    let refused = agent.counter("prewarm_agent_api_writes_total{kind=\"status\",result=\"failed\"}").await?;
    ensure!(refused == 0, "{refused} reports were refused");
    Ok(())
}

async fn the_wrong_entries_can_be_taken_out(desk: &Desk) -> anyhow::Result<()> {
    let names = spec()["images"].as_object().context("there are images")?.clone();
    let nothing = names.into_iter().map(|(name, _)| (name, Value::Null)).collect();
    let patch = Patch::Merge(another(Value::Object(nothing)));
    desk.api.patch(&desk.node, &PatchParams::default(), &patch).await.context("correcting the NodeImage")?;
    desk.succeeded((GOOD, "v5"), 1).await?;
    let status = desk.settled(1).await?;
    ensure!(status.failed == 0 && status.succeeded == 1, "{status:?}");
    Ok(())
}

/// A change of the images that also asks for another tag.
fn another(mut images: Value) -> Value {
    let tag = json!({ "tag": "v5", "version": 1, "pullPolicy": { "ttlSecondsAfterFinished": 3600 } });
    images[GOOD] = json!({ "tags": [tag] });
    json!({ "spec": { "images": images } })
}

async fn store(desk: &Desk) -> anyhow::Result<()> {
    let object = DynamicObject::new(&desk.node, &ApiResource::erase::<NodeImage>(&()));
    let object = object.data(json!({ "spec": spec() }));
    desk.api.create(&PostParams::default(), &object).await.context("storing a bad NodeImage")?;
    let patch = Patch::Merge(json!({ "status": status() }));
    desk.api
        .patch_status(&desk.node, &PatchParams::default(), &patch)
        .await
        .context("storing a bad status")?;
    Ok(())
}

fn good_ones_are_there(status: &NodeImageStatus) -> anyhow::Result<()> {
    let now = jiff::Timestamp::now();
    for tag in REPORTED.into_iter().chain(["odd", "bare"]) {
        let tag = find(status, GOOD, tag).with_context(|| format!("{tag} has no status"))?;
        ensure!(tag.phase == PullPhase::Succeeded && tag.message.is_none() && tag.progress == 100, "{tag:?}");
        ensure!(tag.completion_time.as_ref().is_some_and(|time| time.0 <= now), "{tag:?}");
    }
    let version = find(status, GOOD, "v1").map(|tag| tag.version);
    ensure!(version == Some(5), "a version that went backwards is pulled as it is asked: {version:?}");
    Ok(())
}

fn bad_ones_say_why(status: &NodeImageStatus) -> anyhow::Result<()> {
    let images = status.image_statuses.as_ref().context("there are statuses")?;
    let twins = &images["registry.example/bad/twins"].tags;
    let counts = |phase: PullPhase| twins.iter().filter(move |tag| tag.phase == phase).map(|tag| tag.version);
    ensure!(counts(PullPhase::Succeeded).eq([7]), "{twins:?}");
    ensure!(counts(PullPhase::Failed).count() == 2, "{twins:?}");
    let has_reason = |tag: &ImageTagStatus| {
        let message = tag.message.as_deref().unwrap_or_default();
        let is_helpful = message.contains("correct") || message.contains("remove");
        is_helpful && message.len() <= 512 && !message.contains('\u{1b}') && tag.failure_class.is_some()
    };
    for (name, image) in images {
        for tag in image.tags.iter().filter(|tag| tag.phase != PullPhase::Succeeded) {
            ensure!(tag.phase == PullPhase::Failed && has_reason(tag), "{name:?}: {tag:?}");
        }
    }
    let invalid = images.values().flat_map(|image| &image.tags);
    let invalid = invalid.filter(|tag| tag.failure_class == Some(FailureClass::InvalidReference)).count();
    ensure!(invalid == INVALID, "{invalid} references are reported as invalid");
    Ok(())
}
