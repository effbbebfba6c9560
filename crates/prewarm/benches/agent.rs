//! What the agent costs and how fast it is: the shipped program on a real API server, containerd and registry. Times are
//! compared with the same pulls by hand, through the same CRI, in the same run.

#[path = "agent/node.rs"]
mod node;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use node::Node;
use prewarm_testkit::figure::{Bar, Figures, median};
use prewarm_testkit::measure::{cpu_seconds, peak_resident_mib, resident_mib};

/// How many pairs of a large pull are compared.
const PAIRS: usize = 11;
/// How many tiny images are pulled one by one.
const SINGLE: usize = 210;
/// How many tiny images one spec asks for.
const BATCH: usize = 50;
/// How many such specs are compared with pulls by hand. Each pair takes a second and a half, in which a garbage
/// collection or another program matters much, so a steady median needs many.
const BATCHES: usize = 51;
/// How many pulls run at once.
const PARALLEL: usize = 2;
/// How long the idle agent is measured.
const IDLE: Duration = Duration::from_mins(10);

/// A part of the benchmark. All run in this order, unless some are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Start,
    Single,
    Batches,
    Large,
    Memory,
    Idle,
}

const PARTS: [(&str, Part); 6] = [
    ("start", Part::Start),
    ("single", Part::Single),
    ("batches", Part::Batches),
    ("large", Part::Large),
    ("memory", Part::Memory),
    ("idle", Part::Idle),
];

fn main() -> ExitCode {
    let parts = match named_parts(std::env::args().skip(1)) {
        Ok(parts) => parts,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    if let Err(reason) = prewarm_bed::enter() {
        eprintln!("cannot measure: {reason}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Runtime::new().map_err(anyhow::Error::from);
    match runtime.and_then(|runtime| runtime.block_on(measure(&parts))) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The parts to run: those that are named, or all. Flags are cargo's.
fn named_parts(words: impl Iterator<Item = String>) -> anyhow::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for word in words.filter(|word| !word.starts_with('-')) {
        let Some((_, part)) = PARTS.iter().find(|(name, _)| *name == word) else {
            bail!("there is no part {word:?}; there are: {}", PARTS.map(|(name, _)| name).join(", "));
        };
        parts.push(*part);
    }
    Ok(if parts.is_empty() { PARTS.map(|(_, part)| part).into() } else { parts })
}

impl Part {
    /// How many tiny images it uses up.
    fn tiny_images(self) -> usize {
        match self {
            Self::Start => 1,
            Self::Single => SINGLE,
            Self::Batches => 2 * BATCH * BATCHES,
            Self::Large => 0,
            Self::Memory | Self::Idle => BATCH,
        }
    }
}

async fn measure(parts: &[Part]) -> anyhow::Result<ExitCode> {
    let mut figures = Figures::new("agent");
    let other_parts = parts.iter().filter(|part| **part != Part::Start);
    let tiny_images = Part::Start.tiny_images() + other_parts.map(|part| part.tiny_images()).sum::<usize>();
    let mut node = Node::prepare(tiny_images).await?;
    // Everything else needs a running agent, so it is started and measured in any case.
    start(&mut node, &mut figures).await?;
    for (_, part) in PARTS.into_iter().filter(|(_, part)| parts.contains(part)) {
        match part {
            Part::Start => {}
            Part::Single => single(&mut node, &mut figures).await?,
            Part::Batches => batches(&mut node, &mut figures).await?,
            Part::Large => large(&mut node, &mut figures).await?,
            Part::Memory => memory(&mut node, &mut figures).await?,
            Part::Idle => idle(&mut node, &mut figures).await?,
        }
    }
    Ok(figures.close())
}

/// From the start of the process to the end of its first pull, which is later than its beginning.
async fn start(node: &mut Node, figures: &mut Figures) -> anyhow::Result<()> {
    let images = node.take(1);
    node.ask(&images).await?;
    let start = Instant::now();
    node.start_agent()?;
    node.succeeded(1).await?;
    let took = start.elapsed().as_secs_f64();
    figures.add("start of the process to the end of the first pull", took, "s", Bar::AtMost(2.0));
    Ok(())
}

/// Each image alone, from writing the spec to the accepted status.
async fn single(node: &mut Node, figures: &mut Figures) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for image in node.take(SINGLE) {
        let start = Instant::now();
        node.ask(&[image]).await?;
        node.succeeded(1).await?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    let worst = times[SINGLE * 99 / 100];
    figures.add("tiny image, spec written to Succeeded, median", median(times), "ms", Bar::AtMost(150.0));
    figures.add("tiny image, spec written to Succeeded, p99", worst, "ms", Bar::AtMost(500.0));
    Ok(())
}

/// Fifty images in one spec, against fifty like them by hand with as many at once.
async fn batches(node: &mut Node, figures: &mut Figures) -> anyhow::Result<()> {
    let (mut ratios, mut writes) = (Vec::new(), 0);
    for round in 0..BATCHES {
        let (ours, theirs) = (node.take(BATCH), node.take(BATCH));
        let mut agent = 0.0;
        let mut by_hand = 0.0;
        for half in 0..2 {
            if (half == 0) == (round % 2 == 0) {
                // It counts from the accepted spec, because the pulls by hand need no request to the API either.
                node.ask(&ours).await?;
                let start = Instant::now();
                let seen = node.succeeded(BATCH).await?;
                agent = start.elapsed().as_secs_f64();
                writes = writes.max(seen);
            } else {
                let start = Instant::now();
                pull_by_hand(node, &theirs, PARALLEL).await?;
                by_hand = start.elapsed().as_secs_f64();
            }
        }
        ratios.push(agent / by_hand);
        eprintln!("50 images, pair {} of {BATCHES}: agent {agent:.3} s, by hand {by_hand:.3} s", round + 1);
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of writes")]
    figures.add("status writes for 50 tiny images in one spec, most", writes as f64, "", Bar::AtMost(8.0));
    figures.add("50 tiny images, agent / by hand, median", median(ratios), "×", Bar::AtMost(1.1));
    Ok(())
}

async fn pull_by_hand(node: &Node, references: &[String], at_once: usize) -> anyhow::Result<()> {
    let cri = node.cri()?;
    stream::iter(references)
        .map(|reference| async { cri.pull(reference, None).await.map(drop) })
        .buffer_unordered(at_once)
        .try_collect::<()>()
        .await
        .context("pulling by hand")
}

/// 300 MB in three layers, in alternating pairs.
async fn large(node: &mut Node, figures: &mut Figures) -> anyhow::Result<()> {
    let reference = node.large();
    let mut ratios = Vec::new();
    for round in 0..PAIRS {
        let (mut agent, mut by_hand) = (0.0, 0.0);
        for half in 0..2 {
            // The spec drops it first, or the agent would notice the loss and pull it again.
            node.ask(&[]).await?;
            node.succeeded(0).await?;
            node.remove(&reference).await?;
            let start = Instant::now();
            if (half == 0) == (round % 2 == 0) {
                node.ask(std::slice::from_ref(&reference)).await?;
                node.succeeded(1).await?;
                agent = start.elapsed().as_secs_f64();
            } else {
                node.cri()?.pull(&reference, None).await.context("pulling by hand")?;
                by_hand = start.elapsed().as_secs_f64();
            }
        }
        ratios.push(agent / by_hand);
        eprintln!("300 MB, pair {} of {PAIRS}: agent {agent:.3} s, by hand {by_hand:.3} s", round + 1);
    }
    figures.add("300 MB in three layers, agent / by hand, median", median(ratios), "×", Bar::AtMost(1.05));
    Ok(())
}

/// A fresh process: at rest, and at its worst while it pulls fifty images.
async fn memory(node: &mut Node, figures: &mut Figures) -> anyhow::Result<()> {
    node.ask(&[]).await?;
    node.restart_agent()?;
    node.succeeded(0).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = resident_mib(node.agent_id()?)?;
    figures.add("resident memory when idle", idle, "MiB", Bar::AtMost(12.0));
    let images = node.take(BATCH);
    node.ask(&images).await?;
    node.succeeded(BATCH).await?;
    let peak = peak_resident_mib(node.agent_id()?)?;
    figures.add("resident memory while pulling 50 images, peak", peak, "MiB", Bar::AtMost(32.0));
    ensure!(peak >= idle, "the peak lies below the rest");
    Ok(())
}

/// Fifty images warmed and nothing to do.
async fn idle(node: &mut Node, figures: &mut Figures) -> anyhow::Result<()> {
    let images = node.take(BATCH);
    node.ask(&images).await?;
    node.succeeded(BATCH).await?;
    let before = cpu_seconds(node.agent_id()?)?;
    tokio::time::sleep(IDLE).await;
    let used = cpu_seconds(node.agent_id()?)? - before;
    let share = used / IDLE.as_secs_f64() * 100.0;
    figures.add("CPU over 10 idle minutes with 50 images", share, "% of a core", Bar::AtMost(0.05));
    Ok(())
}

/// Makes and pushes what the benchmark pulls.
async fn push_all(registry: &prewarm_testkit::Registry, tiny_images: usize) -> anyhow::Result<()> {
    let tiny = (0..tiny_images).map(|number| node::push_tiny(registry, number));
    stream::iter(tiny).buffer_unordered(4).try_collect::<Vec<_>>().await?;
    try_join_all([node::push_large(registry)]).await?;
    Ok(())
}
