//! What the controller knows of BroadcastJobs, their pods, and the nodes as pods see them.
//!
//! It is a small ledger of its own within the ledger: it shares nothing with the jobs that pull images but the Nodes, and
//! it begins when its own kinds have been listed, so that neither waits for the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use super::command::Telling;
use super::gone::Gone;
use super::size::{BroadcastPods, JobState, JobStates};
use super::timers::Timers;
use crate::broadcast_job::fitness::NodeFacts;
use crate::broadcast_job::pod::Pod;
use crate::object::{NodeName, ObjectKey, Uid};
use job::Broadcast;

mod hear;
mod job;
mod outcome;
mod turn;

/// BroadcastJobs and what they depend on.
#[derive(Debug, Default)]
pub struct Broadcasts {
    /// Whether pods are bound to their nodes by the controller, not led there by the scheduler.
    is_direct: bool,
    /// Whether everything has been listed.
    is_synced: bool,
    nodes: BTreeMap<NodeName, NodeFacts>,
    jobs: BTreeMap<Uid, Broadcast>,
    uids: HashMap<ObjectKey, Uid>,
    /// Where each pod is held.
    homes: HashMap<ObjectKey, Home>,
    /// Pods of jobs that are not known.
    orphans: HashMap<Uid, BTreeMap<Arc<str>, Pod>>,
    /// UIDs of pods that are gone: the answer to a write may come after the watch's last word, or the other way round.
    gone: Gone,
    dirty: BTreeSet<Uid>,
    timers: Timers<Uid>,
    tellings: Vec<Telling>,
    passes: u64,
}

/// Where a pod is held.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Home {
    /// The UID of its job.
    job: Uid,
    /// Its node.
    node: NodeName,
    /// The pod's UID.
    uid: Uid,
}

impl Broadcasts {
    /// Jobs whose pods are placed by the scheduler, or else directly.
    pub fn new(by_scheduler: bool) -> Self {
        Self { is_direct: !by_scheduler, ..Self::default() }
    }

    /// Everything has been listed: before, a node would look as if it had no pod.
    pub fn sync(&mut self) {
        self.is_synced = true;
    }

    /// When the next turn is due although nothing is heard.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timers.next().filter(|_| self.is_synced)
    }

    /// Whether something has changed since the last turn.
    pub fn has_news(&self) -> bool {
        self.is_synced && !self.dirty.is_empty()
    }

    /// How many passes over a job there were.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// All jobs with their UIDs.
    pub fn held_jobs(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.uids.iter().map(|(key, uid)| (key, &**uid))
    }

    /// All pods with their UIDs.
    pub fn held_pods(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.homes.iter().map(|(key, home)| (key, &*home.uid))
    }

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

    /// How often the passes over a job have looked at a node so far.
    pub fn visits(&self, key: &ObjectKey) -> Option<u64> {
        Some(self.jobs.get(self.uids.get(key)?)?.roll.visits())
    }
}

#[cfg(test)]
mod tests;
