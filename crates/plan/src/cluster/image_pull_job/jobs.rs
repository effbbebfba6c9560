//! All ImagePullJobs, and what is found by them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::explain::{Why, explain, reported_hold};
use super::pod::Pods;
use super::record::Job;
use crate::cluster::Kernel;
use crate::demand::selection::Selection;
use crate::object::store::Store;
use crate::object::{ImageKey, NodeName, ObjectKey, Uid};

/// All ImagePullJobs.
#[derive(Debug, Default)]
pub struct Jobs {
    pub(in crate::cluster) all: Store<Job>,
    /// The unfinished jobs of each image.
    pub(in crate::cluster) by_image: BTreeMap<ImageKey, BTreeSet<Uid>>,
    /// The children of each list.
    pub(in crate::cluster) children: HashMap<Uid, BTreeSet<Uid>>,
    pub(super) pods: Pods,
    /// Jobs that are gone or over and whose entries have to be found.
    pub(super) left: BTreeSet<Uid>,
}

impl Jobs {
    /// The names and UIDs of all jobs.
    pub fn held(&self) -> impl Iterator<Item = (&ObjectKey, &Uid)> {
        self.all.held()
    }

    /// The unfinished jobs.
    pub(super) fn active(&self) -> Vec<Uid> {
        self.by_image.values().flatten().cloned().collect()
    }

    /// Takes a job out of the unfinished ones of its image.
    pub(super) fn unlist(&mut self, image: Option<ImageKey>, uid: &Uid) {
        let image = image.unwrap_or_else(no_image);
        if let Some(uids) = self.by_image.get_mut(&image) {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_image.remove(&image);
            }
        }
    }
}

impl Kernel {
    /// How many jobs are gone or over and have entries that are yet to be found.
    pub(in crate::cluster) fn left_jobs(&self) -> usize {
        self.jobs.left.len()
    }

    /// The namespaces whose pods have to be watched.
    pub(in crate::cluster) fn pod_namespaces(&self) -> BTreeSet<String> {
        let jobs = self.jobs.all.values();
        let jobs = jobs.filter(|job| job.is_active() && matches!(job.demand.nodes, Selection::Pods(_)));
        jobs.map(|job| job.key.namespace.clone()).collect()
    }

    pub(in crate::cluster) fn job_visits(&self, key: &ObjectKey) -> Option<u64> {
        Some(self.jobs.all.named(key)?.roll.as_ref()?.visits())
    }

    pub(in crate::cluster) fn explain_job(
        &self,
        key: &ObjectKey,
        now: Timestamp,
    ) -> Option<BTreeMap<NodeName, Why>> {
        let job = self.jobs.all.named(key)?;
        let mut roll = job.roll.clone()?;
        Some(explain(&job.demand, reported_hold(&job.object).as_ref(), &mut roll, now))
    }
}

/// The place of jobs whose image cannot be read.
pub(super) fn no_image() -> ImageKey {
    ImageKey { name: String::new(), tag: String::new() }
}
