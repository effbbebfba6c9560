//! How fast the controller is and what it costs, on the embedded API and on a real API server. Agents are simulated: they
//! answer as the real ones do, all in one task.

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
#[path = "controller/pass.rs"]
mod pass;
#[path = "controller/record.rs"]
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
#[derive(Clone, Copy, Debug)]
struct Scope {
    embedded: bool,
    real: bool,
}

impl Scope {
    fn read(words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut scope = Self { embedded: true, real: true };
        for word in words {
            match word.as_str() {
                // That is how cargo calls benchmarks.
                "--bench" => {}
                "--embedded" => scope.real = false,
                "--real" => scope.embedded = false,
                _ => bail!("{word} means nothing here; there are --embedded and --real"),
            }
        }
        Ok(scope)
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
        pass::measure(&mut figures)?;
        jobs_on(&Cluster::embedded(SOME_NODES).await?, &mut figures).await?;
        runs::wide(&Cluster::embedded(MANY_NODES).await?, &mut figures).await?;
        large::measure(&mut figures).await?;
    }
    if scope.real {
        jobs_on(&Cluster::real(SOME_NODES).await?, &mut figures).await?;
        runs::wide(&Cluster::real(MANY_NODES).await?, &mut figures).await?;
    }
    Ok(figures.close())
}

async fn jobs_on(cluster: &Cluster, figures: &mut Figures) -> anyhow::Result<()> {
    runs::rolling(cluster, figures).await?;
    runs::list(cluster, figures).await
}
