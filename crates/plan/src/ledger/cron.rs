//! What the controller knows of AdvancedCronJobs and their runs.
//!
//! It is a small ledger of its own within the ledger. A cron job depends on nothing but itself, its runs and the time, so it
//! begins as soon as all runs of its kind are known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::TemplateKind;

use super::command::Telling;
use super::gone::Gone;
use super::size::{JobState, JobStates};
use super::timers::Timers;
use crate::advanced_cron_job::child::Child;
use crate::advanced_cron_job::runs::Runs;
use crate::object::{ObjectKey, Uid};
use entry::Cron;

mod entry;
mod hear;
mod outcome;
mod turn;

/// AdvancedCronJobs and their runs.
#[derive(Debug, Default)]
pub struct Crons {
    /// The kinds all of whose objects are known.
    known_kinds: BTreeSet<TemplateKind>,
    /// The namespaces all of whose Jobs are known: they are watched only where a cron job makes some.
    known_jobs: BTreeSet<String>,
    entries: BTreeMap<Uid, Cron>,
    uids: HashMap<ObjectKey, Uid>,
    /// The runs of each cron job, by name.
    runs: HashMap<Uid, BTreeMap<Arc<str>, Child>>,
    /// Whose run is where.
    homes: HashMap<RunKey, Home>,
    /// UIDs of runs that are gone: the answer to a write may come after the watch's last word, or the other way round.
    gone: Gone,
    dirty: BTreeSet<Uid>,
    timers: Timers<Uid>,
    tellings: Vec<Telling>,
    /// What became of runs, as far as the statuses have it.
    counted: Runs,
    passes: u64,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunKey {
    /// What it is.
    pub kind: TemplateKind,
    /// Namespace and name.
    pub key: ObjectKey,
}

impl RunKey {
    /// One of this kind.
    pub fn new(kind: TemplateKind, key: ObjectKey) -> Self {
        Self { kind, key }
    }
}

/// Whose a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Home {
    /// The UID of its cron job.
    cron: Uid,
    /// The run's UID.
    uid: Uid,
}

/// No runs.
static NO_RUNS: BTreeMap<Arc<str>, Child> = BTreeMap::new();

impl Crons {
    /// All objects of a kind are known: before, a cron job would look as if it had no run.
    pub fn sync(&mut self, kind: TemplateKind) {
        if self.known_kinds.insert(kind) {
            self.wake_all();
        }
    }

    /// All Jobs of a namespace are known.
    pub fn sync_jobs(&mut self, namespace: &str) {
        if self.known_jobs.insert(namespace.to_owned()) {
            self.wake_all();
        }
    }

    /// The Jobs of a namespace are not watched any more.
    pub fn forget_jobs(&mut self, namespace: &str) {
        self.known_jobs.remove(namespace);
        let is_forgotten = |run: &&RunKey| run.kind == TemplateKind::Job && run.key.namespace == namespace;
        let forgotten: Vec<RunKey> = self.homes.keys().filter(is_forgotten).cloned().collect();
        for run in forgotten {
            self.forget_run(&run);
        }
    }

    fn wake_all(&mut self) {
        self.dirty.extend(self.entries.keys().cloned());
    }

    /// The namespaces whose Jobs have to be watched.
    pub fn job_namespaces(&self) -> BTreeSet<String> {
        let crons = self.entries.values().filter(|cron| cron.kind() == Some(TemplateKind::Job));
        crons.map(|cron| cron.key.namespace.clone()).collect()
    }

    /// Whether all runs of a cron job are known.
    fn knows_runs_of(&self, cron: &Cron) -> bool {
        match cron.kind() {
            Some(TemplateKind::Job) => self.known_jobs.contains(&cron.key.namespace),
            Some(kind) => self.known_kinds.contains(&kind),
            None => false,
        }
    }

    fn runs_of(&self, uid: &str) -> &BTreeMap<Arc<str>, Child> {
        self.runs.get(uid).unwrap_or(&NO_RUNS)
    }

    /// When the next turn is due although nothing is heard.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Whether something has changed since the last turn.
    pub fn has_news(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// How many passes over a cron job there were.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// What became of runs since this was last asked.
    pub fn take_runs(&mut self) -> Runs {
        std::mem::take(&mut self.counted)
    }

    /// How many cron jobs there are.
    pub fn size(&self) -> JobStates {
        let mut states = JobStates::default();
        for cron in self.entries.values() {
            states.add(match () {
                () if cron.object.metadata.deletion_timestamp.is_some() => JobState::Terminating,
                () if cron.object.spec.paused => JobState::Paused,
                () => JobState::Running,
            });
        }
        states
    }

    /// All cron jobs with their UIDs.
    pub fn held_crons(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.uids.iter().map(|(key, uid)| (key, &**uid))
    }

    /// All Jobs that cron jobs made, with their UIDs.
    pub fn held_jobs(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        let jobs = self.homes.iter().filter(|(run, _)| run.kind == TemplateKind::Job);
        jobs.map(|(run, home)| (&run.key, &*home.uid))
    }
}

#[cfg(test)]
mod tests;
