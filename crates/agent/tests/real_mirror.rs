//! `MirrorOnly` on a real containerd, with a real registry as the mirror and the image's own registry cut off: nothing is asked of
//! it, nothing wrong enters, and the status says what is the matter.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "real_mirror/kept.rs"]
mod kept;
#[path = "whole/node/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the suite on fakes needs more of it")]
mod node;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::StatusCode;
use kept::{
    an_image_does_not_wait_at_layers_that_another_one_brings,
    nothing_is_kept_of_an_image_that_failed_for_good, nothing_is_kept_of_an_image_that_is_withdrawn,
    nothing_is_kept_of_any_image_when_the_disk_is_full,
};
use node::{image_of, tag, tag_of, with};
use prewarm_agent::config::{Mirrors, NodeMirrors, Patience, RuntimeChoice, Verifiers};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, NodeImageStatus, PullPhase};
use prewarm_bed::inside;
use prewarm_runtime::{Endpoint, Runtime};
use prewarm_testkit::image::{Artifact, Image, Layer, index, native_architecture};
use prewarm_testkit::registry::Upstream as _;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Node, Registry, real_tests, wait};
use serde_json::{Value, json};

real_tests! {
    an_image_comes_from_a_mirror_while_its_registry_is_cut_off,
    a_name_stands_for_the_digest_that_is_asked_for_although_the_mirror_has_another,
    what_the_mirror_lacks_comes_as_soon_as_it_has_it,
    a_mirror_that_lies_is_left_for_the_next_one,
    a_mirror_that_only_lies_is_named_and_nothing_of_it_stays,
    mirrors_that_stall_fail_or_break_off_are_left_for_the_next_one,
    a_mirror_that_fails_is_named_in_the_status,
    without_mirrors_the_status_says_which_file_was_looked_at,
    a_killed_agent_goes_on_where_it_stopped,
    an_image_that_is_removed_is_missed_and_comes_from_a_mirror_again,
    an_image_for_another_platform_is_refused,
    nothing_is_kept_of_an_image_that_is_withdrawn,
    nothing_is_kept_of_an_image_that_failed_for_good,
    nothing_is_kept_of_any_image_when_the_disk_is_full,
    an_image_does_not_wait_at_layers_that_another_one_brings,
}

const NAME: &str = "registry.example/shop/web";
const LAYER: usize = 2_000_000;

struct Bed {
    registry: Registry,
    /// What the node's containerd would ask. Everything fails there, and every request is seen.
    upstream: FaultProxy,
    mirrors: [FaultProxy; 2],
    hosts: PathBuf,
    machine: Node,
    agent: node::Node,
}

impl Bed {
    async fn start() -> anyhow::Result<Self> {
        let registry = Registry::start().await?;
        let upstream = FaultProxy::start(&registry).await?;
        upstream.fail(On::Anything, Fault::Reset);
        let mirrors = [FaultProxy::start(&registry).await?, FaultProxy::start(&registry).await?];
        let machine = Node::configure().start(&upstream).await?;
        let hosts = inside::directory(&format!("{}-hosts", machine.name()))?;
        let mut agent = node::Node::new();
        agent.config.runtime = RuntimeChoice::Given(Endpoint::unix(machine.socket()));
        agent.config.mirrors = Mirrors::OfNode(NodeMirrors {
            directory: hosts.clone(),
            verifiers: Verifiers::None,
            patience: Patience { stall: Duration::from_secs(1), ..Patience::default() },
            ..NodeMirrors::default()
        });
        Ok(Self { registry, upstream, mirrors, hosts, machine, agent })
    }

    /// Writes the node's file of mirrors: the first so many.
    fn configure(&self, count: usize) -> anyhow::Result<()> {
        let directory = self.hosts.join("registry.example");
        fs::create_dir_all(&directory)?;
        let mut text = format!("server = \"{}\"\n", self.upstream.url());
        for mirror in &self.mirrors[..count] {
            writeln!(text, "[host.\"{}\"]\n  capabilities = [\"pull\", \"resolve\"]", mirror.url())?;
        }
        fs::write(directory.join("hosts.toml"), text).context("writing hosts.toml")
    }

    async fn push(&self, artifact: &Artifact) -> anyhow::Result<()> {
        self.registry.push("shop/web", &["v1"], artifact).await
    }

    async fn ask(&self, entry: &Value) {
        let entry = with(tag("v1"), entry);
        let entry = with(entry, &json!({ "registryPolicy": "MirrorOnly" }));
        self.agent.ask(json!({ NAME: image_of(vec![entry]) })).await;
    }

    async fn status(&self, what: &str, is_wanted: impl Fn(&ImageTagStatus) -> bool) -> ImageTagStatus {
        let status =
            self.agent.until(what, |status| tag_of(status, NAME, "v1").is_some_and(|tag| is_wanted(&tag)));
        let status = status.await;
        tag_of(&status, NAME, "v1").unwrap()
    }

    /// The image is there, in the way that pods find it, and the registry was asked nothing.
    async fn arrived(&self, artifact: &Artifact) -> anyhow::Result<()> {
        let status = self.status("the image", |tag| tag.phase == PullPhase::Succeeded).await;
        ensure!(status.digest.as_deref() == Some(artifact.digest()), "{status:?}");
        let listed = self.machine.cri()?.images().await?;
        let is_it = |name: &String| *name == format!("{NAME}@{}", artifact.digest());
        ensure!(listed.iter().any(|image| image.digests.iter().any(is_it)), "{listed:?}");
        self.asked_nothing()?;
        let leases = self.machine.ctr(["leases", "ls", "-q"]).await?;
        ensure!(leases.trim().is_empty(), "a lease is left: {leases}");
        Ok(())
    }

    fn asked_nothing(&self) -> anyhow::Result<()> {
        ensure!(self.upstream.requests().is_empty(), "{:?}", self.upstream.requests());
        Ok(())
    }

    /// None of the image's layers is in the store.
    async fn holds_nothing_of(&self, artifact: &Artifact) -> anyhow::Result<()> {
        let runtime = Runtime::connect(&Endpoint::unix(self.machine.socket())).await?;
        let store = runtime.content_store().context("a containerd has a content store")?;
        for blob in artifact.blobs.iter().filter(|blob| blob.bytes.len() > LAYER / 2) {
            ensure!(store.size(&blob.digest).await?.is_none(), "{} entered", blob.digest);
        }
        ensure!(self.machine.images().await?.is_empty(), "an image has a name");
        Ok(())
    }
}

fn image(seed: &str) -> Image {
    Image::new(seed).layers(3, Layer::of(LAYER))
}

async fn an_image_comes_from_a_mirror_while_its_registry_is_cut_off() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let other = if native_architecture() == "amd64" { "arm64" } else { "amd64" };
    let foreign = Image::new("foreign").architecture(other).layer(Layer::of(LAYER));
    let artifact = index(&[foreign.clone(), image("native")]);
    bed.push(&artifact).await?;
    bed.configure(1)?;
    bed.ask(&json!({})).await;
    bed.agent.start();
    bed.arrived(&artifact).await?;
    let fetched = bed.mirrors[0].requests_on(&On::Blobs);
    let foreign = foreign.build();
    ensure!(
        foreign.blobs.iter().all(|blob| fetched.iter().all(|seen| !seen.path.contains(&blob.digest))),
        "other platforms stay where they are"
    );
    ensure!(fetched.len() == 4, "config and layers once each: {fetched:?}");
    // The kubelet's image collection frees everything.
    bed.agent.stop().await;
    bed.machine.cri()?.remove(&format!("{NAME}:v1")).await?;
    bed.holds_nothing_of(&image("native").build()).await
}

async fn a_name_stands_for_the_digest_that_is_asked_for_although_the_mirror_has_another() -> anyhow::Result<()>
{
    let mut bed = Bed::start().await?;
    let (first, later) = (image("first").build(), image("later").build());
    bed.push(&first).await?;
    bed.push(&later).await?;
    bed.configure(1)?;
    bed.ask(&json!({ "digest": first.digest() })).await;
    bed.agent.start();
    bed.arrived(&first).await
}

async fn what_the_mirror_lacks_comes_as_soon_as_it_has_it() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = image("late").build();
    bed.configure(2)?;
    bed.ask(&json!({ "pullPolicy": { "backoffLimit": 0 } })).await;
    bed.agent.start();
    let status = bed.status("it to be missed", |tag| tag.failure_class.is_some()).await;
    ensure!(status.failure_class == Some(FailureClass::NotFound), "{status:?}");
    let message = status.message.unwrap_or_default();
    ensure!(message.contains(bed.mirrors[0].host()) && message.contains("404"), "{message}");
    bed.push(&artifact).await?;
    bed.arrived(&artifact).await
}

async fn a_mirror_that_lies_is_left_for_the_next_one() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = image("lied about").build();
    bed.push(&artifact).await?;
    bed.mirrors[0].fail(On::Anything, Fault::WrongBytes);
    bed.configure(2)?;
    bed.ask(&json!({ "digest": artifact.digest() })).await;
    bed.agent.start();
    bed.arrived(&artifact).await
}

async fn a_mirror_that_only_lies_is_named_and_nothing_of_it_stays() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = image("only lies").build();
    bed.push(&artifact).await?;
    bed.mirrors[0].fail(On::Blobs, Fault::WrongBytes);
    bed.configure(1)?;
    bed.ask(&json!({ "pullPolicy": { "backoffLimit": 1 } })).await;
    bed.agent.start();
    let status = bed.status("its end", |tag| tag.phase == PullPhase::Failed).await;
    ensure!(status.failure_class == Some(FailureClass::Corrupt), "{status:?}");
    let message = status.message.unwrap_or_default();
    ensure!(message.contains(bed.mirrors[0].host()), "{message}");
    bed.holds_nothing_of(&artifact).await?;
    bed.mirrors[0].heal();
    bed.agent.change(json!({ NAME: image_of(vec![with(tag("v1"), &json!({ "registryPolicy": "MirrorOnly", "version": 1 }))]) })).await;
    bed.arrived(&artifact).await
}

async fn mirrors_that_stall_fail_or_break_off_are_left_for_the_next_one() -> anyhow::Result<()> {
    for fault in [
        Fault::Stall(300_000),
        Fault::Truncate(300_000),
        Fault::Status(StatusCode::INTERNAL_SERVER_ERROR),
        Fault::Status(StatusCode::NOT_FOUND),
        Fault::Reset,
    ] {
        let mut bed = Bed::start().await?;
        let artifact = image("left").build();
        bed.push(&artifact).await?;
        bed.mirrors[0].fail(On::Blobs, fault.clone());
        bed.configure(2)?;
        bed.ask(&json!({})).await;
        bed.agent.start();
        bed.arrived(&artifact).await.with_context(|| format!("{fault:?}"))?;
        let resumed = bed.mirrors[1].requests_on(&On::Blobs).iter().any(|seen| seen.range.is_some());
        let has_begun = matches!(fault, Fault::Stall(_) | Fault::Truncate(_));
        ensure!(resumed == has_begun, "{fault:?}: what had arrived is not fetched again");
    }
    Ok(())
}

async fn a_mirror_that_fails_is_named_in_the_status() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = image("fails").build();
    bed.push(&artifact).await?;
    bed.mirrors[0].fail(On::Manifests, Fault::Status(StatusCode::INTERNAL_SERVER_ERROR));
    bed.configure(1)?;
    bed.ask(&json!({ "pullPolicy": { "backoffLimit": 0 } })).await;
    bed.agent.start();
    let status = bed.status("its end", |tag| tag.phase == PullPhase::Failed).await;
    ensure!(status.failure_class == Some(FailureClass::Unreachable), "{status:?}");
    let message = status.message.unwrap_or_default();
    ensure!(message.contains(bed.mirrors[0].host()) && message.contains("500"), "{message}");
    bed.holds_nothing_of(&artifact).await?;
    bed.asked_nothing()
}

async fn without_mirrors_the_status_says_which_file_was_looked_at() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    bed.ask(&json!({ "pullPolicy": { "backoffLimit": 0 } })).await;
    bed.agent.start();
    let status = bed.status("its end", |tag| tag.phase == PullPhase::Failed).await;
    let message = status.message.unwrap_or_default();
    let place = bed.hosts.join("registry.example");
    ensure!(message.contains(&place.display().to_string()), "{message}");
    bed.configure(0)?;
    let again = with(
        tag("v1"),
        &json!({ "registryPolicy": "MirrorOnly", "version": 1, "pullPolicy": { "backoffLimit": 0 } }),
    );
    bed.agent.change(json!({ NAME: image_of(vec![again]) })).await;
    let ended = |tag: &ImageTagStatus| tag.version == 1 && tag.phase == PullPhase::Failed;
    let message = bed.status("its end", ended).await.message.unwrap_or_default();
    ensure!(message.contains("hosts.toml") && message.contains("no mirror"), "{message}");
    bed.asked_nothing()
}

async fn a_killed_agent_goes_on_where_it_stopped() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = Image::new("killed").layer(Layer::of(4 * LAYER)).build();
    bed.push(&artifact).await?;
    bed.configure(1)?;
    bed.mirrors[0].fail(On::Blobs, Fault::Stall(2_000_000));
    bed.ask(&json!({})).await;
    bed.agent.start();
    let begun = || bed.mirrors[0].requests_on(&On::Blobs).iter().any(|seen| seen.bytes >= 2_000_000);
    wait::until("half of the layer", async || Ok(begun().then_some(()))).await?;
    bed.begun(1).await?;
    bed.agent.kill().await;
    bed.mirrors[0].heal();
    bed.mirrors[0].forget();
    bed.agent.start();
    bed.arrived(&artifact).await?;
    let ranges: Vec<_> =
        bed.mirrors[0].requests_on(&On::Blobs).into_iter().filter_map(|seen| seen.range).collect();
    ensure!(!ranges.is_empty(), "the layer was fetched from its beginning");
    Ok(())
}

/// ofen C17
async fn an_image_that_is_removed_is_missed_and_comes_from_a_mirror_again() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = image("removed").build();
    bed.push(&artifact).await?;
    bed.registry.push("shop/web", &["v2"], &image("stays").build()).await?;
    bed.configure(1)?;
    let entry = |name| with(tag(name), &json!({ "registryPolicy": "MirrorOnly" }));
    bed.agent.ask(json!({ NAME: image_of(vec![entry("v1"), entry("v2")]) })).await;
    bed.agent.start();
    ensure!(bed.agent.settled(2).await.succeeded == 2, "{:?}", bed.agent.status().await);
    // Until somebody has looked, no mirror has it.
    bed.mirrors[0].fail(On::Anything, Fault::Status(StatusCode::NOT_FOUND));
    bed.machine.cri()?.remove(&format!("{NAME}:v1")).await?;
    let is_missed = |status: &NodeImageStatus| {
        status.succeeded == 1 && tag_of(status, NAME, "v1").is_some_and(|tag| tag.lost_at.is_some())
    };
    let status = bed.agent.until("the loss", is_missed).await;
    ensure!((status.desired, status.failed) == (2, 0), "{status:?}");
    bed.mirrors[0].heal();
    bed.arrived(&artifact).await
}

async fn an_image_for_another_platform_is_refused() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let other = if native_architecture() == "amd64" { "s390x" } else { "amd64" };
    let artifact = image("foreign").architecture(other).build();
    bed.push(&artifact).await?;
    bed.configure(1)?;
    bed.ask(&json!({ "pullPolicy": { "backoffLimit": 0 } })).await;
    bed.agent.start();
    let status = bed.status("its end", |tag| tag.phase == PullPhase::Failed).await;
    ensure!(status.failure_class == Some(FailureClass::NoPlatform), "{status:?}");
    bed.holds_nothing_of(&artifact).await
}
