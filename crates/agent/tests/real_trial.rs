//! `MirrorOnly` on the real containerds of several releases: kept where the agent's trial of their store succeeds; where it fails,
//! refused or left to the runtime, with the reason.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "whole/node/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the suite on fakes needs more of it")]
mod node;

use std::fs;

use anyhow::{Context as _, ensure};
use node::{image_of, policy, tag, with};
use prewarm_agent::config::{Fallback, Mirrors, NodeMirrors, RuntimeChoice, Verifiers};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, PullPhase};
use prewarm_bed::inside;
use prewarm_runtime::Endpoint;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::node::Configure;
use prewarm_testkit::registry::Upstream as _;
use prewarm_testkit::registry::fault::{Fault, On, Seen};
use prewarm_testkit::{Containerd, FaultProxy, Node, Registry, real_tests};
use serde_json::json;

real_tests! {
    an_image_comes_from_a_mirror_on_containerd_2_2,
    an_image_comes_from_a_mirror_on_containerd_1_7,
    a_containerd_without_a_transfer_service_refuses_and_says_why,
    a_containerd_without_a_transfer_service_pulls_by_itself_if_the_flag_says_so,
}

const NAME: &str = "registry.example/shop/web";

/// What a containerd before 1.7 lacks.
const TRANSFER: &[&str] = &["io.containerd.grpc.v1.transfer", "io.containerd.grpc.v1.streaming"];

struct Bed {
    /// Runs for as long as the bed.
    _registry: Registry,
    /// The image's own registry; every request is seen.
    upstream: FaultProxy,
    machine: Node,
    agent: node::Node,
}

impl Bed {
    /// A node whose only mirror has the image.
    async fn start(machine: Configure<'_>, fallback: Fallback) -> anyhow::Result<Self> {
        let registry = Registry::start().await?;
        let image = Image::new("shop").layers(2, Layer::of(1_000_000)).build();
        registry.push("shop/web", &["v1"], &image).await?;
        let upstream = FaultProxy::start(&registry).await?;
        let machine = machine.start(&upstream).await?;
        let hosts = inside::directory(&format!("{}-hosts", machine.name()))?;
        let directory = hosts.join("registry.example");
        fs::create_dir_all(&directory)?;
        let text = format!("server = \"{}\"\n[host.\"{}\"]\n", upstream.url(), registry.url());
        fs::write(directory.join("hosts.toml"), text).context("writing hosts.toml")?;
        let mut agent = node::Node::new();
        agent.config.runtime = RuntimeChoice::Given(Endpoint::unix(machine.socket()));
        agent.config.mirrors = Mirrors::OfNode(NodeMirrors {
            directory: hosts,
            verifiers: Verifiers::None,
            fallback,
            ..NodeMirrors::default()
        });
        let entry = policy(tag("v1"), &json!({ "backoffLimit": 0 }));
        let entry = with(entry, &json!({ "registryPolicy": "MirrorOnly" }));
        agent.ask(json!({ NAME: image_of(vec![entry]) })).await;
        Ok(Self { _registry: registry, upstream, machine, agent })
    }

    async fn settled(&mut self) -> ImageTagStatus {
        self.agent.start();
        self.agent.settled(1).await;
        self.agent.tag(NAME, "v1").await
    }
}

async fn an_image_comes_from_a_mirror_on_containerd_2_2() -> anyhow::Result<()> {
    comes_from_a_mirror(Containerd::V2_2).await
}

async fn an_image_comes_from_a_mirror_on_containerd_1_7() -> anyhow::Result<()> {
    comes_from_a_mirror(Containerd::V1_7).await
}

async fn comes_from_a_mirror(release: Containerd) -> anyhow::Result<()> {
    let mut bed = Bed::start(Node::configure().containerd(release), Fallback::Refuse).await?;
    bed.upstream.fail(On::Anything, Fault::Reset);
    let status = bed.settled().await;
    ensure!(status.phase == PullPhase::Succeeded, "{status:?}");
    ensure!(bed.upstream.requests().is_empty(), "{:?}", bed.upstream.requests());
    ensure!(bed.machine.images().await? == [format!("{NAME}:v1")]);
    Ok(())
}

async fn a_containerd_without_a_transfer_service_refuses_and_says_why() -> anyhow::Result<()> {
    let mut bed = Bed::start(Node::configure().without(TRANSFER), Fallback::Refuse).await?;
    let status = bed.settled().await;
    ensure!(status.phase == PullPhase::Failed, "{status:?}");
    ensure!(status.failure_class == Some(FailureClass::Unknown), "{status:?}");
    let message = status.message.unwrap();
    ensure!(
        message.contains(
            "MirrorOnly cannot be kept with this containerd: a trial at its start failed: this containerd has no \
             transfer service; version 1.7 or newer has one"
        ),
        "{message}"
    );
    ensure!(message.ends_with("let the runtime pull with --mirror-only-fallback=runtime"), "{message}");
    ensure!(bed.upstream.requests().is_empty(), "{:?}", bed.upstream.requests());
    ensure!(bed.machine.images().await?.is_empty());
    Ok(())
}

async fn a_containerd_without_a_transfer_service_pulls_by_itself_if_the_flag_says_so() -> anyhow::Result<()> {
    let mut bed = Bed::start(Node::configure().without(TRANSFER), Fallback::Runtime).await?;
    let status = bed.settled().await;
    ensure!(status.phase == PullPhase::Succeeded, "{status:?}");
    ensure!(bed.upstream.requests().iter().any(Seen::is_download), "{:?}", bed.upstream.requests());
    Ok(())
}
