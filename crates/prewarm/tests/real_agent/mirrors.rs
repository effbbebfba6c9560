//! Images that must come from mirrors alone, by the flags of the deployed agent: as nobody, who may read the directory of mirrors and
//! nothing of containerd but its socket.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, ensure};
use prewarm_api::kruise::{ImageTagSpec, PullPhase};
use prewarm_api::ofen::RegistryPolicy;
use prewarm_bed::inside;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::registry::Upstream as _;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Node, Runtime};

use crate::cluster::Cluster;
use crate::desk::{entry, spec};
use crate::program::Agent;

const NAME: &str = "registry.example/mirrored/web";

pub async fn an_image_comes_from_mirrors_alone_by_the_flags_of_the_agent() -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    // As much as to see in the agent's memory whether it is held there.
    let artifact = Image::new("mirrored").layers(3, Layer::of(40_000_000)).build();
    cluster.registry.push("mirrored/web", &["v1"], &artifact).await?;
    let upstream = FaultProxy::start(&cluster.registry).await?;
    upstream.fail(On::Anything, Fault::Reset);
    let node = Node::configure().start(&upstream).await?;
    let hosts = inside::directory(&format!("{}-hosts", node.name()))?;
    let directory = hosts.join("registry.example");
    fs::create_dir_all(&directory)?;
    let mirror = cluster.registry.url();
    fs::write(
        directory.join("hosts.toml"),
        format!("[host.\"{mirror}\"]\n  capabilities = [\"pull\", \"resolve\"]\n"),
    )?;
    fs::set_permissions(&hosts, fs::Permissions::from_mode(0o755))?;
    let hosts = hosts.to_str().context("a bed's paths are text")?;
    let flags = ["--image-verifiers=none", "--containerd-host-dir", hosts];
    let agent = Agent::start(cluster, &node, &flags).await?;
    let desk = cluster.desk(&node)?;
    desk.ask(&spec([(NAME, vec![mirror_only()])])).await?;
    let status = desk.succeeded((NAME, "v1"), 0).await?;
    ensure!(status.digest.as_deref() == Some(artifact.digest()), "{status:?}");
    ensure!(node.images().await?.contains(&format!("{NAME}:v1")));
    ensure!(upstream.requests().is_empty(), "{:?}", upstream.requests());
    agent.was_refused_nothing()?;
    let peak = agent.peak_mebibytes()?;
    println!("peak resident memory with 120 MB from mirrors: {peak:.1} MiB");
    ensure!(peak < 64.0, "a layer is not held in memory, and {peak:.1} MiB were");
    Ok(())
}

pub async fn cri_o_refuses_images_that_must_come_from_mirrors_alone() -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    let node = cluster.node(Runtime::Crio).await?;
    let _agent = Agent::start(cluster, &node, &["--image-verifiers=none"]).await?;
    let desk = cluster.desk(&node)?;
    desk.ask(&spec([(NAME, vec![mirror_only()])])).await?;
    let status = desk.ended((NAME, "v1"), 0).await?;
    let message = status.message.unwrap_or_default();
    ensure!(
        status.phase == PullPhase::Failed && message.contains("MirrorOnly cannot be kept with cri-o"),
        "{message}"
    );
    Ok(())
}

fn mirror_only() -> ImageTagSpec {
    ImageTagSpec { registry_policy: Some(RegistryPolicy::MirrorOnly), ..entry("v1") }
}
