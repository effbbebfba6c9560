//! `prewarm status`: which jobs run, their progress, speed and remaining time; and when cron jobs run.

mod crons;
mod report;

use std::sync::Arc;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use prewarm_api::kruise::{AdvancedCronJob, NodeImage};

use crate::answer::Answer;
use crate::crons::{Crons, Summary};
use crate::jobs::{self, Job, JobName, Jobs, failures, grouped, has_labels};
use crate::query::Query;
use crate::reach::{Feed, Narrow, Reader, Scope};
use report::{Report, Row};

/// Show pull jobs and cron jobs: progress, speed, remaining time, and why nodes fail
///
/// Without names it lists all pull jobs and cron jobs of the namespace. With names it also shows why nodes fail,
/// grouped by reason, and why runs of a cron job did not happen.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm status -A
  prewarm status web --watch
  prewarm status imagelistpulljob/base -o json
  prewarm status advancedcronjob/nightly

Exit codes:
  0  every job shown is fine: it runs, waits or is done
  1  a job that was named has failed on some node; a cron job that was named failed or is stuck
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// Jobs, such as `web`, `imagelistpulljob/base` or `advancedcronjob/nightly`; all if none is named
    #[arg(value_name = "JOB")]
    jobs: Vec<JobName>,
    /// Only jobs with these labels, such as `team=shop,tier!=test`
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "jobs")]
    selector: Option<String>,
    #[command(flatten)]
    query: Query<Scope>,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let mut inquiry = args.query.begin().await?;
    let namespace = args.query.scope.of(inquiry.cluster()).map(str::to_owned);
    let source = Source::read(args, namespace, &mut inquiry.reader).await?;
    inquiry.warn(&source.crons.remark());
    inquiry.answer(|now| source.report(args, now)).await
}

/// What the report is made of. There are many NodeImages, so they are only read if pull jobs are named.
struct Source {
    namespace: Option<String>,
    jobs: Jobs,
    crons: Crons,
    images: Option<Feed<NodeImage>>,
}

impl Source {
    async fn read(args: &Args, namespace: Option<String>, reader: &mut Reader) -> anyhow::Result<Self> {
        let jobs = Jobs::read(reader, namespace.as_deref()).await?;
        let crons = Crons::read(reader, namespace.as_deref()).await?;
        let images = if args.jobs.iter().any(|name| !jobs.named(name).is_empty()) {
            Some(reader.cluster_wide(&Narrow::default()).await?)
        } else {
            None
        };
        Ok(Self { namespace, jobs, crons, images })
    }

    fn report(&self, args: &Args, now: Timestamp) -> anyhow::Result<Report> {
        let (mut jobs, mut crons) = self.chosen(&args.jobs)?;
        if let Some(labels) = args.selector.as_deref().map(jobs::labels).transpose()? {
            jobs.retain(|job| has_labels(job.metadata(), &labels));
            crons.retain(|cron| has_labels(&cron.metadata, &labels));
        }
        let images: Option<Vec<Arc<NodeImage>>> = self.images.as_ref().map(Feed::objects);
        let rows = jobs.iter().map(|job| {
            let failures = images.as_ref().map(|images| {
                let of_part = |part| failures(part, images.iter().map(|image| &**image));
                grouped(&job.parts().iter().flat_map(|part| of_part(part)).collect::<Vec<_>>())
            });
            Row::of(job, failures.unwrap_or_default(), now)
        });
        let is_hidden = matches!(self.crons, Crons::Hidden(_));
        let crons = (!is_hidden).then(|| crons.iter().map(|cron| Summary::of(cron, now)).collect());
        Ok(Report {
            items: rows.collect(),
            crons,
            has_namespaces: args.query.scope.all_namespaces,
            is_detailed: !args.jobs.is_empty(),
            nothing: self.nothing(args),
        })
    }

    /// All jobs, or the named ones in the order of the names. A name that no job has is an error.
    fn chosen(&self, names: &[JobName]) -> anyhow::Result<(Vec<Job>, Vec<Arc<AdvancedCronJob>>)> {
        if names.is_empty() {
            return Ok((self.jobs.all(), self.crons.all()));
        }
        let (mut jobs, mut crons) = (Vec::new(), Vec::new());
        for name in names {
            let (some_jobs, some_crons) = (self.jobs.named(name), self.crons.named(name));
            if some_jobs.is_empty() && some_crons.is_empty() {
                return Err(self.crons.unknown(name));
            }
            jobs.extend(some_jobs);
            crons.extend(some_crons);
        }
        Ok((jobs, crons))
    }
    /// The line that is printed if there is nothing to show.
    fn nothing(&self, args: &Args) -> String {
        match &self.namespace {
            _ if args.selector.is_some() => "No pull job and no cron job has these labels.\n".to_owned(),
            Some(namespace) => {
                format!(
                    "No pull jobs and no cron jobs found in namespace {namespace}; -A lists all namespaces.\n"
                )
            }
            None => "No pull jobs and no cron jobs found; `prewarm pull IMAGE` makes one.\n".to_owned(),
        }
    }
}
