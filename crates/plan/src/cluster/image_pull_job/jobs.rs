//! All ImagePullJobs, and what is found by them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use prewarm_api::kruise::ImagePullJob;

use super::explain::{Wait, Why, explain, reported_hold};
use super::record::Job;
use crate::cluster::Kernel;
use crate::cluster::interface::Explain;
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

impl Explain for ImagePullJob {
    type Explanation = BTreeMap<NodeName, Why>;

    fn explain(kernel: &mut Kernel, key: &ObjectKey, now: Timestamp) -> Option<Self::Explanation> {
        let uid = kernel.jobs.all.uid(key)?;
        let (job, record) = (kernel.jobs.all.get(uid)?, kernel.demands.get(uid)?);
        let mut roll = record.roll.clone()?;
        let mut nodes = explain(&record.demand, reported_hold(&job.object).as_ref(), &mut roll, now);
        for (name, why) in &mut nodes {
            if matches!(why, Why::Waiting(Wait::Turn | Wait::Parallelism { .. }))
                && let Err(crowd) = kernel.admit(uid, name, Want::Grant)
            {
                *why = Why::Waiting(Wait::Room(crowd));
            }
        }
        Some(nodes)
    }
}
