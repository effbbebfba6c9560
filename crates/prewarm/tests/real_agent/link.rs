//! The node's network link: slow, cut for a moment, cut for longer than an attempt may take.

use anyhow::ensure;
use prewarm_api::kruise::{ImageTagStatus, PullPhase};
use prewarm_testkit::image::{Artifact, Image, Layer};
use prewarm_testkit::{Node, Runtime, wait};

use crate::cluster::Cluster;
use crate::desk::{Desk, entry, spec};
use crate::program::Agent;

const MIB: usize = 1024 * 1024;
const IMAGE: (&str, &str) = ("registry.example/link/large", "v1");
/// Ten megabits per second: the image takes longer than the interval between progress reports.
const PACE: u64 = 10_000_000;

struct Scene {
    node: Node,
    desk: Desk,
    agent: Agent,
    image: Artifact,
}

impl Scene {
    async fn set() -> anyhow::Result<Self> {
        let cluster = Cluster::shared().await?;
        let image = Image::new("cable").layers(2, Layer::of(6 * MIB)).build();
        cluster.registry.push("link/large", &["v1"], &image).await?;
        let node = cluster.node(Runtime::Containerd).await?;
        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
        desk.ask(&spec([])).await?;
        agent.ready().await?;
        node.slow(PACE)?;
        Ok(Self { node, desk, agent, image })
    }

    /// Waits until the node has received this much of the image.
    async fn receive(&self, bytes: u64) -> anyhow::Result<()> {
        let goal = self.node.bytes_received()? + bytes;
        wait::until("the download", async || Ok((self.node.bytes_received()? >= goal).then_some(()))).await
    }
}

pub async fn a_slow_pull_tells_how_far_it_is() -> anyhow::Result<()> {
    let scene = Scene::set().await?;
    scene.desk.ask(&spec([(IMAGE.0, vec![entry(IMAGE.1)])])).await?;
    let is_under_way = |tag: &ImageTagStatus| {
        let is_between = (1..=99).contains(&tag.progress) && tag.phase == PullPhase::Pulling;
        is_between.then(|| (tag.bytes_done.unwrap_or(0), tag.bytes_total.unwrap_or(0)))
    };
    let (done, total) = scene.desk.until_tag("to be under way", IMAGE, is_under_way).await?;
    let blobs: usize = scene.image.blobs.iter().map(|blob| blob.bytes.len()).sum();
    ensure!(
        0 < done && done < total && usize::try_from(total)? == blobs,
        "{done} of {total}, not of {blobs}"
    );
    scene.node.restore()?;
    let tag = scene.desk.succeeded(IMAGE, 0).await?;
    ensure!(tag.progress == 100 && tag.bytes_done == tag.bytes_total && tag.failed_attempts == 0, "{tag:?}");
    Ok(())
}

pub async fn a_pull_goes_on_after_a_short_cut() -> anyhow::Result<()> {
    let scene = Scene::set().await?;
    scene.desk.ask(&spec([(IMAGE.0, vec![entry(IMAGE.1)])])).await?;
    scene.receive(2 * MIB as u64).await?;
    scene.node.cut()?;
    let received = scene.node.bytes_received()?;
    // The test is about the length of the cut; the connections survive it.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ensure!(scene.node.bytes_received()? < received + MIB as u64, "the cable was not cut");
    scene.node.restore()?;
    let tag = scene.desk.succeeded(IMAGE, 0).await?;
    ensure!(tag.failed_attempts == 0, "{tag:?}");
    Ok(())
}

pub async fn an_attempt_ends_during_a_long_cut_and_the_next_one_arrives() -> anyhow::Result<()> {
    let scene = Scene::set().await?;
    let mut patient = entry(IMAGE.1);
    (patient.pull_policy.timeout_seconds, patient.pull_policy.backoff_limit) = (5, 20);
    scene.desk.ask(&spec([(IMAGE.0, vec![patient])])).await?;
    scene.receive(MIB as u64).await?;
    scene.node.cut()?;
    wait::until("a second attempt", async || {
        scene.agent.process.check()?;
        let attempts = scene.agent.process.log().matches("attempting").count();
        Ok((attempts >= 2).then_some(()))
    })
    .await?;
    scene.node.restore()?;
    let tag = scene.desk.succeeded(IMAGE, 0).await?;
    ensure!(tag.failed_attempts >= 1, "{tag:?}");
    Ok(())
}
