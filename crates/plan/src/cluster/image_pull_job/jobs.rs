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

impl Kernel {
    /// Why each node of an unfinished ImagePullJob is where it is. `None` if the job is over or not known.
    pub fn explain(&self, key: &ObjectKey, now: Timestamp) -> Option<BTreeMap<NodeName, Why>> {
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
