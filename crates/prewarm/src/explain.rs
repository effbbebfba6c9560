//! `prewarm explain`: why each node of a job is in its state, decided by the controller's own code from what the
//! API returns; and why a cron job has run or not.

mod cron;
mod gather;
mod report;
mod words;

use clap::Args as ClapArgs;

use crate::answer::Answer;
use crate::jobs::{JobName, Jobs};
use crate::query::Query;
use crate::reach::Scope;
use gather::Source;
use report::Report;

/// Explain why nodes of a job are done, waiting or failing, or how a cron job runs
///
/// If a pull job and a cron job share a name, the pull job is meant; `advancedcronjob/NAME` means the cron job.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm explain web
  prewarm explain web node-7 node-8
  prewarm explain imagelistpulljob/base -o json
  prewarm explain advancedcronjob/nightly

Exit codes:
  0  no node shown has failed; the cron job is fine
  1  some node has failed; the last run of the cron job failed, or none can start
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// The job, such as `web`, `imagelistpulljob/base` or `advancedcronjob/nightly`
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Only these nodes, even if the job does not select them
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    #[command(flatten)]
    query: Query<Scope>,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let mut inquiry = args.query.begin().await?;
    let namespace = args.query.scope.of(inquiry.cluster()).map(str::to_owned);
    if !args.job.is_of_cron() {
        let jobs = Jobs::read(&mut inquiry.reader, namespace.as_deref()).await?;
        if !jobs.named(&args.job).is_empty() {
            let source = Source::read(&mut inquiry.reader, jobs, &args.job).await?;
            let report = |now| Ok(Report::of(&source.world(&args.job, now)?, &args.nodes, now));
            return inquiry.answer(report).await;
        }
    }
    let source = cron::Source::read(&mut inquiry.reader, namespace.as_deref(), &args.job).await?;
    anyhow::ensure!(
        args.nodes.is_empty(),
        "{} is a cron job and has no nodes; name one of its runs: `prewarm explain RUN NODE`",
        args.job
    );
    inquiry.answer(|now| source.report(&args.job, now)).await
}
