//! `prewarm explain`: why each node of a job is where it is, decided by the controller's own code on what the API says.

mod gather;
mod report;
mod words;

use clap::Args as ClapArgs;
use jiff::Timestamp;

use crate::answer::{Answer, Exit};
use crate::jobs::JobName;
use crate::reach::{Reach, Scope};
use crate::show::{Look, Output, Watch, follow, render};
use gather::Source;
use report::Report;

/// Tell why each node of a job is done, pulling, waiting or failing
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm explain web
  prewarm explain web node-7 node-8
  prewarm explain imagelistpulljob/base -o json

Exit codes:
  0  no node that is shown has failed
  1  some node has failed
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// The job, such as `web` or `imagelistpulljob/base`
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Only these nodes, also those that the job does not select
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    reach: Reach,
}

/// Explains a job.
pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    let (format, mut changes) = (args.output.output, args.watch.changes());
    let source = Source::read(&cluster, args.scope.of(&cluster), &args.job, changes.as_mut()).await?;
    let report = || anyhow::Ok(Report::of(&source.world(&args.job)?, &args.nodes, Timestamp::now()));
    if let Some(changes) = &mut changes {
        return follow(format, changes, report).await;
    }
    let report = report()?;
    let exit = if report.has_failed() { Exit::Findings } else { Exit::Success };
    let stderr = report.remark();
    Ok(Answer { stdout: render(&report, format, Look::of(format)), stderr, exit })
}
