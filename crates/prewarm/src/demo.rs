//! `prewarm demo`: a cluster in one process, and a short story on it.

mod lines;
mod screen;

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use prewarm_demo::cluster::{Cluster, Plan};
use prewarm_demo::story::{SCENES, Scene, Settings, Trouble, Word, play};
use prewarm_demo::{Flow, Luck, allow_many_files};
use prewarm_plan::amount;
use tokio::sync::mpsc;

use crate::answer::{Answer, Exit};
use crate::operation::stop_signal;
use lines::About;

/// More threads for files than this are of no use, and each costs memory.
const FILE_THREADS: usize = 8;
/// What is left after this long is dropped.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// Show a whole cluster at work in one process: no network, no root, nothing left behind
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// How many nodes there are, in three zones
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=1000))]
    nodes: u16,
    /// Bytes a second that a node downloads; each node has from 60 % to 140 % of it, by the seed
    #[arg(long, value_name = "RATE", default_value = "16MB", value_parser = rate)]
    link: u64,
    /// Bytes a second that the registry sends to all nodes together
    #[arg(long, value_name = "RATE", default_value = "100MB", value_parser = rate)]
    uplink: u64,
    /// Play only this scene: everywhere, list, join, full-disk, wrong-tag, private or schedule
    #[arg(long, value_name = "NAME", value_parser = scene)]
    scenario: Option<&'static Scene>,
    /// Keep the cluster after the story, until Ctrl-C
    #[arg(long)]
    forever: bool,
    /// How many times as fast as usual
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Repeats the images, speeds and faults of a run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print plain lines also on a terminal, and end with 0 only if every scene ended as told
    #[arg(long)]
    ci: bool,
}

/// Plays the story.
pub fn run(args: &Args) -> anyhow::Result<Answer> {
    // Each download of each node is a file and a connection with both its ends; with fewer files it is only slower.
    let _ = allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS)
        .build()
        .context("starting up")?;
    let entered = runtime.enter();
    // Before anything is made: a signal that comes early must not leave it behind.
    let stopped = stop_signal()?;
    let directory =
        tempfile::Builder::new().prefix("prewarm-demo-").tempdir().context("making a directory")?;
    drop(entered);
    let answer = runtime.block_on(show(args, directory.path(), stopped));
    // The directory goes last: somebody who is still writing would bring a part of it back.
    runtime.shutdown_timeout(LAST_MOMENT);
    answer
}

/// How a demo ends.
enum Ending {
    /// The story came to its end, or to one that it should not have.
    Told(Result<(), Trouble>),
    /// Somebody has seen enough.
    Stopped,
}

async fn show(args: &Args, directory: &Path, stopped: impl Future<Output = ()>) -> anyhow::Result<Answer> {
    let plan = Plan {
        directory: directory.to_owned(),
        nodes: args.nodes.into(),
        link: Flow::Limited(faster(args.link, args.speed)),
        uplink: Flow::Limited(faster(args.uplink, args.speed)),
        luck: Luck::new(args.seed),
    };
    let mut stopped = pin!(stopped);
    let started = tokio::select! {
        started = Cluster::start(plan) => started,
        () = &mut stopped => return Ok(answer(Ending::Stopped, args.forever)),
    };
    let mut cluster = started.context("starting the cluster")?;
    let ending = follow(args, &mut cluster, stopped).await;
    cluster.stop().await;
    Ok(answer(ending?, args.forever))
}

/// Plays, and shows it as it suits whoever looks.
async fn follow(
    args: &Args,
    cluster: &mut Cluster,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<Ending> {
    let about = About::of(cluster, args.forever);
    let windows = screen::Windows { client: cluster.client.clone(), seats: cluster.seats() };
    let (sender, words) = mpsc::unbounded_channel();
    let told = tell(args, cluster, sender);
    // A terminal that cannot be drawn on can still be written to.
    let Some(terminal) = screen::Terminal::take_if_fitting(args.ci) else {
        return Ok(lines::follow(&about, told, words, stopped).await);
    };
    let story = screen::Story { told: Box::pin(told), words };
    screen::follow(terminal, windows, about, story, stopped).await
}

async fn tell(args: &Args, cluster: &mut Cluster, words: mpsc::UnboundedSender<Word>) -> Result<(), Trouble> {
    let settings = Settings { speed: args.speed, seed: args.seed };
    let scenes: Vec<&'static Scene> = match args.scenario {
        Some(scene) => vec![scene],
        None => SCENES.iter().collect(),
    };
    play(cluster, scenes, settings, words).await
}

fn answer(ending: Ending, stays: bool) -> Answer {
    let (stderr, exit) = match ending {
        Ending::Told(Ok(())) => (String::new(), Exit::Success),
        Ending::Told(Err(trouble)) => (format!("error: {trouble}\n"), Exit::Findings),
        Ending::Stopped if stays => (String::new(), Exit::Success),
        Ending::Stopped => ("interrupted; the cluster is gone\n".to_owned(), Exit::Findings),
    };
    Answer { stdout: String::new(), stderr, exit }
}

fn rate(text: &str) -> Result<u64, String> {
    let bytes = amount::parse(text.trim_end_matches("/s")).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "write bytes a second such as 16MB or 500KiB".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.1..=100.0).contains(factor));
    factor.ok_or_else(|| "write a number from 0.1 to 100".to_owned())
}

fn scene(text: &str) -> Result<&'static Scene, String> {
    let found = SCENES.iter().find(|scene| scene.name == text);
    found.ok_or_else(|| {
        let names: Vec<_> = SCENES.iter().map(|scene| format!("{} ({})", scene.name, scene.about)).collect();
        format!("there is no such scene; there are: {}", names.join(", "))
    })
}

fn faster(rate: u64, speed: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a rate need not be exact, and is never negative"
    )]
    let rate = (rate as f64 * speed) as u64;
    rate.max(1)
}
