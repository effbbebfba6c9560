//! The pass over a Secret that jobs name: when it is read, and what is written to its copies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::sources::{Secrets, Source};
use super::{Action, Copy, Excerpt, Observed, SourceState, settle};
use crate::cluster::command::{Command, Outcome, Read, Settled, Target, Ticket, Verb, Write};
use crate::cluster::demands::DemandRecord;
use crate::cluster::interface::Pass;
use crate::cluster::kind::Subject;
use crate::cluster::{Kernel, Kind};
use crate::object::{ObjectKey, SourceKey, Uid};
use crate::time::earliest;

/// A source is read again after this.
pub const READ_INTERVAL: Duration = Duration::from_secs(5);
/// And with many sources after this for each of them, so that reading never takes more than ten requests a second.
pub const READ_INTERVAL_EACH: Duration = Duration::from_millis(100);

/// A copy outlives its last job by this: a job may be over before anybody has seen which Secret it used.
pub const LINGER: Duration = Duration::from_secs(5);

impl Pass for Secrets {
    type Id = SourceKey;

    fn pass(kernel: &mut Kernel, key: &SourceKey, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.source_pass(key, now, commands);
    }

    fn settle(kernel: &mut Kernel, key: &SourceKey, settled: Settled) {
        kernel.settle_copy(key, settled);
    }
}

impl Kernel {
    fn source_pass(&mut self, key: &SourceKey, now: Timestamp, commands: &mut Vec<Command>) {
        self.passes.count(Subject::Source);
        let interval = READ_INTERVAL.max(
            READ_INTERVAL_EACH.saturating_mul(u32::try_from(self.secrets.sources.len()).unwrap_or(u32::MAX)),
        );
        let wanted = self.registries_of(key);
        let copies: Vec<&Copy> =
            self.secrets.copies.values().filter(|copy| copy.source.as_ref() == Some(key)).collect();
        let listed: BTreeSet<&ObjectKey> = copies.iter().flat_map(|copy| &copy.references).collect();
        let stays = |job: &ObjectKey| self.jobs.all.named(job).is_some_and(|job| !job.is_terminating());
        let has_listed_job = listed.iter().any(|job| stays(job));
        let makers = || Kind::ALL.into_iter().filter(|kind| kind.about().makes_demands());
        let is_unreadable = |job: &&ObjectKey| makers().any(|kind| self.quarantine.has(kind, job));
        let unreadable: BTreeSet<ObjectKey> = listed.into_iter().filter(is_unreadable).cloned().collect();
        let Some(source) = self.secrets.sources.get_mut(key) else { return };
        let taken = |name: &str| self.secrets.copies.contains_key(name);
        let claimants = &source.claimants | &unreadable;
        let is_gone = source.gone_at().is_some_and(|at| at <= now);
        let is_unread = |(job, registries): (&ObjectKey, &BTreeSet<String>)| {
            (!registries.is_subset(&source.read_for)).then(|| job.clone())
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
            source.reading_for = wanted.into_values().flatten().collect();
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
            .flat_map(|job| self.demands.named(job).map(|(uid, _)| uid.clone()))
            .collect();
        for uid in claimants {
            self.refresh_secrets(&uid);
        }
    }

    /// The registries of the images of each job that names a source.
    fn registries_of(&self, key: &SourceKey) -> BTreeMap<ObjectKey, BTreeSet<String>> {
        let claimants = self.secrets.sources.get(key).into_iter().flat_map(|source| &source.claimants);
        let registries = |job: &ObjectKey| {
            let records = self.demands.named(job).map(|(_, record)| record);
            records.filter(|record| record.is_active()).filter_map(DemandRecord::registry).collect()
        };
        claimants.map(|job| (job.clone(), registries(job))).collect()
    }

    /// A copy was written, or not.
    fn settle_copy(&mut self, key: &SourceKey, settled: Settled) {
        let Settled { ticket, outcome, now, jitter } = settled;
        let trouble = match &outcome {
            Outcome::Refused(trouble) | Outcome::Failed(Some(trouble)) => Some(trouble.clone()),
            Outcome::Failed(None) => Some("the API server did not answer".to_owned()),
            _ => None,
        };
        self.learn(&ticket, outcome, now);
        let Some(source) = self.secrets.sources.get_mut(key) else { return };
        source.writes = source.writes.saturating_sub(1);
        match &trouble {
            None => source.attempts.succeed(now),
            Some(_) => source.attempts.fail(now, jitter),
        }
        source.trouble = trouble;
        self.agenda.mark(Target::Source(key.clone()));
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
