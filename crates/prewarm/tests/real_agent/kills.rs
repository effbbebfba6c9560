//! Programs that are killed at random points: everything ends well, and nothing is downloaded twice.

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
/// Bytes a second, so that a download takes long enough to be met in its middle.
const PACE: u64 = 4 * 1024 * 1024;
/// Repeats a run, with the number that it printed.
const SEED_VARIABLE: &str = "PREWARM_SEED";
const NAME: &str = "watched.example/killed/web";

/// Ten images, one a round, and all that is needed to pull them.
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
        let seed = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(rand::random);
        println!("counted: {ROUNDS} kills of {what} at random points, {SEED_VARIABLE}={seed}");
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

    /// Waits for a random point of the latest pull: some way into the layer, or with the image just there.
    async fn reach_random_point(&mut self) -> anyhow::Result<()> {
        let round = self.images.len() - 1;
        let (way, size) = (self.random.random_range(0.0..1.2), self.images[round].blobs[1].bytes.len());
        let (layer, reference) =
            (On::Path(self.layer(round).to_owned()), format!("{NAME}:{}", self.tag(round)));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a share of a small number is a small number"
        )]
        // Between the last tenth and the image nobody knows which bytes have arrived.
        let bytes = (size as f64 * 0.9_f64.min(way)) as u64;
        wait::until("a point of the pull", async || {
            let given: u64 = self.proxy.requests_on(&layer).iter().map(|seen| seen.bytes).sum();
            if way < 1.0 {
                return Ok((given >= bytes).then_some(()));
            }
            Ok(self.node.images().await?.contains(&reference).then_some(()))
        })
        .await
    }

    /// The latest image arrives, whatever happened.
    async fn arrive(&self) -> anyhow::Result<()> {
        let tag = self.tag(self.images.len() - 1);
        let status = self.desk.succeeded((NAME, &tag), 0).await?;
        // Nobody's failure: the registry never refused anything.
        ensure!(status.failed_attempts == 0, "{status:?}");
        Ok(())
    }

    /// Everything is there, and each layer was downloaded to its end once.
    async fn finish(&self) -> anyhow::Result<()> {
        let status = self.desk.settled(ROUNDS).await?;
        ensure!(usize::try_from(status.succeeded)? == ROUNDS, "{status:?}");
        let present = self.node.images().await?;
        for round in 0..ROUNDS {
            let reference = format!("{NAME}:{}", self.tag(round));
            ensure!(present.contains(&reference), "{reference} is lost: {present:?}");
            let seen = self.proxy.requests_on(&On::Path(self.layer(round).to_owned()));
            let ends = seen.iter().filter(|seen| seen.is_download());
            // A download that went on from where it was broken off is the rest of one, not another.
            let whole = ends.clone().filter(|seen| seen.range.is_none()).count();
            ensure!(whole <= 1 && ends.count() >= 1, "round {round} has {whole} whole downloads: {seen:#?}");
        }
        Ok(())
    }
}

pub async fn an_agent_killed_in_the_middle_of_pulls_loses_nothing() -> anyhow::Result<()> {
    let mut race = Race::begin(Cluster::shared().await?, "the agent").await?;
    race.proxy.fail(On::Blobs, Fault::Slow(PACE));
    for _ in 0..ROUNDS {
        race.ask_for_another(SIZE).await?;
        race.reach_random_point().await?;
        race.agent.process.kill()?;
        race.agent.process.spawn()?;
        race.arrive().await?;
    }
    race.finish().await?;
    race.agent.was_refused_nothing()
}

pub async fn containerd_killed_in_the_middle_of_pulls_loses_nothing() -> anyhow::Result<()> {
    let mut race = Race::begin(Cluster::shared().await?, "containerd").await?;
    race.proxy.fail(On::Blobs, Fault::Slow(PACE));
    for _ in 0..ROUNDS {
        race.ask_for_another(SIZE).await?;
        race.reach_random_point().await?;
        race.node.runtime.kill()?;
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
        // A report leaves somewhere in this time; the wait is the point.
        let pause = Duration::from_millis(race.random.random_range(0..250));
        tokio::time::sleep(pause).await;
        cluster.server.apiserver.kill()?;
        cluster.server.apiserver.spawn()?;
        cluster.server.ready().await?;
        race.arrive().await?;
    }
    // A server that has just started refuses what it will allow, until it has read its roles.
    race.finish().await
}
