//! `prewarm check`: finds out, line by line, whether a cluster can take Prewarm or whether an installation works,
//! and names the next step.

mod facts;
mod gather;
mod judge;
mod report;

use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use prewarm_api::permission::SYSTEM_NAMESPACE;

use crate::answer::Answer;
use crate::reach::Reach;
use crate::show::{Output, once};
use gather::{Namespaces, gather};
use judge::{Stage, judge};
use report::Verdict;

/// The pause between two rounds of a check that waits.
const PAUSE: Duration = Duration::from_secs(2);
/// At most an hour.
const MAX_WAIT_SECONDS: i64 = 3600;

/// Check whether a cluster is ready for Prewarm, or whether what is installed works
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm check --pre          # before an installation
  prewarm check
  prewarm check --wait 120     # until everything works, for two minutes at most

Exit codes:
  0  nothing is wrong; there may be warnings (‼)
  1  something is wrong (✗)
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// Check what an installation needs, before there is one
    #[arg(long)]
    pre: bool,
    /// Check again until nothing is wrong, for at most this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=MAX_WAIT_SECONDS))]
    wait: u32,
    /// The namespace of the controller
    #[arg(short, long, value_name = "NAME", default_value = SYSTEM_NAMESPACE)]
    namespace: String,
    /// The namespace of the agents, if it is another one
    #[arg(long, value_name = "NAME")]
    agent_namespace: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    reach: Reach,
}

/// Checks once, or with `--wait` until nothing is wrong.
pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    let stage = if args.pre { Stage::Before } else { Stage::After };
    let deadline = Instant::now() + Duration::from_secs(args.wait.into());
    let namespaces = Namespaces { controller: &args.namespace, agents: args.agent_namespace.as_deref() };
    loop {
        let facts = Box::pin(gather(&cluster, &namespaces, stage)).await?;
        let report = judge(&facts, stage);
        if report.worst() != Verdict::Bad || Instant::now() >= deadline {
            return Ok(once(&report, args.output.output));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
