//! All ImagePullJobs, and what is found by them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::explain::{Wait, Why, explain, reported_hold};
use super::record::Job;
use crate::cluster::Kernel;
use crate::cluster::node_image::node::Want;
use crate::object::store::Store;
use crate::object::{NodeName, ObjectKey, OwnerKey, Uid};

/// All ImagePullJobs.
#[derive(Debug, Default)]
pub struct Jobs {
    pub(in crate::cluster) all: Store<Job>,
    /// The children of each list, in its namespace.
    pub(in crate::cluster) children: HashMap<OwnerKey, BTreeSet<Uid>>,
}

impl Jobs {
    /// The names and UIDs of all jobs.
    pub fn held(&self) -> impl Iterator<Item = (&ObjectKey, &Uid)> {
        self.all.held()
    }
}

impl Kernel {
    pub(in crate::cluster) fn job_visits(&self, key: &ObjectKey) -> Option<u64> {
        let uid = self.jobs.all.uid(key)?;
        Some(self.demands.get(uid)?.roll.as_ref()?.visits())
    }

    pub(in crate::cluster) fn explain_job(
        &self,
        key: &ObjectKey,
        now: Timestamp,
    ) -> Option<BTreeMap<NodeName, Why>> {
        let uid = self.jobs.all.uid(key)?;
        let (job, record) = (self.jobs.all.get(uid)?, self.demands.get(uid)?);
        let mut roll = record.roll.clone()?;
        let mut nodes = explain(&record.demand, reported_hold(&job.object).as_ref(), &mut roll, now);
        for (name, why) in &mut nodes {
            // Whoever asks may know what there is without having granted anything.
            if matches!(why, Why::Waiting(Wait::Turn | Wait::Parallelism { .. }))
                && let Err(crowd) = self.admit(uid, name, Want::Grant)
            {
                *why = Why::Waiting(Wait::Room(crowd));
            }
        }
        Some(nodes)
    }
}
