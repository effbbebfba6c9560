//! `prewarm status`: what is running, how far, how fast, how long still.

mod report;

use std::sync::Arc;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use kube::Api;
use prewarm_api::kruise::NodeImage;

use crate::answer::{Answer, Exit};
use crate::jobs::{self, Job, JobName, Jobs, failures, grouped};
use crate::reach::{Changes, Cluster, Feed, Narrow, Reach, Scope};
use crate::show::{Look, Output, Watch, follow, render};
use report::{Report, Row};

/// Show pull jobs: how far they are, how fast, how long still, and why nodes fail
///
/// Without names it lists all jobs of the namespace. With names it also tells why nodes fail, grouped by reason.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm status -A
  prewarm status web --watch
  prewarm status imagelistpulljob/base -o json

Exit codes:
  0  every job that is shown is well: it runs, waits or is done
  1  a job that was named has failed on some node
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// Jobs, such as `web` or `imagelistpulljob/base`; all if none is named
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
    if let Some(changes) = &mut changes {
        return follow(format, changes, || source.report(args)).await;
    }
    let report = source.report(args)?;
    let stdout = render(&report, format, Look::of(format));
    let has_failed = !args.jobs.is_empty() && report.has_failed();
    let exit = if has_failed { Exit::Findings } else { Exit::Success };
    let stderr = if report.is_empty() { nothing(args, &cluster) } else { String::new() };
    Ok(Answer { stdout, stderr, exit })
}

/// Everything that the report is made of. NodeImages are many and are read only if jobs are named.
struct Source {
    jobs: Jobs,
    images: Option<Feed<NodeImage>>,
}

impl Source {
    async fn read(args: &Args, cluster: &Cluster, mut changes: Option<&mut Changes>) -> anyhow::Result<Self> {
        let jobs = Jobs::read(cluster, args.scope.of(cluster), changes.as_deref_mut()).await?;
        let images = if args.jobs.is_empty() {
            None
        } else {
            let api = Api::all(cluster.client.clone());
            Some(cluster.feed(api, &Narrow::default(), changes).await?)
        };
        Ok(Self { jobs, images })
    }

    fn report(&self, args: &Args) -> anyhow::Result<Report> {
        let now = Timestamp::now();
        let jobs = if args.jobs.is_empty() { self.jobs.all() } else { self.jobs.named(&args.jobs)? };
        let labels = args.selector.as_deref().map(jobs::labels).transpose()?;
        let is_wanted = |job: &&Job| labels.as_ref().is_none_or(|labels| job.has_labels(labels));
        let images: Option<Vec<Arc<NodeImage>>> = self.images.as_ref().map(Feed::objects);
        let rows = jobs.iter().filter(is_wanted).map(|job| {
            let failures = images.as_ref().map(|images| {
                let of_part = |part| failures(part, images.iter().map(|image| &**image));
                grouped(&job.parts().iter().flat_map(|part| of_part(part)).collect::<Vec<_>>())
            });
            Row::of(job, failures.unwrap_or_default(), now)
        });
        Ok(Report { items: rows.collect(), has_namespaces: args.scope.all_namespaces })
    }
}

/// What is said if there is nothing to show.
fn nothing(args: &Args, cluster: &Cluster) -> String {
    match args.scope.of(cluster) {
        _ if args.selector.is_some() => "No pull job has these labels.\n".to_owned(),
        Some(namespace) => format!("No pull jobs found in namespace {namespace}; -A looks in all.\n"),
        None => "No pull jobs found; `prewarm pull IMAGE` makes one.\n".to_owned(),
    }
}
