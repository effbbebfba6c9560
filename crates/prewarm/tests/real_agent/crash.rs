//! An image during whose pull containerd dies, each time.

use anyhow::{Context as _, ensure};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, PullPhase};
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Runtime, wait};

use crate::cluster::Cluster;
use crate::desk::{entry, spec};
use crate::program::Agent;

const BAD: (&str, &str) = ("watched.example/crash/bad", "v1");
const GOOD: (&str, &str) = ("registry.example/crash/good", "v1");
const LATER: (&str, &str) = ("registry.example/crash/later", "v1");
/// The layer stops after so many bytes, so that a slow machine is in the middle of it as well.
const MIDDLE: u64 = 64 * 1024;
/// How often the runtime may die of one image.
const CRASHES: i32 = 3;

pub async fn an_image_that_kills_containerd_fails_by_itself_and_all_others_are_pulled() -> anyhow::Result<()>
{
    let cluster = Cluster::shared().await?;
    let node = cluster.node(Runtime::Containerd).await?;
    let proxy = FaultProxy::start(&cluster.registry).await?;
    node.lead("watched.example", &proxy)?;
    let bad = Image::new("crash bad").layer(Layer::of(3_000_000)).build();
    cluster.registry.push("crash/bad", &[BAD.1], &bad).await?;
    for name in ["crash/good", "crash/later"] {
        let image = Image::new(name).layer(Layer::of(100_000)).build();
        cluster.registry.push(name, &["v1"], &image).await?;
    }
    let layer = On::Path(bad.blobs[1].digest.clone());
    proxy.fail(layer.clone(), Fault::Stall(MIDDLE));
    let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
    desk.ask(&spec([(BAD.0, vec![entry(BAD.1)]), (GOOD.0, vec![entry(GOOD.1)])])).await?;
    for crash in 1..=CRASHES {
        wait::until("the pull of the bad image", async || {
            agent.process.check()?;
            let is_pulled = proxy.requests_on(&layer).iter().any(|seen| seen.bytes >= MIDDLE);
            Ok(is_pulled.then_some(()))
        })
        .await?;
        node.runtime.kill()?;
        proxy.forget();
        node.runtime.spawn()?;
        node.ready().await.context("containerd after it was killed")?;
        let counted = |tag: &ImageTagStatus| (tag.interruptions >= crash).then_some(());
        desk.until_tag("to be counted", BAD, counted).await?;
    }
    let failed = desk.ended(BAD, 0).await?;
    ensure!(
        failed.phase == PullPhase::Failed && failed.failure_class == Some(FailureClass::RuntimeCrash),
        "{failed:?}"
    );
    ensure!(failed.interruptions == CRASHES && failed.failed_attempts == 1, "{failed:?}");
    ensure!(desk.succeeded(GOOD, 0).await?.failed_attempts == 0);
    let asked = [BAD, GOOD, LATER].map(|(name, tag)| (name, vec![entry(tag)]));
    desk.ask(&spec(asked)).await?;
    desk.succeeded(LATER, 0).await?;
    agent.was_refused_nothing()
}
