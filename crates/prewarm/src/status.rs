//! `prewarm status`: which jobs and ImagePrefetches run, their progress, speed and remaining time; and when cron jobs run.

mod crons;
mod report;

use std::sync::Arc;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{AdvancedCronJob, NodeImage};
use prewarm_api::ofen::{IMAGE_PREFETCH, ImagePrefetch, NODE_IMAGE_SET};

use crate::answer::Answer;
use crate::crons::{Crons, Summary};
use crate::jobs::{self, Group, Job, JobName, Jobs, failures, grouped, has_labels};
use crate::prefetches::{self, Prefetches};
use crate::query::Query;
use crate::reach::{Feed, Narrow, Reader, Scope};
use report::{Report, Row};

/// Show pull jobs, ImagePrefetches and cron jobs: progress, speed, remaining time, and why nodes fail
///
/// Without names it lists all of the namespace. With names it also shows why nodes fail, grouped by reason, and why
/// runs of a cron job did not happen.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm status -A
  prewarm status web --watch
  prewarm status imagelistpulljob/base -o json
  prewarm status imageprefetch/base
  prewarm status advancedcronjob/nightly

Exit codes:
  0  every job shown is fine: it runs, waits or is done
  1  a job that was named has failed on some node; a cron job that was named failed or is stuck
  2  wrong usage, or the cluster could not be asked")]
pub struct Args {
    /// Jobs, such as `web`, `imagelistpulljob/base`, `imageprefetch/base` or `advancedcronjob/nightly`; all if none is
    /// named
    #[arg(value_name = "JOB")]
    jobs: Vec<JobName>,
    /// Only jobs with these labels, such as `team=shop,tier!=test`
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "jobs")]
    selector: Option<String>,
    #[command(flatten)]
    query: Query<Scope>,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    if let Some(name) = args.jobs.iter().find(|name| name.is_of(NODE_IMAGE_SET)) {
        anyhow::bail!("{name} is what one node has to hold; `prewarm explain {name}` shows how far it is");
    }
    let mut inquiry = args.query.begin().await?;
    let namespace = args.query.scope.of(inquiry.cluster()).map(str::to_owned);
    let source = Source::read(args, namespace, &mut inquiry.reader).await?;
    inquiry.warn(&source.crons.remark());
    inquiry.warn(&source.prefetches.remark());
    inquiry.answer(|now| source.report(args, now)).await
}

/// What the report is made of. There are many NodeImages, so they are only read if something that pulls is named.
struct Source {
    namespace: Option<String>,
    jobs: Jobs,
    prefetches: Prefetches,
    crons: Crons,
    images: Option<Feed<NodeImage>>,
}

impl Source {
    async fn read(args: &Args, namespace: Option<String>, reader: &mut Reader) -> anyhow::Result<Self> {
        let jobs = Jobs::read(reader, namespace.as_deref()).await?;
        let prefetches = Prefetches::read(reader, namespace.as_deref()).await?;
        let crons = Crons::read(reader, namespace.as_deref()).await?;
        let pulls = |name: &JobName| !jobs.named(name).is_empty() || !prefetches.named(name).is_empty();
        let images = if args.jobs.iter().any(pulls) {
            Some(reader.cluster_wide(&Narrow::default()).await?)
        } else {
            None
        };
        Ok(Self { namespace, jobs, prefetches, crons, images })
    }

    fn report(&self, args: &Args, now: Timestamp) -> anyhow::Result<Report> {
        let (mut pulls, mut crons) = self.chosen(&args.jobs)?;
        if let Some(labels) = args.selector.as_deref().map(jobs::labels).transpose()? {
            pulls.retain(|pull| has_labels(pull.metadata(), &labels));
            crons.retain(|cron| has_labels(&cron.metadata, &labels));
        }
        let images: Option<Vec<Arc<NodeImage>>> = self.images.as_ref().map(Feed::objects);
        let rows = pulls.iter().map(|pull| {
            let failures = images.as_ref().map(|images| pull.failures(images)).unwrap_or_default();
            match pull {
                Pull::Job(job) => Row::of(job, failures, now),
                Pull::Prefetch(prefetch) => Row::of_prefetch(prefetch, failures, now),
            }
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
    fn chosen(&self, names: &[JobName]) -> anyhow::Result<(Vec<Pull>, Vec<Arc<AdvancedCronJob>>)> {
        let alike = |jobs: Vec<Job>, prefetches: Vec<Arc<ImagePrefetch>>| {
            jobs.into_iter().map(Pull::Job).chain(prefetches.into_iter().map(Pull::Prefetch))
        };
        if names.is_empty() {
            let mut all: Vec<Pull> = alike(self.jobs.all(), self.prefetches.all()).collect();
            all.sort_by_key(|pull| (pull.metadata().namespace.clone(), pull.metadata().name.clone()));
            return Ok((all, self.crons.all()));
        }
        let (mut pulls, mut crons) = (Vec::new(), Vec::new());
        for name in names {
            let before = pulls.len();
            pulls.extend(alike(self.jobs.named(name), self.prefetches.named(name)));
            let some_crons = self.crons.named(name);
            if pulls.len() == before && some_crons.is_empty() {
                return Err(self.unknown(name));
            }
            crons.extend(some_crons);
        }
        Ok((pulls, crons))
    }

    fn unknown(&self, name: &JobName) -> anyhow::Error {
        if name.is_of(IMAGE_PREFETCH) {
            self.prefetches.unknown(name)
        } else {
            self.crons.unknown(name, self.prefetches.and_jobs())
        }
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

/// What puts images on nodes.
enum Pull {
    Job(Job),
    Prefetch(Arc<ImagePrefetch>),
}

impl Pull {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Job(job) => job.metadata(),
            Self::Prefetch(prefetch) => &prefetch.metadata,
        }
    }

    /// Why nodes fail, by reason.
    fn failures(&self, images: &[Arc<NodeImage>]) -> Vec<Group> {
        let images = || images.iter().map(|image| &**image);
        let found: Vec<_> = match self {
            Self::Job(job) => job.parts().iter().flat_map(|part| failures(part, images())).collect(),
            Self::Prefetch(prefetch) => prefetches::failures(prefetch, images()),
        };
        grouped(&found)
    }
}
