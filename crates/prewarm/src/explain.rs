//! `prewarm explain`: why each node of a job is where it is, decided by the controller's own code on what the API says; and
//! why a cron job has run or not.

mod cron;
mod gather;
mod report;
mod words;

use clap::Args as ClapArgs;
use jiff::Timestamp;

use crate::answer::{Answer, Exit};
use crate::jobs::{JobName, Jobs};
use crate::reach::{Changes, Reach, Scope};
use crate::show::{Look, Output, Watch, follow, render};
use gather::Source;
use report::Report;

/// Tell why nodes of a job are done, pulling, waiting or failing, or how a cron job runs
///
/// A name that a pull job and a cron job share means the pull job; `advancedcronjob/NAME` means the cron job.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm explain web
  prewarm explain web node-7 node-8
  prewarm explain imagelistpulljob/base -o json
  prewarm explain advancedcronjob/nightly

Exit codes:
  0  no node that is shown has failed; the cron job is well
  1  some node has failed; the last run of the cron job failed, or none can start
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// The job, such as `web`, `imagelistpulljob/base` or `advancedcronjob/nightly`
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
    let mut changes = args.watch.changes();
    if !args.job.is_of_cron() {
        let jobs = Jobs::read(&cluster, args.scope.of(&cluster), changes.as_mut()).await?;
        if !jobs.named(&args.job).is_empty() {
            let source = Source::read(&cluster, jobs, &args.job, changes.as_mut()).await?;
            return explain_nodes(args, &source, changes).await;
        }
    }
    let namespace = args.scope.of(&cluster);
    let source = cron::Source::read(&cluster, namespace, &args.job, changes.as_mut()).await?;
    explain_cron(args, &source, changes).await
}

async fn explain_nodes(args: &Args, source: &Source, changes: Option<Changes>) -> anyhow::Result<Answer> {
    let format = args.output.output;
    let report = || anyhow::Ok(Report::of(&source.world(&args.job)?, &args.nodes, Timestamp::now()));
    if let Some(mut changes) = changes {
        return follow(format, &mut changes, report).await;
    }
    let report = report()?;
    let exit = if report.has_failed() { Exit::Findings } else { Exit::Success };
    let stderr = report.remark();
    Ok(Answer { stdout: render(&report, format, Look::of(format)), stderr, exit })
}

async fn explain_cron(
    args: &Args,
    source: &cron::Source,
    changes: Option<Changes>,
) -> anyhow::Result<Answer> {
    anyhow::ensure!(
        args.nodes.is_empty(),
        "{} is a cron job and has no nodes; name one of its runs: `prewarm explain RUN NODE`",
        args.job
    );
    let format = args.output.output;
    let report = || source.report(&args.job, Timestamp::now());
    if let Some(mut changes) = changes {
        return follow(format, &mut changes, report).await;
    }
    let report = report()?;
    let exit = if report.has_failed() { Exit::Findings } else { Exit::Success };
    let stdout = render(&report, format, Look::of(format));
    Ok(Answer { stdout, stderr: String::new(), exit })
}
