//! `prewarm explain`: why each node of a job or an ImagePrefetch is in its state, decided by the controller's own code from
//! what the API returns; and why a cron job has run or not.

mod cron;
mod gather;
mod prefetch;
mod report;
mod words;

use clap::Args as ClapArgs;
use prewarm_api::kruise::{IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB};
use prewarm_api::ofen::{IMAGE_PREFETCH, NODE_IMAGE_SET};

use crate::answer::Answer;
use crate::jobs::{JobName, Jobs};
use crate::prefetches::Prefetches;
use crate::query::Query;
use crate::reach::Scope;
use gather::Source;
use report::Report;

/// Explain why nodes of a job are done, waiting or failing, or how a cron job runs
///
/// Of an ImagePrefetch it also says which nodes ask the registry and which ask mirrors. If several share a name, the
/// pull job is meant, then the ImagePrefetch; `imageprefetch/NAME` and `advancedcronjob/NAME` mean the others. A
/// NodeImageSet has to be named as `nodeimageset/NAME`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm explain web
  prewarm explain web node-7 node-8
  prewarm explain imagelistpulljob/base -o json
  prewarm explain imageprefetch/base
  prewarm explain nodeimageset/nodeimageset-base-cf546b4d
  prewarm explain advancedcronjob/nightly

Exit codes:
  0  no node shown has failed; the cron job is fine
  1  some node has failed; the last run of the cron job failed, or none can start
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// The job, such as `web`, `imagelistpulljob/base`, `imageprefetch/base` or `advancedcronjob/nightly`
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
    if args.job.is_of(NODE_IMAGE_SET) {
        let source = prefetch::Source::of_set(&mut inquiry.reader, &args.job).await?;
        return inquiry.answer(|now| source.set(&args.job, &args.nodes, now)).await;
    }
    if args.job.may_be(IMAGE_PULL_JOB) || args.job.may_be(IMAGE_LIST_PULL_JOB) {
        let jobs = Jobs::read(&mut inquiry.reader, namespace.as_deref()).await?;
        if !jobs.named(&args.job).is_empty() {
            let source = Source::read(&mut inquiry.reader, jobs, &args.job).await?;
            let report = |now| Ok(Report::of(&source.world(&args.job, now)?, &args.nodes, now));
            return inquiry.answer(report).await;
        }
    }
    let mut others = "pull job";
    if args.job.may_be(IMAGE_PREFETCH) {
        let prefetches = Prefetches::read(&mut inquiry.reader, namespace.as_deref()).await?;
        if !prefetches.named(&args.job).is_empty() {
            let source = prefetch::Source::read(&mut inquiry.reader, prefetches).await?;
            return inquiry.answer(|now| source.prefetch(&args.job, &args.nodes, now)).await;
        }
        if args.job.is_of(IMAGE_PREFETCH) {
            return Err(prefetches.unknown(&args.job));
        }
        others = prefetches.and_jobs();
    }
    let source = cron::Source::read(&mut inquiry.reader, namespace.as_deref(), &args.job, others).await?;
    anyhow::ensure!(
        args.nodes.is_empty(),
        "{} is a cron job and has no nodes; name one of its runs: `prewarm explain RUN NODE`",
        args.job
    );
    inquiry.answer(|now| source.report(&args.job, now)).await
}
