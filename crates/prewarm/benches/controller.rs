//! The speed and cost of the controller, on the embedded API and on a real API server. Agents are simulated in one
//! task; they answer as the real ones do.

#[path = "controller/agents.rs"]
mod agents;
#[path = "controller/cluster.rs"]
mod cluster;
#[path = "controller/floor.rs"]
mod floor;
#[path = "controller/jobs.rs"]
mod jobs;
#[path = "controller/large.rs"]
mod large;
#[path = "controller/many.rs"]
mod many;
#[path = "controller/pass.rs"]
mod pass;
#[path = "controller/record.rs"]
#[expect(dead_code, reason = "shared with the benchmark of BroadcastJobs, which needs more of it")]
mod record;
#[path = "controller/runs.rs"]
mod runs;

use std::process::ExitCode;

use anyhow::bail;
use cluster::Cluster;
use prewarm_testkit::figure::Figures;

/// Nodes of a rolling job, and of a list.
const SOME_NODES: usize = 200;
/// Nodes that pull all at once.
const MANY_NODES: usize = 1000;

/// What is measured.
struct Scope {
    embedded: bool,
    real: bool,
    /// The part to measure; everything if there is none.
    part: Option<String>,
}

/// The parts.
const PARTS: [&str; 6] = ["pass", "rolling", "list", "wide", "large", "many"];

impl Scope {
    fn read(words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut scope = Self { embedded: true, real: true, part: None };
        for word in words {
            match word.as_str() {
                // That is how cargo calls benchmarks.
                "--bench" => {}
                "--embedded" => scope.real = false,
                "--real" => scope.embedded = false,
                part if PARTS.contains(&part) => scope.part = Some(word),
                _ => bail!("{word} means nothing here; there are --embedded, --real, and one of {PARTS:?}"),
            }
        }
        Ok(scope)
    }

    fn has(&self, part: &str) -> bool {
        self.part.as_deref().is_none_or(|wanted| wanted == part)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let scope = Scope::read(std::env::args().skip(1))?;
    if scope.real
        && let Err(reason) = prewarm_bed::enter()
    {
        bail!("cannot measure on a real API server: {reason}");
    }
    tokio::runtime::Runtime::new()?.block_on(measure(scope))
}

async fn measure(scope: Scope) -> anyhow::Result<ExitCode> {
    let mut figures = Figures::new("controller");
    if scope.embedded {
        if scope.has("pass") {
            pass::measure(&mut figures)?;
        }
        jobs_on(&scope, async |nodes| Cluster::embedded(nodes).await, &mut figures).await?;
        if scope.has("large") {
            large::measure(&mut figures).await?;
        }
        if scope.has("many") {
            many::measure(&mut figures).await?;
        }
    }
    if scope.real {
        jobs_on(&scope, async |nodes| Cluster::real(nodes).await, &mut figures).await?;
    }
    Ok(figures.close())
}

/// Each part has a cluster of its own.
async fn jobs_on(
    scope: &Scope,
    cluster: impl AsyncFn(usize) -> anyhow::Result<Cluster>,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    if scope.has("rolling") {
        runs::rolling(&cluster(SOME_NODES).await?, figures).await?;
    }
    if scope.has("list") {
        runs::list(&cluster(SOME_NODES).await?, figures).await?;
        runs::small_list(&cluster(1).await?, figures).await?;
    }
    if scope.has("wide") {
        runs::wide(&cluster(MANY_NODES).await?, figures).await?;
    }
    Ok(())
}
