//! The Secrets that jobs name: when they are read, what becomes of their copies, and which jobs wait for them.
//!
//! Sources are read by name, every few seconds while an unfinished job names them: a watch would need the right to list
//! every Secret of the cluster.
//!
//! Long because reading, copying and waiting share one record of a source.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;

use super::{Action, Copy, Excerpt, Observed, Settlement, SourceState, plain_reference, settle};
use crate::cluster::command::{Command, Outcome, Read, Target, Ticket, Verb, Write};
use crate::cluster::demands::DemandRecord;
use crate::cluster::{Kernel, Kind, Object};
use crate::object::attempts::Attempts;
use crate::object::{ObjectKey, SourceKey, Uid};
use crate::time::{after, earliest};

/// A source is read again after this.
pub const READ_INTERVAL: Duration = Duration::from_secs(5);
/// And with many sources after this for each of them, so that reading never takes more than ten requests a second.
pub const READ_INTERVAL_EACH: Duration = Duration::from_millis(100);

/// A copy outlives its last job by this: a job may be over before anybody has seen which Secret it used.
pub const LINGER: Duration = Duration::from_secs(5);
/// A source that has been missing for so long is gone, and nothing of it is kept. Together with the reading interval its
/// copies go within a minute.
pub const GONE_AFTER: Duration = Duration::from_secs(30);

/// One Secret that jobs name.
#[derive(Clone, Debug)]
pub struct Source {
    state: SourceState,
    /// The registries whose entries the state is about, and those of a read that is under way.
    read_for: BTreeSet<String>,
    reading_for: BTreeSet<String>,
    missing_since: Option<Timestamp>,
    claimants: BTreeSet<ObjectKey>,
    settlement: Settlement,
    is_reading: bool,
    read_at: Option<Timestamp>,
    writes: usize,
    /// Reads of it.
    reads: Attempts,
    /// Writes of its copies.
    attempts: Attempts,
    trouble: Option<String>,
    /// When its last job was over.
    unclaimed_at: Option<Timestamp>,
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
    fn gone_at(&self) -> Option<Timestamp> {
        self.missing_since.map(|since| after(since, GONE_AFTER))
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
        let listed: Vec<Target> = copy.references.iter().filter_map(|key| self.demands.target(key)).collect();
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
            let waiting = source.claimants.iter().filter_map(|job| self.demands.target(job));
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
            None => source.attempts.succeed(now),
            Some(_) => source.attempts.fail(now, jitter),
        }
        source.trouble = trouble;
        self.agenda.mark(Target::Source(key.clone()));
    }

    /// A job names these sources now.
    pub(in crate::cluster) fn claim_sources(&mut self, uid: &Uid) {
        let Some(job) = self.demands.get(uid) else { return };
        let needs_copies = job.is_active() && job.key.namespace != self.settings.config_namespace;
        let wanted = if needs_copies { job.sources() } else { BTreeSet::new() };
        let (key, registry) = (job.key.clone(), job.registry());
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
        let wanted = self.registries_of(key);
        let copies: Vec<&Copy> =
            self.secrets.copies.values().filter(|copy| copy.source.as_ref() == Some(key)).collect();
        let listed: BTreeSet<&ObjectKey> = copies.iter().flat_map(|copy| &copy.references).collect();
        let stays = |job: &ObjectKey| self.jobs.all.named(job).is_some_and(|job| !job.is_terminating());
        let has_listed_job = listed.iter().any(|job| stays(job));
        let is_unreadable = |job: &&ObjectKey| self.quarantine.has(Kind::ImagePullJob, job);
        let unreadable: BTreeSet<ObjectKey> = listed.into_iter().filter(is_unreadable).cloned().collect();
        let Some(source) = self.secrets.sources.get_mut(key) else { return };
        let taken = |name: &str| self.secrets.copies.contains_key(name);
        let claimants = &source.claimants | &unreadable;
        let is_gone = source.gone_at().is_some_and(|at| at <= now);
        let is_unread = |(job, registry): (&ObjectKey, &String)| {
            (!source.read_for.contains(registry)).then(|| job.clone())
        };
        let unread: BTreeSet<ObjectKey> = wanted.iter().filter_map(is_unread).collect();
        let observed = Observed {
            source: key,
            state: if is_gone { &SourceState::Gone } else { &source.state },
            claimants: &claimants,
            unread: &unread,
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
        source.unclaimed_at = source.unclaimed_at.or(Some(now)).filter(|_| claimants.is_empty());
        let goes_at = source.unclaimed_at.map(|at| at + LINGER).filter(|at| *at > now && has_listed_job);
        let write_at = source.write(key, &self.settings.config_namespace, goes_at, now, commands);
        let read_at = source.read_at.filter(|_| unread.is_empty()).map_or(now, |at| at + interval);
        let read_at =
            source.reads.pause_ends().map_or(read_at, |pause| pause.max(source.read_at.unwrap_or(pause)));
        if !source.claimants.is_empty() && read_at <= now && !source.is_reading {
            source.is_reading = true;
            source.reading_for = wanted.into_values().collect();
            let registries = source.reading_for.clone();
            commands.push(Command::Read(Read::Source(Excerpt { source: key.clone(), registries })));
        }
        let is_polled = !source.claimants.is_empty() && !source.is_reading;
        let write_at = earliest(write_at, source.gone_at().filter(|at| *at > now));
        let wake_at = earliest(Some(read_at).filter(|at| is_polled && *at > now), write_at);
        self.agenda.wake(Target::Source(key.clone()), wake_at);
        let claimants: Vec<Uid> = self.secrets.sources[key]
            .claimants
            .iter()
            .filter_map(|job| self.demands.uid(job).cloned())
            .collect();
        for uid in claimants {
            self.refresh_secrets(&uid);
        }
    }

    /// The registry of the image of each job that names a source.
    fn registries_of(&self, key: &SourceKey) -> BTreeMap<ObjectKey, String> {
        let claimants = self.secrets.sources.get(key).into_iter().flat_map(|source| &source.claimants);
        let registry = |key: &ObjectKey| self.demands.named(key)?.registry();
        claimants.filter_map(|key| Some((key.clone(), registry(key)?))).collect()
    }

    /// Brings a job's view of its Secrets up to date.
    fn refresh_secrets(&mut self, uid: &Uid) {
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

impl Source {
    /// Writes what has to be written to the copies, and says when to look again. Until `goes_at` no copy is deleted.
    fn write(
        &mut self,
        key: &SourceKey,
        namespace: &str,
        goes_at: Option<Timestamp>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        if self.writes > 0 {
            return None;
        }
        if self.attempts.is_blocked(now) {
            return self.attempts.pause_ends();
        }
        let stays = |action: &&Action| goes_at.is_none() || !matches!(action, Action::Delete { .. });
        let actions: Vec<Action> = self.settlement.actions.iter().filter(stays).cloned().collect();
        let excerpt = Excerpt { source: key.clone(), registries: self.read_for.clone() };
        let writes: Vec<Write> =
            actions.into_iter().map(|action| write(&excerpt, namespace, action)).collect();
        let Some(first) = writes.first() else { return goes_at };
        let fingerprint = first.verb.fingerprint();
        if let Some(at) = self.attempts.repeats_at(fingerprint, now) {
            return Some(at);
        }
        self.attempts.begin(fingerprint);
        self.writes = writes.len();
        commands.extend(writes.into_iter().map(Command::Write));
        goes_at
    }
}

/// A write to the copy of a source.
fn write(excerpt: &Excerpt, namespace: &str, action: Action) -> Write {
    let (name, uid) = match &action {
        Action::Create { name, .. } => (name, None),
        Action::Update { name, uid, .. } | Action::Delete { name, uid } => (name, Some(uid.as_str().into())),
    };
    let key = ObjectKey { namespace: namespace.to_owned(), name: name.clone() };
    let ticket = Ticket { asker: Target::Source(excerpt.source.clone()), kind: Kind::Secret, key, uid };
    Write { ticket, verb: Verb::Copy(excerpt.clone(), action) }
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
