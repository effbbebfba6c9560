//! As much as a NodeImage can hold.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use prewarm_api::kruise::PullPhase;
use prewarm_testkit::Runtime;
use prewarm_testkit::image::{Image, Layer};
use serde_json::json;

use crate::cluster::{Cluster, node_images};
use crate::desk::{entry, spec};
use crate::program::{Agent, is_shipped};

const NAMES: usize = 256;
const TAGS: [&str; 5] = ["v1", "v2", "v3", "v4", "v5"];
const MOST_STATUS_BYTES: usize = 600_000;
const MOST_MEBIBYTES: f64 = 32.0;
/// The limit for a test build, whose own pages count as well.
const MOST_MEBIBYTES_UNOPTIMIZED: f64 = 80.0;
/// Reports of a large NodeImage are eight seconds apart, except for the first few.
const LONGEST_INTERVAL: Duration = Duration::from_secs(8);
const FIRST_WRITES: u64 = 10;

pub async fn two_hundred_and_fifty_six_names_with_five_tags_each_are_pulled() -> anyhow::Result<()> {
    // Its status is large, so it has a server of its own and slows no other test down.
    let cluster = &Cluster::start(&node_images()).await?;
    let image = Image::new("many").layer(Layer::of(1000)).build();
    cluster.registry.push("many/web", &TAGS, &image).await?;
    let node = cluster.node(Runtime::Containerd).await?;
    let (desk, agent) =
        (cluster.desk(&node)?, Agent::start(cluster, &node, &["--max-parallel-pulls", "8"]).await?);
    // Each host is another name for the same repository.
    let names: Vec<String> = (0..NAMES).map(|number| format!("host-{number}.example/many/web")).collect();
    let tags = || TAGS.map(entry).to_vec();
    let start = std::time::Instant::now();
    desk.ask(&spec(names.iter().map(|name| (name.as_str(), tags())))).await?;
    let status = desk.settled(NAMES * TAGS.len()).await?;
    let took = start.elapsed();

    let statuses = status.image_statuses.as_ref().context("there are statuses")?;
    let succeeded = statuses.values().flat_map(|image| &image.tags);
    let succeeded =
        succeeded.filter(|tag| tag.phase == PullPhase::Succeeded && tag.image_id.is_some()).count();
    ensure!(succeeded == NAMES * TAGS.len(), "only {succeeded} succeeded");
    let bytes = json!(status).to_string().len();
    ensure!(bytes <= MOST_STATUS_BYTES, "the status has {bytes} bytes");
    let writes = agent.counter("prewarm_agent_api_writes_total{kind=\"status\",result=\"written\"}").await?;
    ensure!(
        writes <= FIRST_WRITES + took.as_secs() / LONGEST_INTERVAL.as_secs(),
        "{writes} writes in {took:?}"
    );
    let peak = agent.peak_mebibytes()?;
    println!(
        "counted: {succeeded} tags of {NAMES} names, {writes} status writes, {bytes} bytes of status, \
         {peak:.1} MiB at most, {} s",
        took.as_secs()
    );
    let most = if is_shipped() { MOST_MEBIBYTES } else { MOST_MEBIBYTES_UNOPTIMIZED };
    ensure!(peak <= most, "the agent took {peak:.1} MiB, more than {most}");
    Ok(())
}
