//! The Secrets that jobs name: when they are read, what becomes of their copies, and which jobs wait for them.
//!
//! Sources are read by name, every few seconds while an unfinished job names them: a watch would need the right to list
//! every Secret of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;

use super::{Copy, Settlement, SourceState, plain_reference};
use crate::cluster::Kernel;
use crate::cluster::command::Target;
use crate::cluster::demands::DemandRecord;
use crate::cluster::interface::{About, Observe, Writes};
use crate::object::attempts::Attempts;
use crate::object::{ObjectKey, SourceKey, Uid};
use crate::time::after;

/// A source that has been missing for so long is gone, and nothing of it is kept. Together with the reading interval its
/// copies go within a minute.
pub const GONE_AFTER: Duration = Duration::from_secs(30);

/// One Secret that jobs name.
#[derive(Clone, Debug)]
pub struct Source {
    pub(super) state: SourceState,
    /// The registries whose entries the state is about, and those of a read that is under way.
    pub(super) read_for: BTreeSet<String>,
    pub(super) reading_for: BTreeSet<String>,
    pub(super) missing_since: Option<Timestamp>,
    pub(super) claimants: BTreeSet<ObjectKey>,
    pub(super) settlement: Settlement,
    pub(super) is_reading: bool,
    pub(super) read_at: Option<Timestamp>,
    pub(super) writes: usize,
    /// Reads of it.
    pub(super) reads: Attempts,
    /// Writes of its copies.
    pub(super) attempts: Attempts,
    pub(super) trouble: Option<String>,
    /// When its last job was over.
    pub(super) unclaimed_at: Option<Timestamp>,
}

/// The Secrets that jobs name, and their copies.
#[derive(Debug, Default)]
pub struct Secrets {
    pub(super) copies: BTreeMap<String, Copy>,
    pub(super) sources: BTreeMap<SourceKey, Source>,
}

impl Secrets {
    /// Whether the config namespace has a Secret of this name.
    pub fn has_copy(&self, name: &str) -> bool {
        self.copies.contains_key(name)
    }
}

impl Default for Source {
    fn default() -> Self {
        Self {
            state: SourceState::Unknown,
            read_for: BTreeSet::new(),
            reading_for: BTreeSet::new(),
            missing_since: None,
            claimants: BTreeSet::new(),
            settlement: Settlement::default(),
            is_reading: false,
            read_at: None,
            writes: 0,
            reads: Attempts::default(),
            attempts: Attempts::default(),
            trouble: None,
            unclaimed_at: None,
        }
    }
}

impl Source {
    /// Notes what it is like, for the registries that it was read for.
    fn is_like(&mut self, state: SourceState, now: Timestamp) {
        self.read_for = std::mem::take(&mut self.reading_for);
        let since = (state == SourceState::Missing).then(|| self.missing_since.unwrap_or(now));
        self.missing_since = since;
        self.state = state;
    }

    /// When it is gone for good, if it is missing.
    pub(super) fn gone_at(&self) -> Option<Timestamp> {
        self.missing_since.map(|since| after(since, GONE_AFTER))
    }
}

impl Observe for Copy {
    const ABOUT: About = About { is_needed: true, ..About::new("v1", "Secret", Writes::Object) };

    fn key(&self, config_namespace: &str) -> ObjectKey {
        ObjectKey { namespace: config_namespace.to_owned(), name: self.name.clone() }
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_copy(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_copy(&key.name, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        let copies = kernel.secrets.copies.values();
        copies.map(|copy| (copy.key(&kernel.settings.config_namespace), copy.uid.as_str().into())).collect()
    }
}

impl Kernel {
    /// A Secret of the config namespace is like this.
    fn observe_copy(&mut self, copy: Copy) {
        let name = copy.name.clone();
        self.notice_copy(Some(&copy));
        let old = self.secrets.copies.insert(name.clone(), copy);
        self.notice_copy(old.as_ref());
        if old.is_none() {
            self.notice_name(&name);
        }
    }

    /// A Secret of the config namespace is gone.
    fn forget_copy(&mut self, name: &str, uid: Option<&str>) {
        let held = self.secrets.copies.get(name);
        if held.is_none_or(|held| uid.is_some_and(|uid| uid != held.uid)) {
            return;
        }
        let old = self.secrets.copies.remove(name);
        self.notice_copy(old.as_ref());
        if old.is_some() {
            self.notice_name(name);
        }
    }

    /// A Secret of the config namespace has come or gone: jobs of that namespace use it as it is (kruise R60).
    fn notice_name(&mut self, name: &str) {
        let names = |job: &DemandRecord| job.demand.secrets.contains(name);
        let is_concerned =
            |job: &DemandRecord| job.key.namespace == self.settings.config_namespace && names(job);
        let concerned = self.demands.iter().filter(|(_, job)| job.is_active() && is_concerned(job));
        let concerned: Vec<Uid> = concerned.map(|(uid, _)| uid.clone()).collect();
        for uid in concerned {
            self.refresh_secrets(&uid);
        }
    }

    /// Everything that is copied for a job has to be looked at.
    pub(in crate::cluster) fn mark_sources_of(&mut self, job: &ObjectKey) {
        let copies = self.secrets.copies.values().filter(|copy| copy.references.contains(job));
        self.agenda.mark_all(copies.filter_map(|copy| copy.source.clone()).map(Target::Source));
    }

    fn notice_copy(&mut self, copy: Option<&Copy>) {
        let Some(copy) = copy else { return };
        if let Some(source) = &copy.source {
            self.secrets.sources.entry(source.clone()).or_default();
            self.agenda.mark(Target::Source(source.clone()));
        }
        // A job that waits for its release looks again.
        let listed: Vec<Target> = copy.references.iter().flat_map(|key| self.demands.targets(key)).collect();
        self.agenda.mark_all(listed);
    }

    /// A source was read.
    pub(in crate::cluster) fn observe_source(
        &mut self,
        key: &SourceKey,
        state: Option<SourceState>,
        now: Timestamp,
        jitter: f64,
    ) {
        let Some(source) = self.secrets.sources.get_mut(key) else { return };
        source.is_reading = false;
        if source.read_at.replace(now).is_none() {
            let waiting = source.claimants.iter().flat_map(|job| self.demands.targets(job));
            self.agenda.mark_all(waiting);
        }
        match state {
            Some(state) => {
                source.is_like(state, now);
                source.reads.succeed(now);
            }
            None => source.reads.fail(now, jitter),
        }
        self.agenda.mark(Target::Source(key.clone()));
    }

    /// A job names these sources now.
    pub(in crate::cluster) fn claim_sources(&mut self, uid: &Uid) {
        let Some(job) = self.demands.get(uid) else { return };
        let (key, registry) = (job.key.clone(), job.registry());
        let wanted = self.sources_of(&key);
        for source in &wanted {
            let held = self.secrets.sources.entry(source.clone()).or_default();
            let is_unread = registry.as_ref().is_some_and(|registry| !held.read_for.contains(registry));
            if held.claimants.insert(key.clone()) || is_unread {
                self.agenda.mark(Target::Source(source.clone()));
            }
        }
        self.unclaim_sources(&key, &wanted);
        self.refresh_secrets(uid);
    }

    /// The sources of all that the objects of this name want.
    pub(in crate::cluster) fn sources_of(&self, key: &ObjectKey) -> BTreeSet<SourceKey> {
        if key.namespace == self.settings.config_namespace {
            return BTreeSet::new();
        }
        let active = self.demands.named(key).filter(|(_, record)| record.is_active());
        active.flat_map(|(_, record)| record.sources()).collect()
    }

    /// A job names no source but these.
    pub(in crate::cluster) fn unclaim_sources(&mut self, job: &ObjectKey, wanted: &BTreeSet<SourceKey>) {
        let mut left = Vec::new();
        // Jobs name Secrets of their own namespace only.
        let from = SourceKey { namespace: job.namespace.clone(), name: String::new() };
        for (key, source) in
            self.secrets.sources.range_mut(from..).take_while(|(key, _)| key.namespace == job.namespace)
        {
            if !wanted.contains(key) && source.claimants.remove(job) {
                left.push(Target::Source(key.clone()));
            }
        }
        self.agenda.mark_all(left);
    }

    /// Brings a job's view of its Secrets up to date.
    pub(super) fn refresh_secrets(&mut self, uid: &Uid) {
        let Some(job) = self.demands.get(uid) else { return };
        let mut view = SecretsView::default();
        for source in job.sources() {
            if job.key.namespace == self.settings.config_namespace {
                if self.secrets.copies.contains_key(&source.name) {
                    view.secrets.push(plain_reference(&self.settings.config_namespace, &source.name));
                } else {
                    view.missing.push(source.name);
                }
            } else if let Some(held) = self.secrets.sources.get(&source) {
                view.add(&job.key, &source, held);
            }
        }
        let Some(job) = self.demands.get_mut(uid) else { return };
        let known = (&job.missing_secrets, &job.unusable_secrets, &job.secrets_wait);
        if known != (&view.missing, &view.unusable, &view.wait) {
            (job.missing_secrets, job.unusable_secrets) = (view.missing, view.unusable);
            job.secrets_wait = view.wait;
            self.agenda.mark(job.target.clone());
        }
        if job.secrets != view.secrets {
            job.secrets = view.secrets;
            self.agenda.mark(job.target.clone());
            self.update_standings(uid);
        }
    }

    /// Whether a Secret of a job was not looked at yet. Until then nothing is said about it: a controller that starts
    /// anew would say that it waits, and take that back at once.
    pub(in crate::cluster) fn awaits_first_read(&self, job: &DemandRecord) -> bool {
        let mut sources = job.sources().into_iter().filter_map(|key| self.secrets.sources.get(&key));
        job.secrets_wait.is_some() && sources.any(|source| source.read_at.is_none())
    }

    /// Whether no copy lists a job, so that it may go (kruise R57, R62).
    pub(in crate::cluster) fn is_released(&self, job: &ObjectKey) -> bool {
        !self.secrets.copies.values().any(|copy| copy.references.contains(job) && !copy.is_terminating)
    }
}

#[derive(Default)]
struct SecretsView {
    secrets: Vec<SecretReference>,
    missing: Vec<String>,
    unusable: Vec<String>,
    wait: Option<String>,
}

impl SecretsView {
    fn add(&mut self, job: &ObjectKey, key: &SourceKey, source: &Source) {
        self.secrets.extend(source.settlement.serves.get(job).cloned());
        if source.settlement.is_missing && !source.settlement.serves.contains_key(job) {
            self.missing.push(key.name.clone());
        }
        self.unusable.extend(source.settlement.unusable.iter().map(|why| format!("{}: {why}", key.name)));
        if source.settlement.pending.contains(job) && self.wait.is_none() {
            let trouble = source.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            self.wait = Some(format!("Secret {key} is being copied for the agents{trouble}"));
        }
    }
}
