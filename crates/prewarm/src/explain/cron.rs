//! Why a cron job has run or not: when, how its runs ended, and why some did not happen.

mod report;
mod run;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, TemplateKind};

use crate::crons::{Crons, Summary};
use crate::jobs::JobName;
use crate::reach::{Changes, Cluster, Feed, Narrow};
use report::Item;
pub use report::Report;
use run::Run;

/// Cron jobs, and what they have made. Only kinds are read that a cron job of this name makes.
pub struct Source {
    crons: Crons,
    lists: Option<Feed<ImageListPullJob>>,
    broadcasts: Option<Feed<BroadcastJob>>,
    jobs: Option<Feed<Job>>,
}

impl Source {
    /// Reads it, and follows it if changes are wanted. A name that no cron job has is an error.
    pub async fn read(
        cluster: &Cluster,
        namespace: Option<&str>,
        name: &JobName,
        mut changes: Option<&mut Changes>,
    ) -> anyhow::Result<Self> {
        let crons = Crons::read(cluster, namespace, changes.as_deref_mut()).await?;
        let found = crons.named(name);
        if found.is_empty() {
            return Err(crons.nobody(name));
        }
        let mut source = Self { crons, lists: None, broadcasts: None, jobs: None };
        let all = Narrow::default();
        for kind in found.iter().filter_map(|cron| cron.spec.template.kind()) {
            let changes = changes.as_deref_mut();
            match kind {
                TemplateKind::ImageListPullJob if source.lists.is_none() => {
                    source.lists = Some(cluster.feed(cluster.api(namespace), &all, changes).await?);
                }
                TemplateKind::BroadcastJob if source.broadcasts.is_none() => {
                    source.broadcasts = Some(cluster.feed(cluster.api(namespace), &all, changes).await?);
                }
                TemplateKind::Job if source.jobs.is_none() => {
                    source.jobs = Some(cluster.feed(cluster.api(namespace), &all, changes).await?);
                }
                _ => {}
            }
        }
        Ok(source)
    }

    /// What is to be told at this time.
    pub fn report(&self, name: &JobName, now: Timestamp) -> anyhow::Result<Report> {
        let found = self.crons.named(name);
        anyhow::ensure!(!found.is_empty(), "the cron job {name} is gone");
        let items = found.iter().map(|cron| Item::of(Summary::of(cron, now), self.runs(cron, now)));
        Ok(Report { items: items.collect() })
    }

    /// The runs of a cron job, the latest first.
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
