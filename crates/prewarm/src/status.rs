//! `prewarm status`: what is running, how far, how fast, how long still; and what runs when.

mod crons;
mod report;

use std::sync::Arc;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use kube::Api;
use prewarm_api::kruise::{AdvancedCronJob, NodeImage};

use crate::answer::{Answer, Exit};
use crate::crons::{Crons, Summary};
use crate::jobs::{self, Job, JobName, Jobs, failures, grouped, has_labels};
use crate::reach::{Changes, Cluster, Feed, Narrow, Reach, Scope};
use crate::show::{Look, Output, Watch, follow, render};
use report::{Report, Row};

/// Show pull jobs and cron jobs: how far, how fast, how long still, and why nodes fail
///
/// Without names it lists all pull jobs and cron jobs of the namespace. With names it also tells why nodes fail, grouped by
/// reason, and why runs of a cron job did not happen.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm status -A
  prewarm status web --watch
  prewarm status imagelistpulljob/base -o json
  prewarm status advancedcronjob/nightly

Exit codes:
  0  every job that is shown is well: it runs, waits or is done
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
    output: Output,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    reach: Reach,
}

/// Shows the jobs.
pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    let (format, mut changes) = (args.output.output, args.watch.changes());
    let source = Source::read(args, &cluster, changes.as_mut()).await?;
    let hidden = source.crons.remark();
    if let Some(changes) = &mut changes {
        // Below a picture that is drawn again and again nobody would read it.
        eprint!("{hidden}");
        return follow(format, changes, || source.report(args)).await;
    }
    let report = source.report(args)?;
    let stdout = render(&report, format, Look::of(format));
    let has_failed = !args.jobs.is_empty() && report.has_failed();
    let exit = if has_failed { Exit::Findings } else { Exit::Success };
    let nothing = if report.is_empty() { nothing(args, &cluster) } else { String::new() };
    Ok(Answer { stdout, stderr: nothing + &hidden, exit })
}

/// Everything that the report is made of. NodeImages are many and are read only if pull jobs are named.
struct Source {
    jobs: Jobs,
    crons: Crons,
    images: Option<Feed<NodeImage>>,
}

impl Source {
    async fn read(args: &Args, cluster: &Cluster, mut changes: Option<&mut Changes>) -> anyhow::Result<Self> {
        let namespace = args.scope.of(cluster);
        let jobs = Jobs::read(cluster, namespace, changes.as_deref_mut()).await?;
        let crons = Crons::read(cluster, namespace, changes.as_deref_mut()).await?;
        let images = if args.jobs.iter().any(|name| !jobs.named(name).is_empty()) {
            let api = Api::all(cluster.client.clone());
            Some(cluster.feed(api, &Narrow::default(), changes).await?)
        } else {
            None
        };
        Ok(Self { jobs, crons, images })
    }

    fn report(&self, args: &Args) -> anyhow::Result<Report> {
        let now = Timestamp::now();
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
            has_namespaces: args.scope.all_namespaces,
            is_detailed: !args.jobs.is_empty(),
        })
    }

    /// All jobs, or those that were named, in the order of their names. A name that nobody has is an error.
    fn chosen(&self, names: &[JobName]) -> anyhow::Result<(Vec<Job>, Vec<Arc<AdvancedCronJob>>)> {
        if names.is_empty() {
            return Ok((self.jobs.all(), self.crons.all()));
        }
        let (mut jobs, mut crons) = (Vec::new(), Vec::new());
        for name in names {
            let (some_jobs, some_crons) = (self.jobs.named(name), self.crons.named(name));
            if some_jobs.is_empty() && some_crons.is_empty() {
                return Err(self.crons.nobody(name));
            }
            jobs.extend(some_jobs);
            crons.extend(some_crons);
        }
        Ok((jobs, crons))
    }
}

/// What is said if there is nothing to show.
fn nothing(args: &Args, cluster: &Cluster) -> String {
    match args.scope.of(cluster) {
        _ if args.selector.is_some() => "No pull job and no cron job has these labels.\n".to_owned(),
        Some(namespace) => {
            format!("No pull jobs and no cron jobs found in namespace {namespace}; -A looks in all.\n")
        }
        None => "No pull jobs and no cron jobs found; `prewarm pull IMAGE` makes one.\n".to_owned(),
    }
}
