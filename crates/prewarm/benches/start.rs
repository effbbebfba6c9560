//! The purpose of Prewarm in seconds: how soon a pod is ready on a node that has its image, and on one that does
//! not.
//!
//! It also measures how soon the test bed is ready, because every test with pods pays for that. It takes about 5 GB
//! of memory, which holds the images of a bed.

#[path = "../tests/real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "../tests/real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "../tests/real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "../tests/real_start/scene.rs"]
#[expect(dead_code, reason = "shared with the tests, which look at more of a start")]
mod scene;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;
use prewarm_testkit::figure::{Bar, Figures};
use prewarm_testkit::{Pod, Runtime, workload};

use cluster::Cluster;
use scene::{Scene, push};

/// How many cold and warm starts are made. The fastest of each are compared: other work on the machine only makes a
/// start slower, and that matters more for a short one.
const ROUNDS: usize = 3;

/// The size of the images.
const IMAGE: usize = 200_000_000;

/// The share of a cold start that a warm start may take. The link of a bed is faster than any real one, so a cold
/// start is as fast as it can be here: little more than unpacking. Half of that proves that the image was not
/// fetched; the rest is what kubelet and runtime need for any pod.
const SHARE: f64 = 0.5;

/// Names of this host lead to the registry without the counting proxy, which would slow a cold start down.
const DIRECT: &str = "direct.example";

fn main() -> ExitCode {
    if let Err(reason) = prewarm_bed::enter() {
        eprintln!("cannot measure: {reason}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Runtime::new().map_err(anyhow::Error::from);
    match runtime.and_then(|runtime| runtime.block_on(measure())) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn measure() -> anyhow::Result<ExitCode> {
    let mut figures = Figures::new("start");
    let start = Instant::now();
    let bare = prewarm_testkit::Cluster::start(&Runtime::ALL).await?;
    let took = start.elapsed().as_secs_f64();
    figures.add("from nothing to a cluster with two nodes Ready", took, "s", Bar::AtMost(10.0));
    first_pods(&bare, &mut figures).await?;

    let cluster = scene::furnish(bare).await?;
    for round in 0..ROUNDS {
        push(&cluster, &format!("cold-{round}"), IMAGE).await?;
        push(&cluster, &format!("warm-{round}"), IMAGE).await?;
    }
    for runtime in Runtime::ALL {
        compare(&cluster, runtime, &mut figures).await?;
    }
    Ok(figures.close())
}

/// The first pod on each node, with a small image that is not present.
async fn first_pods(bare: &prewarm_testkit::Cluster, figures: &mut Figures) -> anyhow::Result<()> {
    bare.registry.push("small", &["v1"], &workload::image("small")?.build()).await?;
    let namespace = bare.namespace().await?;
    for node in &bare.nodes {
        let pod = Pod::new(node.name(), "registry.example/small:v1").on(node);
        let took = pod.make(bare.server.client()?, &namespace).await?.ready().await?;
        let figure = format!("{}: small image, pod made to Ready", node.kind().program());
        figures.add(&figure, took.as_secs_f64(), "s", Bar::AtMost(5.0));
    }
    Ok(())
}

async fn compare(cluster: &Cluster, runtime: Runtime, figures: &mut Figures) -> anyhow::Result<()> {
    let scene = Scene::set(cluster, runtime).await?;
    scene.node.lead(DIRECT, &cluster.registry)?;
    let (mut cold, mut warm, mut fetched) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let cost = scene.start(&format!("cold-{round}"), &format!("{DIRECT}/cold-{round}:v1")).await?;
        ensure!(cost.received > IMAGE as u64, "the image was there: {cost:?}");
        cold.push(cost.time.as_secs_f64());
        let name = format!("registry.example/warm-{round}");
        scene.warm(&[(&name, "v1")]).await?;
        let cost = scene.start(&format!("warm-{round}"), &format!("{name}:v1")).await?;
        warm.push(cost.time.as_secs_f64());
        fetched += cost.fetched;
    }
    let program = runtime.program();
    figures.compare(
        &format!("{program}: 200 MB, warm start / cold start, quickest of {ROUNDS}"),
        ("warm", quickest(&warm)),
        ("cold", quickest(&cold)),
        Bar::AtMost(SHARE),
    );
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    figures.add(
        &format!("{program}: fetched from the registry at {ROUNDS} warm starts"),
        fetched as f64,
        "bytes",
        Bar::AtMost(0.0),
    );
    Ok(())
}

fn quickest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
