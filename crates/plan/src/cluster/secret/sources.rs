//! The Secrets that jobs name: when they are read, what becomes of their copies, and which jobs wait for them.
//!
//! Sources are read by name, every few seconds while an unfinished job names them: a watch would need the right to list
//! every Secret of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;

use super::{Action, Copy, Observed, Settlement, SourceState, plain_reference, settle};
use crate::cluster::command::{Command, Outcome, Read, Target, Ticket, Verb, Write};
use crate::cluster::image_pull_job::record::Job;
use crate::cluster::{Kernel, Kind, Object};
use crate::object::attempts::Attempts;
use crate::object::{ObjectKey, SourceKey, Uid};
use crate::time::earliest;

/// A source is read again after this.
pub const READ_INTERVAL: Duration = Duration::from_secs(5);
/// And with many sources after this for each of them, so that reading never takes more than ten requests a second.
pub const READ_INTERVAL_EACH: Duration = Duration::from_millis(100);

/// One Secret that jobs name.
#[derive(Clone, Debug)]
pub struct Source {
    state: SourceState,
    claimants: BTreeSet<ObjectKey>,
    settlement: Settlement,
    is_reading: bool,
    read_at: Option<Timestamp>,
    writes: usize,
    attempts: Attempts,
    trouble: Option<String>,
}

/// The Secrets that jobs name, and their copies.
#[derive(Debug, Default)]
pub struct Secrets {
    copies: BTreeMap<String, Copy>,
    sources: BTreeMap<SourceKey, Source>,
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
            claimants: BTreeSet::new(),
            settlement: Settlement::default(),
            is_reading: false,
            read_at: None,
            writes: 0,
            attempts: Attempts::default(),
            trouble: None,
        }
    }
}

impl Kernel {
    /// The names and UIDs of all Secrets of the config namespace.
    pub(in crate::cluster) fn held_copies(&self) -> Vec<(ObjectKey, Uid)> {
        let namespace = &self.settings.config_namespace;
        let key = |name: &String| ObjectKey { namespace: namespace.clone(), name: name.clone() };
        self.secrets.copies.iter().map(|(name, copy)| (key(name), copy.uid.as_str().into())).collect()
    }

    /// A Secret of the config namespace is like this.
    pub(in crate::cluster) fn observe_copy(&mut self, copy: Copy) {
        let name = copy.name.clone();
        self.notice_copy(Some(&copy));
        let old = self.secrets.copies.insert(name.clone(), copy);
        self.notice_copy(old.as_ref());
        if old.is_none() {
            self.notice_name(&name);
        }
    }

    /// A Secret of the config namespace is gone.
    pub(in crate::cluster) fn forget_copy(&mut self, name: &str, uid: Option<&str>) {
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
        let names = |job: &Job| job.demand.secrets.contains(name);
        let is_concerned = |job: &Job| job.key.namespace == self.settings.config_namespace && names(job);
        let concerned = self.jobs.all.iter().filter(|(_, job)| job.is_active() && is_concerned(job));
        let concerned: Vec<Uid> = concerned.map(|(uid, _)| uid.clone()).collect();
        for uid in concerned {
            self.refresh_secrets(&uid);
        }
    }

    fn notice_copy(&mut self, copy: Option<&Copy>) {
        let Some(copy) = copy else { return };
        if let Some(source) = &copy.source {
            self.secrets.sources.entry(source.clone()).or_default();
            self.agenda.mark(Target::Source(source.clone()));
        }
        // A job that waits for its release looks again.
        let listed = copy.references.iter().filter_map(|key| self.jobs.all.uid(key).cloned());
        let listed: Vec<Target> = listed.map(Target::Job).collect();
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
            let waiting = source.claimants.iter().filter_map(|job| self.jobs.all.uid(job).cloned());
            self.agenda.mark_all(waiting.map(Target::Job));
        }
        match state {
            Some(state) => {
                source.state = state;
                source.attempts.succeed();
            }
            None => source.attempts.fail(now, jitter),
        }
        self.agenda.mark(Target::Source(key.clone()));
    }

    /// A copy was written, or not.
    pub(in crate::cluster) fn settle_copy(
        &mut self,
        key: &SourceKey,
        ticket: &Ticket,
        outcome: Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        let trouble = match &outcome {
            Outcome::Refused(trouble) | Outcome::Failed(Some(trouble)) => Some(trouble.clone()),
            Outcome::Failed(None) => Some("the API server did not answer".to_owned()),
            _ => None,
        };
        self.learn(ticket, outcome, now);
        let Some(source) = self.secrets.sources.get_mut(key) else { return };
        source.writes = source.writes.saturating_sub(1);
        match &trouble {
            None => source.attempts.succeed(),
            Some(_) => source.attempts.fail(now, jitter),
        }
        source.trouble = trouble;
        self.agenda.mark(Target::Source(key.clone()));
    }

    /// A job names these sources now.
    pub(in crate::cluster) fn claim_sources(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get(uid) else { return };
        let needs_copies = job.is_active() && job.key.namespace != self.settings.config_namespace;
        let wanted = if needs_copies { job.sources() } else { BTreeSet::new() };
        let key = job.key.clone();
        for source in &wanted {
            if self.secrets.sources.entry(source.clone()).or_default().claimants.insert(key.clone()) {
                self.agenda.mark(Target::Source(source.clone()));
            }
        }
        self.unclaim_sources(&key, &wanted);
        self.refresh_secrets(uid);
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

    pub(in crate::cluster) fn source_pass(
        &mut self,
        key: &SourceKey,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.passes.sources += 1;
        let interval = READ_INTERVAL.max(
            READ_INTERVAL_EACH.saturating_mul(u32::try_from(self.secrets.sources.len()).unwrap_or(u32::MAX)),
        );
        let copies: Vec<&Copy> =
            self.secrets.copies.values().filter(|copy| copy.source.as_ref() == Some(key)).collect();
        let Some(source) = self.secrets.sources.get_mut(key) else { return };
        let taken = |name: &str| self.secrets.copies.contains_key(name);
        let observed = Observed {
            source: key,
            state: &source.state,
            claimants: &source.claimants,
            copies: &copies,
            is_taken: &taken,
            config_namespace: &self.settings.config_namespace,
        };
        source.settlement = settle(&observed);
        let is_idle = source.claimants.is_empty() && copies.is_empty();
        if is_idle && source.writes == 0 {
            self.secrets.sources.remove(key);
            return self.agenda.wake(Target::Source(key.clone()), None);
        }
        if source.writes == 0 && !source.attempts.is_blocked(now) {
            source.writes = source.settlement.actions.len();
            let actions = source.settlement.actions.clone().into_iter();
            let namespace = &self.settings.config_namespace;
            commands.extend(actions.map(|action| Command::Write(write(key, namespace, action))));
        }
        let read_at = source.read_at.map_or(now, |at| at + interval);
        let read_at =
            source.attempts.pause_ends().map_or(read_at, |pause| pause.max(source.read_at.unwrap_or(pause)));
        if !source.claimants.is_empty() && read_at <= now && !source.is_reading {
            source.is_reading = true;
            commands.push(Command::Read(Read::Source(key.clone())));
        }
        let is_polled = !source.claimants.is_empty() && !source.is_reading;
        let pause = source.attempts.pause_ends().filter(|at| *at > now);
        let wake_at = earliest(Some(read_at).filter(|at| is_polled && *at > now), pause);
        self.agenda.wake(Target::Source(key.clone()), wake_at);
        let claimants: Vec<Uid> = self.secrets.sources[key]
            .claimants
            .iter()
            .filter_map(|job| self.jobs.all.uid(job).cloned())
            .collect();
        for uid in claimants {
            self.refresh_secrets(&uid);
        }
    }

    /// Brings a job's view of its Secrets up to date.
    fn refresh_secrets(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.all.get(uid) else { return };
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
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        if job.missing_secrets != view.missing || job.secrets_wait != view.wait {
            (job.missing_secrets, job.secrets_wait) = (view.missing, view.wait);
            self.agenda.mark(Target::Job(uid.clone()));
        }
        if job.secrets != view.secrets {
            job.secrets = view.secrets;
            self.agenda.mark(Target::Job(uid.clone()));
            self.update_standings(uid);
        }
    }

    /// Whether a Secret of a job was not looked at yet. Until then nothing is said about it: a controller that starts
    /// anew would say that it waits, and take that back at once.
    pub(in crate::cluster) fn awaits_first_read(&self, job: &Job) -> bool {
        let mut sources = job.sources().into_iter().filter_map(|key| self.secrets.sources.get(&key));
        job.secrets_wait.is_some() && sources.any(|source| source.read_at.is_none())
    }

    /// Whether no copy lists a job, so that it may go (kruise R57, R62).
    pub(in crate::cluster) fn is_released(&self, job: &ObjectKey) -> bool {
        !self.secrets.copies.values().any(|copy| copy.references.contains(job) && !copy.is_terminating)
    }
}

/// A write to the copy of a source.
fn write(source: &SourceKey, namespace: &str, action: Action) -> Write {
    let (name, uid) = match &action {
        Action::Create { name, .. } => (name, None),
        Action::Update { name, uid, .. } | Action::Delete { name, uid } => (name, Some(uid.as_str().into())),
    };
    let key = ObjectKey { namespace: namespace.to_owned(), name: name.clone() };
    let ticket = Ticket { asker: Target::Source(source.clone()), kind: Kind::Secret, key, uid };
    Write { ticket, verb: Verb::Copy(source.clone(), action) }
}

#[derive(Default)]
struct SecretsView {
    secrets: Vec<SecretReference>,
    missing: Vec<String>,
    wait: Option<String>,
}

impl SecretsView {
    fn add(&mut self, job: &ObjectKey, key: &SourceKey, source: &Source) {
        self.secrets.extend(source.settlement.serves.get(job).cloned());
        if source.settlement.is_missing && !source.settlement.serves.contains_key(job) {
            self.missing.push(key.name.clone());
        }
        if source.settlement.pending.contains(job) && self.wait.is_none() {
            let trouble = source.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            self.wait = Some(format!("Secret {key} is being copied for the agents{trouble}"));
        }
    }
}
