//! Mirrors that lie, stall, fail or have nothing: each is named in the status of its node, and nothing wrong enters a store.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use http::StatusCode;
use prewarm_api::names::condition::NO_IMAGE_PULL_FAILED;
use prewarm_api::names::image_state;
use prewarm_api::ofen::{ContainerImageStatus, ImagePrefetchStatus, RegistryPolicy};
use prewarm_testkit::FaultProxy;
use prewarm_testkit::registry::fault::{Fault, On};
use serde_json::json;

use crate::fleet::{Fleet, held, shows};
use crate::prefetch::{Prefetch, Seen};
use crate::shop::Shop;

/// What a mirror does, what the status says of it, and the state in which that puts the image.
const FAULTS: [(Fault, &str, &str); 4] = [
    (Fault::WrongBytes, "other content than", image_state::FAILED),
    // So little of a layer is no reason to ask the same mirror for the rest.
    (Fault::Stall(5000), "stalled at byte 5000", image_state::FAILED),
    (Fault::Status(StatusCode::NOT_FOUND), "does not have it (404)", image_state::TEMPORARILY_FAILED),
    (Fault::Status(StatusCode::INTERNAL_SERVER_ERROR), "answers 500", image_state::FAILED),
];
/// Nodes with good mirrors.
const GOOD: usize = 2;

pub async fn bad_mirrors_are_named_and_nothing_wrong_enters_a_store() -> anyhow::Result<()> {
    let fleet = Fleet::shared().await?;
    let shop = Shop::open(fleet, "spoiled").await?;
    let image = shop.publish("image").await?;
    // The first node has it already, and its mirror is good, so that it is the one that asks the registry.
    let (first, wider) = ("spoiled-first", "spoiled-party");
    fleet.label(1, first).await?;
    fleet.label(GOOD + FAULTS.len(), wider).await?;
    let spec = json!({
        "images": [image.name], "allNodes": true, "nodeSelector": {"matchLabels": {first: "true"}},
    });
    let prefetch = Prefetch::make(fleet, "default", "spoiled", &spec).await?;
    prefetch.ready(1).await?;
    let mut spoiled = BTreeMap::new();
    for (place, (fault, words, state)) in (GOOD..).zip(FAULTS) {
        let (node, mirror) = (&fleet.nodes[place], FaultProxy::start(&fleet.mirrors[place]).await?);
        mirror.fail(On::Blobs, fault);
        shop.mirror(node, &mirror)?;
        spoiled.insert(node.name(), (node, mirror, words, state));
    }
    prefetch.change(&json!({"nodeSelector": {"matchLabels": {first: null, wider: "true"}}})).await?;
    let is_said = |status: &ContainerImageStatus, mirror: &FaultProxy, words: &str, state: &str| {
        let error = status.error.as_deref().unwrap_or_default();
        status.last_state.as_deref() == Some(state) && error.contains(mirror.host()) && error.contains(words)
    };
    let failing = FAULTS.iter().filter(|(_, _, state)| *state == image_state::FAILED).count();
    let is_complete = |status: &ImagePrefetchStatus, seen: &Seen| {
        let mut conditions = status.conditions.iter().flatten();
        let says_so = conditions.any(|one| one.type_ == NO_IMAGE_PULL_FAILED && one.status == "False");
        let is_named = spoiled.iter().all(|(node, (_, mirror, words, state))| {
            seen.get(*node).is_some_and(|(_, status)| is_said(status, mirror, words, state))
        });
        let (pulled, failed) = (status.image_pulled_nodes, status.image_pull_failed_nodes);
        is_named && says_so && usize::try_from(pulled) == Ok(GOOD) && usize::try_from(failed) == Ok(failing)
    };
    let seen = prefetch.until("every bad mirror to be named", is_complete).await?;
    for (node, mirror, ..) in spoiled.values() {
        ensure!(seen[node.name()].0 == RegistryPolicy::MirrorOnly, "{seen:?}");
        ensure!(!shows(node, &image.name).await?, "{} shows it", node.name());
        let layers = &image.artifact.blobs[1..];
        let held = held(node, &image.artifact)?;
        ensure!(layers.iter().all(|layer| !held.contains(&layer.digest)), "{} has {held:?}", node.name());
        mirror.heal();
    }
    prefetch.ready(GOOD + FAULTS.len()).await?;
    let parts = image.artifact.blobs.len() + image.artifact.manifests.len();
    for node in &fleet.nodes[..GOOD + FAULTS.len()] {
        ensure!(held(node, &image.artifact)?.len() == parts, "{} has not all of it", node.name());
    }
    shop.was_asked_once(&image).context("the registry was asked instead of a mirror")
}
