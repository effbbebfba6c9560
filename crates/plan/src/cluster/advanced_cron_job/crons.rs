//! All AdvancedCronJobs and their runs.
//!
//! A cron job depends on nothing but itself, its runs and the time, so it begins as soon as all runs of its kind are known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::TemplateKind;

use super::child::Child;
use super::record::Cron;
use super::runs::Runs;
use crate::cluster::size::{JobState, JobStates};
use crate::cluster::{Kernel, Kind, Object, Target};
use crate::object::store::{Entry, Store};
use crate::object::{ObjectKey, OwnerKey, Uid};

/// AdvancedCronJobs and their runs.
#[derive(Debug, Default)]
pub struct Crons {
    /// The kinds all of whose objects are known.
    known_kinds: BTreeSet<TemplateKind>,
    /// The namespaces all of whose Jobs are known: they are watched only where a cron job makes some.
    known_jobs: BTreeSet<String>,
    pub(super) all: Store<Cron>,
    /// The runs of each cron job in its namespace, by name.
    pub(super) runs: HashMap<OwnerKey, BTreeMap<Arc<str>, Child>>,
    /// Whose run is where, by kind.
    pub(super) homes: BTreeMap<TemplateKind, Store<Home>>,
    /// What became of runs, as far as the statuses have it.
    pub(in crate::cluster) counted: Runs,
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
    /// An object of this kind, if cron jobs make such.
    pub fn of(kind: Kind, key: &ObjectKey) -> Option<Self> {
        Some(Self { kind: template(kind)?, key: key.clone() })
    }

    /// Where a cron job would know this object as a run.
    pub fn of_object(object: &Object) -> Option<Self> {
        Some(Self { kind: template(object.kind())?, key: object.key("") })
    }
}

impl Object {
    /// The run of a cron job that it is, if one controls it.
    pub fn run(&self) -> Option<Child> {
        match self {
            Self::ImageListPullJob(list) => Child::of_list(list),
            Self::BroadcastJob(job) => Child::of_broadcast(job),
            Self::Job(job) => job.1.clone(),
            _ => None,
        }
    }
}

fn template(kind: Kind) -> Option<TemplateKind> {
    match kind {
        Kind::ImageListPullJob => Some(TemplateKind::ImageListPullJob),
        Kind::BroadcastJob => Some(TemplateKind::BroadcastJob),
        Kind::Job => Some(TemplateKind::Job),
        _ => None,
    }
}

/// What a cron job makes by a template of this kind.
pub(super) fn made_by(template: TemplateKind) -> Kind {
    match template {
        TemplateKind::ImageListPullJob => Kind::ImageListPullJob,
        TemplateKind::BroadcastJob => Kind::BroadcastJob,
        TemplateKind::Job => Kind::Job,
    }
}

/// Whose a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub(super) key: ObjectKey,
    pub(super) version: String,
    /// The UID of its cron job.
    pub(super) cron: Uid,
}

impl Home {
    /// Its cron job, which counts it if it is in the same namespace.
    pub(super) fn owner(&self) -> OwnerKey {
        OwnerKey::new(&self.key.namespace, &self.cron)
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

static NO_RUNS: BTreeMap<Arc<str>, Child> = BTreeMap::new();

impl Crons {
    /// Whether all runs of a cron job are known: before, it would look as if it had none.
    pub(super) fn knows_runs_of(&self, cron: &Cron) -> bool {
        match cron.kind() {
            Some(TemplateKind::Job) => self.known_jobs.contains(&cron.key.namespace),
            Some(kind) => self.known_kinds.contains(&kind),
            None => false,
        }
    }

    pub(super) fn runs_of(&self, cron: &OwnerKey) -> &BTreeMap<Arc<str>, Child> {
        self.runs.get(cron).unwrap_or(&NO_RUNS)
    }

    /// The names and UIDs of all runs of a kind.
    pub fn held_runs(&self, kind: Kind) -> Vec<(ObjectKey, Uid)> {
        let homes = template(kind).and_then(|kind| self.homes.get(&kind));
        let held = homes.into_iter().flat_map(Store::held);
        held.map(|(key, uid)| (key.clone(), uid.clone())).collect()
    }

    /// How many cron jobs there are.
    pub fn size(&self) -> JobStates {
        let mut states = JobStates::default();
        for cron in self.all.values() {
            states.add(match () {
                () if cron.object.metadata.deletion_timestamp.is_some() => JobState::Terminating,
                () if cron.object.spec.paused => JobState::Paused,
                () => JobState::Running,
            });
        }
        states
    }
}

impl Kernel {
    /// All objects of a kind that cron jobs make are known.
    pub(in crate::cluster) fn know_runs(&mut self, kind: TemplateKind) {
        if self.crons.known_kinds.insert(kind) {
            self.mark_crons();
        }
    }

    /// All Jobs of a namespace are known.
    pub(super) fn know_jobs(&mut self, namespace: &str) {
        if self.crons.known_jobs.insert(namespace.to_owned()) {
            self.mark_crons();
        }
    }

    /// The Jobs of a namespace are not watched any more.
    pub(super) fn unwatch_runs(&mut self, namespace: &str) {
        self.crons.known_jobs.remove(namespace);
        for (key, _) in self.crons.held_runs(Kind::Job) {
            if key.namespace == namespace {
                self.forget_run(&RunKey { kind: TemplateKind::Job, key }, None);
            }
        }
    }

    /// Every cron job has to be looked at.
    pub(in crate::cluster) fn mark_crons(&mut self) {
        self.agenda.mark_all(self.crons.all.iter().map(|(uid, _)| Target::Cron(uid.clone())));
    }

    /// The namespaces whose Jobs have to be watched.
    pub(super) fn run_namespaces(&self) -> BTreeSet<String> {
        let crons = self.crons.all.values().filter(|cron| cron.kind() == Some(TemplateKind::Job));
        crons.map(|cron| cron.key.namespace.clone()).collect()
    }

    /// The time of day at a moment of the time that never jumps.
    pub(super) fn time_of_day(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.ahead).unwrap_or(now)
    }

    /// The moment at which it is this time of day, if nobody sets the clock before.
    pub(super) fn moment_of(&self, time_of_day: Timestamp) -> Timestamp {
        time_of_day.checked_sub(self.ahead).unwrap_or(time_of_day)
    }
}

#[cfg(test)]
mod tests;
