//! Explains a cron job: when it runs, how its runs ended, and why some did not happen.

mod report;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, TemplateKind};

use crate::crons::{Crons, Summary};
use crate::jobs::JobName;
use crate::reach::{Feed, Reader};
use report::Item;
pub use report::Report;
use run::Run;

/// The cron jobs of a name, and their runs. Only the kinds that they make are read.
pub struct Source {
    crons: Crons,
    lists: Option<Feed<ImageListPullJob>>,
    broadcasts: Option<Feed<BroadcastJob>>,
    jobs: Option<Feed<Job>>,
}

impl Source {
    /// Reads the cron jobs of this name and their runs. A name that no cron job has is an error; `others` are the jobs that were
    /// looked for besides.
    pub async fn read(
        reader: &mut Reader,
        namespace: Option<&str>,
        name: &JobName,
        others: &str,
    ) -> anyhow::Result<Self> {
        let crons = Crons::read(reader, namespace).await?;
        let found = crons.named(name);
        if found.is_empty() {
            return Err(crons.unknown(name, others));
        }
        let mut source = Self { crons, lists: None, broadcasts: None, jobs: None };
        let kinds = found.iter().filter_map(|cron| cron.spec.template.kind());
        for kind in kinds.collect::<BTreeSet<_>>() {
            match kind {
                TemplateKind::ImageListPullJob => source.lists = Some(reader.namespaced(namespace).await?),
                TemplateKind::BroadcastJob => source.broadcasts = Some(reader.namespaced(namespace).await?),
                TemplateKind::Job => source.jobs = Some(reader.namespaced(namespace).await?),
            }
        }
        Ok(source)
    }

    pub fn report(&self, name: &JobName, now: Timestamp) -> anyhow::Result<Report> {
        let found = self.crons.named(name);
        anyhow::ensure!(!found.is_empty(), "the cron job {name} is gone");
        let items = found.iter().map(|cron| Item::of(Summary::of(cron, now), self.runs(cron, now)));
        Ok(Report { items: items.collect() })
    }

    /// The runs of a cron job, latest first.
    fn runs(&self, cron: &Arc<AdvancedCronJob>, now: Timestamp) -> Vec<Run> {
        let uid = cron.metadata.uid.as_deref().unwrap_or_default();
        let lists = self.lists.iter().flat_map(Feed::objects);
        let broadcasts = self.broadcasts.iter().flat_map(Feed::objects);
        let jobs = self.jobs.iter().flat_map(Feed::objects);
        let mut runs: Vec<Run> = lists
            .filter_map(|list| Run::of_list(&list, uid, now))
            .chain(broadcasts.filter_map(|broadcast| Run::of_broadcast(&broadcast, uid, now)))
            .chain(jobs.filter_map(|job| Run::of_job(&job, uid, now)))
            .collect();
        runs.sort_by(|one, other| other.scheduled.cmp(&one.scheduled).then(other.name.cmp(&one.name)));
        runs
    }
}
