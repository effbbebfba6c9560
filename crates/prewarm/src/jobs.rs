//! Pull jobs of both kinds for the commands: a job for one image, or a list with the jobs that it has made.

mod failure;
mod name;
mod state;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::kruise::{
    IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB, ImageListPullJob, ImagePullJob, ImagePullJobStatus,
};
use prewarm_api::selector::text::{self, Requirement};

use crate::reach::{Feed, Reader};

pub use failure::{FORGOTTEN, Failure, Group, failures, grouped, status_for, status_of};
pub use name::JobName;
pub use state::State;

/// The pull jobs of one namespace, or of all namespaces.
pub struct Jobs {
    ones: Feed<ImagePullJob>,
    lists: Feed<ImageListPullJob>,
}

/// A job as a user made it.
#[derive(Clone)]
pub enum Job {
    One(Arc<ImagePullJob>),
    /// A list of images, with the jobs that it has made.
    List(Arc<ImageListPullJob>, Vec<Arc<ImagePullJob>>),
}

impl Jobs {
    /// Reads both kinds.
    pub async fn read(reader: &mut Reader, namespace: Option<&str>) -> anyhow::Result<Self> {
        let ones = reader.namespaced(namespace).await?;
        let lists = reader.namespaced(namespace).await?;
        Ok(Self { ones, lists })
    }

    /// All jobs made by users, by namespace and name. The jobs made by a list are with their list.
    pub fn all(&self) -> Vec<Job> {
        let ones = self.ones.objects();
        let lists = self.lists.objects().into_iter().map(|list| {
            let of_list = |one: &&Arc<ImagePullJob>| {
                list_uid(one).is_some() && list_uid(one) == list.metadata.uid.as_deref()
            };
            let children = ones.iter().filter(of_list).cloned().collect();
            Job::List(list, children)
        });
        let without_list = ones.iter().filter(|one| list_uid(one).is_none()).cloned().map(Job::One);
        let mut jobs: Vec<Job> = lists.chain(without_list).collect();
        jobs.sort_by_key(|job| (job.namespace().to_owned(), job.name().to_owned()));
        jobs
    }

    /// The jobs of this name, including those made by lists.
    pub fn named(&self, name: &JobName) -> Vec<Job> {
        let (mut all, ones) = (self.all(), self.ones.objects());
        all.extend(ones.into_iter().filter(|one| list_uid(one).is_some()).map(Job::One));
        all.retain(|job| name.means(job.kind(), job.name()));
        all
    }
}

impl Job {
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::One(one) => &one.metadata,
            Self::List(list, _) => &list.metadata,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::One(_) => IMAGE_PULL_JOB,
            Self::List(..) => IMAGE_LIST_PULL_JOB,
        }
    }

    pub fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.metadata().namespace.as_deref().unwrap_or_default()
    }

    /// The jobs that pull: this one, or those that the list has made.
    pub fn parts(&self) -> &[Arc<ImagePullJob>] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::List(_, children) => children,
        }
    }

    pub fn images(&self) -> Vec<&str> {
        match self {
            Self::One(one) => vec![&one.spec.image],
            Self::List(list, _) => list.spec.images.iter().map(String::as_str).collect(),
        }
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        let end = match self {
            Self::One(one) => one.status.as_ref()?.completion_time.as_ref(),
            Self::List(list, _) => list.status.as_ref()?.completion_time.as_ref(),
        };
        end.map(|Time(end)| *end)
    }

    /// The sums over all parts.
    pub fn status(&self) -> ImagePullJobStatus {
        let mut sum = ImagePullJobStatus::default();
        for status in self.parts().iter().filter_map(|part| part.status.as_ref()) {
            sum.desired = sum.desired.saturating_add(status.desired);
            sum.active = sum.active.saturating_add(status.active);
            sum.succeeded = sum.succeeded.saturating_add(status.succeeded);
            sum.failed = sum.failed.saturating_add(status.failed);
            sum.bytes_done = added(sum.bytes_done, status.bytes_done);
            sum.bytes_total = added(sum.bytes_total, status.bytes_total);
            sum.start_time = earlier(sum.start_time, status.start_time.clone());
        }
        sum.completion_time = self.ended_at().map(Time);
        sum
    }
}

/// Parses the value of `-l`.
pub fn labels(text: &str) -> anyhow::Result<Vec<Requirement>> {
    text::parse(text).map_err(|error| anyhow::anyhow!("--selector {text:?}: {error}"))
}

/// Whether the labels of an object meet all requirements.
pub fn has_labels(metadata: &ObjectMeta, requirements: &[Requirement]) -> bool {
    let labels = metadata.labels.clone().unwrap_or_default();
    requirements.iter().all(|requirement| requirement.holds(&labels))
}

/// The UID of the list that made a job.
fn list_uid(job: &ImagePullJob) -> Option<&str> {
    let owners = job.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.kind == IMAGE_LIST_PULL_JOB).map(|owner| owner.uid.as_str())
}

fn added(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).reduce(i64::saturating_add)
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min_by_key(|Time(time)| *time)
}
