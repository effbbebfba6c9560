//! `prewarm demo`: a cluster in one process, and a short story that is played on it.

mod lines;
mod screen;

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use prewarm_demo::cluster::{Cluster, Plan};
use prewarm_demo::story::{Message, SCENES, Scene, Settings, Trouble, play};
use prewarm_demo::{Choices, Flow, allow_many_files};
use prewarm_plan::amount;
use tokio::sync::mpsc;

use crate::answer::{Answer, Exit};
use crate::operation::stop_signal;
use lines::About;

/// The most threads that read and write files; more would only cost memory.
const FILE_THREADS: usize = 8;
/// How long tasks may take to end after the cluster has stopped.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// Show a whole cluster at work in one process: no network, no root, nothing left behind
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// How many nodes there are, in three zones
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=1000))]
    nodes: u16,
    /// Bytes per second that a node downloads; the seed gives each node 60 % to 140 % of it
    #[arg(long, value_name = "RATE", default_value = "16MB", value_parser = rate)]
    link: u64,
    /// Bytes per second that the registry sends to all nodes together
    #[arg(long, value_name = "RATE", default_value = "100MB", value_parser = rate)]
    uplink: u64,
    /// Play only this scene: everywhere, list, prefetch, join, full-disk, wrong-tag, private or schedule
    #[arg(long, value_name = "NAME", value_parser = scene)]
    scenario: Option<&'static Scene>,
    /// Keep the cluster after the story, until Ctrl-C
    #[arg(long)]
    forever: bool,
    /// How many times faster than usual
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// The seed of the images, speeds and faults; the same number repeats them
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print plain lines even on a terminal, and exit with 0 only if every scene ended as it should
    #[arg(long)]
    ci: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Answer> {
    // Each download of a node needs a file and both ends of a connection; with fewer files it is only slower.
    let _ = allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS)
        .build()
        .context("starting up")?;
    let entered = runtime.enter();
    // This comes before the directory is made: an early signal must not leave it behind.
    let stopped = stop_signal()?;
    let directory =
        tempfile::Builder::new().prefix("prewarm-demo-").tempdir().context("making a directory")?;
    drop(entered);
    let answer = runtime.block_on(show(args, directory.path(), stopped));
    // The directory is removed last: a task that is still writing would create a part of it again.
    runtime.shutdown_timeout(LAST_MOMENT);
    answer
}

enum Ending {
    /// The story ended, as it should or with this trouble.
    Over(Result<(), Trouble>),
    /// The user has stopped it.
    Stopped,
}

async fn show(args: &Args, directory: &Path, stopped: impl Future<Output = ()>) -> anyhow::Result<Answer> {
    let plan = Plan {
        directory: directory.to_owned(),
        nodes: args.nodes.into(),
        link: Flow::Limited(faster(args.link, args.speed)),
        uplink: Flow::Limited(faster(args.uplink, args.speed)),
        choices: Choices::new(args.seed),
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

/// Plays the story on a full screen if the terminal allows it, otherwise in lines.
async fn follow(
    args: &Args,
    cluster: &mut Cluster,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<Ending> {
    let about = About::of(cluster, args.forever);
    let windows = screen::Windows { client: cluster.client.clone(), seats: cluster.seats() };
    let (sender, words) = mpsc::unbounded_channel();
    let played = play_story(args, cluster, sender);
    // A terminal without a full screen can still take lines.
    let Some(terminal) = screen::Terminal::take_if_fitting(args.ci) else {
        return Ok(lines::follow(&about, played, words, stopped).await);
    };
    let story = screen::Story { played: Box::pin(played), words };
    screen::follow(terminal, windows, about, story, stopped).await
}

async fn play_story(
    args: &Args,
    cluster: &mut Cluster,
    words: mpsc::UnboundedSender<Message>,
) -> Result<(), Trouble> {
    let settings = Settings { speed: args.speed, seed: args.seed };
    let scenes: Vec<&'static Scene> = match args.scenario {
        Some(scene) => vec![scene],
        None => SCENES.iter().collect(),
    };
    play(cluster, scenes, settings, words).await
}

fn answer(ending: Ending, stays: bool) -> Answer {
    let (stderr, exit) = match ending {
        Ending::Over(Ok(())) => (String::new(), Exit::Success),
        Ending::Over(Err(trouble)) => (format!("error: {trouble}\n"), Exit::Findings),
        Ending::Stopped if stays => (String::new(), Exit::Success),
        Ending::Stopped => ("interrupted; the cluster is gone\n".to_owned(), Exit::Findings),
    };
    Answer { stdout: String::new(), stderr, exit }
}

fn rate(text: &str) -> Result<u64, String> {
    let bytes = amount::parse(text.trim_end_matches("/s")).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "write bytes per second, such as 16MB or 500KiB".to_owned())
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
