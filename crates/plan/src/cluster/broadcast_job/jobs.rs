//! All BroadcastJobs, their pods, and the nodes as pods see them.
//!
//! They share nothing with the jobs that pull images but the Nodes, and begin when their own kinds have been listed, so that
//! neither waits for the other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::fitness::NodeFacts;
use super::pod::Pod;
use super::record::Broadcast;
use crate::cluster::size::{BroadcastPods, JobState, JobStates};
use crate::cluster::{Kernel, Kind, Target};
use crate::object::store::{Entry, Store};
use crate::object::{NodeName, ObjectKey, OwnerKey, Uid};

/// BroadcastJobs and what they depend on.
#[derive(Debug, Default)]
pub struct Broadcasts {
    /// Whether jobs and pods have been listed: before, a node would look as if it had no pod.
    pub(super) is_known: bool,
    pub(super) nodes: BTreeMap<NodeName, NodeFacts>,
    pub(super) jobs: Store<Broadcast>,
    /// Where each pod is held.
    pub(super) homes: Store<Home>,
    /// Pods of jobs that are not known in their namespace.
    pub(super) orphans: HashMap<OwnerKey, BTreeMap<Arc<str>, Pod>>,
}

/// Where a pod is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub(super) key: ObjectKey,
    pub(super) version: String,
    /// The UID of its job.
    pub(super) job: Uid,
    /// Its node.
    pub(super) node: NodeName,
}

impl Home {
    /// Its job, which counts it if it is in the same namespace.
    pub(super) fn owner(&self) -> OwnerKey {
        OwnerKey::new(&self.key.namespace, &self.job)
    }
}

impl Entry for Home {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        &self.version
    }
}

impl Broadcasts {
    /// How many jobs there are, and how many pods the unfinished ones have.
    pub fn size(&self) -> (JobStates, BroadcastPods) {
        let (mut jobs, mut pods) = (JobStates::default(), BroadcastPods::default());
        for job in self.jobs.values() {
            let state = job.state();
            jobs.add(state);
            if matches!(state, JobState::Running | JobState::Paused) {
                let (tally, unscheduled) = (job.roll.tally(), job.roll.unscheduled().len());
                pods.waiting += tally.open.saturating_sub(tally.active);
                pods.unscheduled += unscheduled;
                pods.active += tally.active.saturating_sub(unscheduled);
                pods.succeeded += tally.succeeded;
                pods.failed += tally.failed;
            }
        }
        (jobs, pods)
    }
}

impl Kernel {
    /// Jobs or pods have been listed. Whoever does not use them need not grant the rights to them, so nothing else waits for them.
    pub(super) fn know_broadcasts(&mut self) {
        let is_known = [Kind::BroadcastJob, Kind::BroadcastPod].iter().all(|kind| self.known.contains(kind));
        if is_known && !std::mem::replace(&mut self.broadcasts.is_known, true) {
            let jobs = self.broadcasts.jobs.iter().map(|(uid, _)| Target::Broadcast(uid.clone()));
            self.agenda.mark_all(jobs);
        }
    }
}

#[cfg(test)]
mod tests;
