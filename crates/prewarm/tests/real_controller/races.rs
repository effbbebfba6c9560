//! Two controllers and one Lease: whichever dies, stops or freezes, the job continues and no node pulls twice.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;

use crate::world::{NODES, World, real_nodes};

/// The Lease of a crashed leader expires after 15 s; the other controller checks it every two.
const AFTER_A_CRASH: u32 = 20;
const AFTER_A_STOP: u32 = 2;
/// Statuses are current so soon after an outage; the pulls themselves take seconds.
const AFTER_AN_OUTAGE: Duration = Duration::from_secs(30 + 10);

/// Starts a job that pulls on one node at a time.
async fn begin(world: &World, name: &str) -> anyhow::Result<(String, String)> {
    let namespace = world.cluster.server.namespace().await?;
    let image = world.publish(&format!("races/{name}")).await?;
    let spec = json!({"image": image, "selector": real_nodes(), "parallelism": 1});
    world.create("v1beta1", "ImagePullJob", &namespace, name, spec).await?;
    world.job_desires(30, &namespace, name, NODES).await?;
    Ok((namespace, image))
}

/// Waits until another controller leads, and returns how long that took.
async fn succession(world: &World, old: usize, limit: u32) -> anyhow::Result<Duration> {
    let start = Instant::now();
    world
        .until(limit, "another leader", async || {
            Ok(world.holder().await?.is_some_and(|holder| !holder.starts_with(&format!("controller-{old}"))))
        })
        .await?;
    Ok(start.elapsed())
}

/// Every node has the image after one pull: the version is still the first one.
async fn was_pulled_once(world: &World, image: &str) -> anyhow::Result<()> {
    let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
    for node in world.node_images().await? {
        let versions = node.spec.images.get(name).map(|image| image.tags.iter().map(|tag| tag.version).max());
        ensure!(
            versions.flatten().unwrap_or_default() == 0,
            "{:?} was asked more than once",
            node.metadata.name
        );
    }
    Ok(())
}

pub async fn another_controller_takes_over_after_a_kill() -> anyhow::Result<()> {
    let world = World::start("kill", 2).await?;
    for round in 0..2 {
        let leader = world.leader().await?;
        let name = format!("kill-{round}");
        let (namespace, image) = begin(&world, &name).await?;
        world.controllers[leader].kill()?;
        succession(&world, leader, AFTER_A_CRASH).await?;
        world.job_is(60, &namespace, &name, (NODES, NODES, true)).await?;
        was_pulled_once(&world, &image).await?;
        world.controllers[leader].spawn()?;
    }
    Ok(())
}

pub async fn another_controller_takes_over_after_a_clean_stop() -> anyhow::Result<()> {
    let world = World::start("stop", 2).await?;
    let leader = world.leader().await?;
    let (namespace, image) = begin(&world, "stop").await?;
    world.controllers[leader].terminate()?;
    let status = world.controllers[leader].ended().await?;
    ensure!(status.success(), "a clean stop ends with {status}");
    let took = succession(&world, leader, AFTER_A_STOP).await?;
    println!("counted: take-over {} ms after a clean stop", took.as_millis());
    world.job_is(60, &namespace, "stop", (NODES, NODES, true)).await?;
    was_pulled_once(&world, &image).await
}

pub async fn a_controller_that_was_frozen_too_long_ends_itself() -> anyhow::Result<()> {
    let world = World::start("freeze", 2).await?;
    let leader = world.leader().await?;
    let (namespace, image) = begin(&world, "freeze").await?;
    world.controllers[leader].freeze()?;
    succession(&world, leader, AFTER_A_CRASH).await?;
    world.controllers[leader].thaw()?;
    let status = world.controllers[leader].ended().await?;
    ensure!(
        !status.success(),
        "a leader that lost its Lease ends with a failure, so that it is started anew"
    );
    world.job_is(60, &namespace, "freeze", (NODES, NODES, true)).await?;
    was_pulled_once(&world, &image).await
}

/// The API server loses its connections while the cable is cut, as behind a load balancer that fails: nobody tells the programs on
/// that node, which have nothing to send (reliability L5).
pub async fn controller_and_agent_notice_that_their_connections_died_without_a_word() -> anyhow::Result<()> {
    let world = World::start("swallow", 1).await?;
    world.controllers[0].terminate()?;
    world.controllers[0].ended().await?;
    // It keeps on working without the Lease, which it would lose while it is cut off.
    let alone = world.controller_with(0, &["--leader-elect=false"]).await?;
    let (namespace, _) = begin(&world, "before").await?;
    world.job_is(60, &namespace, "before", (NODES, NODES, true)).await?;
    world.nodes[0].cut()?;
    world.cluster.server.apiserver.kill()?;
    world.cluster.server.apiserver.spawn()?;
    world.cluster.server.ready().await?;
    world.nodes[0].restore()?;
    let start = Instant::now();
    let (namespace, image) = begin(&world, "after").await?;
    world.job_is(60, &namespace, "after", (NODES, NODES, true)).await?;
    let took = start.elapsed();
    println!("counted: current {} ms after packets arrive again", took.as_millis());
    ensure!(took < AFTER_AN_OUTAGE, "it took {took:?}; the controller logged\n{}", alone.log_tail());
    was_pulled_once(&world, &image).await
}
