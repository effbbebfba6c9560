//! Programs are killed at random points: everything succeeds in the end, and nothing is downloaded twice.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use prewarm_testkit::image::{Artifact, Image, Layer};
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Node, Runtime, wait};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::cluster::{Cluster, node_images};
use crate::desk::{Desk, entry, spec};
use crate::program::Agent;

const ROUNDS: usize = 10;
const SIZE: usize = 3 * 1024 * 1024;
/// No image configuration is larger, so it always arrives before a layer stops.
const CONFIGURATION: u64 = 64 * 1024;
/// How often the kill comes just after the image is present, instead of within its layer.
const AFTERWARDS: f64 = 0.2;
const NAME: &str = "watched.example/killed/web";

/// Ten images, one per round, and everything that is needed to pull them.
struct Race<'a> {
    node: Node,
    proxy: FaultProxy,
    desk: Desk,
    agent: Agent,
    cluster: &'a Cluster,
    images: Vec<Artifact>,
    random: StdRng,
}

impl<'a> Race<'a> {
    async fn begin(cluster: &'a Cluster, what: &str) -> anyhow::Result<Self> {
        let seed = prewarm_seed::first();
        println!("counted: {ROUNDS} kills of {what} at random points, {}={seed}", prewarm_seed::FIRST);
        let (node, proxy) =
            (cluster.node(Runtime::Containerd).await?, FaultProxy::start(&cluster.registry).await?);
        node.lead("watched.example", &proxy)?;
        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
        desk.ask(&spec([])).await?;
        agent.ready().await?;
        let random = StdRng::seed_from_u64(seed);
        Ok(Self { node, proxy, desk, agent, cluster, images: Vec::new(), random })
    }

    /// Asks for one image more than before.
    async fn ask_for_another(&mut self, size: usize) -> anyhow::Result<()> {
        let (round, node) = (self.images.len(), self.node.name());
        let image = Image::new(&format!("killed {node} {round}")).layer(Layer::of(size)).build();
        self.cluster.registry.push("killed/web", &[&self.tag(round)], &image).await?;
        self.images.push(image);
        let entries = (0..self.images.len()).map(|round| entry(&self.tag(round)));
        self.desk.ask(&spec([(NAME, entries.collect())])).await
    }

    fn tag(&self, round: usize) -> String {
        format!("{}-{round}", self.node.name())
    }

    fn layer(&self, round: usize) -> &str {
        &self.images[round].blobs[1].digest
    }

    /// Asks for another image and waits for a random point of its pull: within the layer, or just after the image is
    /// present. The layer stops at that point, so that a slow machine hits it as well.
    async fn reach_random_point(&mut self) -> anyhow::Result<()> {
        let round = self.images.len();
        if self.random.random_bool(AFTERWARDS) {
            self.ask_for_another(SIZE).await?;
            let reference = format!("{NAME}:{}", self.tag(round));
            return wait::until("the image", async || {
                Ok(self.node.images().await?.contains(&reference).then_some(()))
            })
            .await;
        }
        let bytes = self.random.random_range(0..SIZE as u64);
        self.proxy.fail(On::Blobs, Fault::Stall(bytes.max(CONFIGURATION)));
        self.ask_for_another(SIZE).await?;
        let layer = On::Path(self.layer(round).to_owned());
        wait::until("a point of the pull", async || {
            let seen = self.proxy.requests_on(&layer);
            let given: u64 = seen.iter().map(|seen| seen.bytes).sum();
            Ok((!seen.is_empty() && given >= bytes).then_some(()))
        })
        .await
    }

    /// The latest image arrives, whatever happened before.
    async fn arrive(&self) -> anyhow::Result<()> {
        let tag = self.tag(self.images.len() - 1);
        let status = self.desk.succeeded((NAME, &tag), 0).await?;
        // It must not count as a failure: the registry never refused anything.
        ensure!(status.failed_attempts == 0, "{status:?}");
        Ok(())
    }

    /// Every image is present, and each layer was downloaded completely once.
    async fn finish(&self) -> anyhow::Result<()> {
        let status = self.desk.settled(ROUNDS).await?;
        ensure!(usize::try_from(status.succeeded)? == ROUNDS, "{status:?}");
        let present = self.node.images().await?;
        for round in 0..ROUNDS {
            let reference = format!("{NAME}:{}", self.tag(round));
            ensure!(present.contains(&reference), "{reference} is lost: {present:?}");
            let seen = self.proxy.requests_on(&On::Path(self.layer(round).to_owned()));
            let ends = seen.iter().filter(|seen| seen.is_download());
            // A download that continues a broken one is the rest of it, and not another.
            let whole = ends.clone().filter(|seen| seen.range.is_none()).count();
            ensure!(whole <= 1 && ends.count() >= 1, "round {round} has {whole} whole downloads: {seen:#?}");
        }
        Ok(())
    }
}

pub async fn an_agent_killed_in_the_middle_of_pulls_loses_nothing() -> anyhow::Result<()> {
    let mut race = Race::begin(Cluster::shared().await?, "the agent").await?;
    for _ in 0..ROUNDS {
        race.reach_random_point().await?;
        race.agent.process.kill()?;
        race.proxy.heal();
        race.agent.process.spawn()?;
        race.arrive().await?;
    }
    race.finish().await?;
    race.agent.was_refused_nothing()
}

pub async fn containerd_killed_in_the_middle_of_pulls_loses_nothing() -> anyhow::Result<()> {
    let mut race = Race::begin(Cluster::shared().await?, "containerd").await?;
    for _ in 0..ROUNDS {
        race.reach_random_point().await?;
        race.node.runtime.kill()?;
        race.proxy.heal();
        race.node.runtime.spawn()?;
        race.node.ready().await.context("containerd after it was killed")?;
        race.arrive().await?;
    }
    race.finish().await?;
    race.agent.was_refused_nothing()
}

pub async fn the_api_server_killed_in_the_middle_of_reports_loses_nothing() -> anyhow::Result<()> {
    let cluster = Cluster::start(&node_images()).await?;
    let mut race = Race::begin(&cluster, "the API server").await?;
    for _ in 0..ROUNDS {
        race.ask_for_another(10_000).await?;
        // A report is sent at some point in this time, which is why the test waits.
        let pause = Duration::from_millis(race.random.random_range(0..250));
        tokio::time::sleep(pause).await;
        cluster.server.apiserver.kill()?;
        cluster.server.apiserver.spawn()?;
        cluster.server.ready().await?;
        race.arrive().await?;
    }
    // A server that has just started refuses requests until it has read its roles.
    race.finish().await
}
