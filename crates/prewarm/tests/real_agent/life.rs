//! How an agent starts and ends: without a runtime, with a wrong socket, and on SIGTERM.

use std::os::unix::fs::symlink;

use anyhow::ensure;
use prewarm_api::kruise::PullPhase;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Runtime, wait};

use crate::cluster::Cluster;
use crate::desk::{entry, find, spec};
use crate::program::Agent;

const MIB: usize = 1024 * 1024;

pub async fn an_agent_that_comes_before_its_runtime_waits_for_it() -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    cluster.registry.push("late/web", &["v1"], &Image::new("late").layer(Layer::of(MIB)).build()).await?;
    let image = ("registry.example/late/web", "v1");
    for runtime in Runtime::ALL {
        let node = cluster.node(runtime).await?;
        node.runtime.stop()?;
        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
        desk.ask(&spec([(image.0, vec![entry(image.1)])])).await?;
        let waits = desk.until_tag("to wait", image, |tag| tag.message.clone()).await?;
        ensure!(waits == "waits for the container runtime to answer", "{waits}");
        node.runtime.spawn()?;
        let tag = desk.succeeded(image, 0).await?;
        ensure!(tag.failed_attempts == 0, "{tag:?}");
        agent.process.check()?;
    }
    Ok(())
}

pub async fn a_link_in_the_place_of_the_socket_is_refused_in_a_sentence() -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    cluster.registry.push("link/web", &["v1"], &Image::new("link").layer(Layer::of(MIB)).build()).await?;
    let node = cluster.node(Runtime::Containerd).await?;
    let link = node.directory().join("link.sock");
    symlink(node.socket(), &link)?;
    let (desk, agent) = (cluster.desk(&node)?, Agent::start_on(cluster, &node, &link, &[]).await?);
    let image = ("registry.example/link/web", "v1");
    desk.ask(&spec([(image.0, vec![entry(image.1)])])).await?;
    let sentence = "leads over a symbolic link, which is not followed on the way to a runtime";
    wait::until("the sentence", async || {
        agent.process.check()?;
        Ok(agent.process.log().contains(sentence).then_some(()))
    })
    .await?;
    let phase = desk.until_tag("to wait", image, |tag| Some(tag.phase)).await?;
    ensure!(phase == PullPhase::Waiting && node.images().await?.is_empty());
    Ok(())
}

pub async fn sigterm_lets_a_running_pull_end_and_begins_none() -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    for tag in ["v1", "v2"] {
        let image = Image::new(&format!("drained {tag}")).layer(Layer::of(2 * MIB)).build();
        cluster.registry.push("drained/web", &[tag], &image).await?;
    }
    let (node, proxy) =
        (cluster.node(Runtime::Containerd).await?, FaultProxy::start(&cluster.registry).await?);
    node.lead("slow.example", &proxy)?;
    proxy.fail(On::Blobs, Fault::Slow(MIB as u64));
    let flags = ["--max-parallel-pulls", "1", "--drain", "60s"];
    let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &flags).await?);
    let name = "slow.example/drained/web";
    desk.ask(&spec([(name, vec![entry("v1"), entry("v2")])])).await?;
    wait::until("the download", async || Ok((!proxy.requests_on(&On::Blobs).is_empty()).then_some(())))
        .await?;
    agent.process.terminate()?;
    let end = agent.process.ended().await?;
    ensure!(end.code() == Some(0), "the agent ended with {end}: {}", agent.process.log_tail());
    let status = desk.status().await?;
    let phases = ["v1", "v2"].map(|tag| find(&status, name, tag).map(|tag| tag.phase));
    ensure!(phases == [Some(PullPhase::Succeeded), Some(PullPhase::Waiting)], "{status:?}");
    Ok(())
}

pub async fn sigterm_leaves_a_pull_that_takes_too_long_to_the_next_agent() -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    let image = Image::new("handed on").layer(Layer::of(2 * MIB)).build();
    cluster.registry.push("handed/web", &["v1"], &image).await?;
    let (node, proxy) =
        (cluster.node(Runtime::Containerd).await?, FaultProxy::start(&cluster.registry).await?);
    node.lead("slow.example", &proxy)?;
    proxy.fail(On::Blobs, Fault::Stall(1000));
    let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &["--drain", "200ms"]).await?);
    let image = ("slow.example/handed/web", "v1");
    desk.ask(&spec([(image.0, vec![entry(image.1)])])).await?;
    wait::until("the download", async || Ok((!proxy.requests_on(&On::Blobs).is_empty()).then_some(())))
        .await?;
    agent.process.terminate()?;
    let end = agent.process.ended().await?;
    ensure!(end.code() == Some(0), "the agent ended with {end}: {}", agent.process.log_tail());
    let left = desk.until_tag("to be left", image, |tag| Some(tag.clone())).await?;
    ensure!(left.phase == PullPhase::Pulling && left.failed_attempts == 0, "{left:?}");
    ensure!(desk.events("NodeImage", node.name()).await?.is_empty(), "no failure is reported");
    proxy.heal();
    agent.process.spawn()?;
    let tag = desk.succeeded(image, 0).await?;
    ensure!(tag.failed_attempts == 0 && tag.start_time == left.start_time, "{tag:?}");
    Ok(())
}
