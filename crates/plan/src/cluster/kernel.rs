//! What the controller knows of the cluster, kept by difference, and what it does next.
//!
//! Whatever a watch or an answer of the API server says is an [`Input`] and is *observed*; a *cycle* looks at everything
//! that has changed since and returns commands. Nothing that matters lives only here: grants are in the NodeImages, results
//! in their statuses, and a kernel that is filled anew decides the same.
//!
//! The time that a kernel is handed never jumps: pauses, deadlines and silence are counted on it. Only schedules are about the time
//! of day, which may be set: [`Input::Clock`] says how far it is ahead.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::advanced_cron_job::{Crons, RunKey};
use super::agenda::Agenda;
use super::allow_list::Allowed;
use super::broadcast_job::Broadcasts;
use super::command::{Command, Event, Outcome, Read, Settled, Target, Ticket};
use super::demands::Demands;
use super::image_list_pull_job::Lists;
use super::image_prefetch::Prefetches;
use super::image_pull_job::Jobs;
use super::input::Input;
use super::interface::Explain;
use super::kind::{Kind, Object};
use super::measure::{Measured, Passes};
use super::node_image::Nodes;
use super::node_image::record::Shared;
use super::node_image_set::Sets;
use super::quarantine::Quarantine;
use super::secret::Secrets;
use super::settings::Settings;
use super::unkept::Unkept;
#[cfg(test)]
use super::wish::Wishes;
use crate::object::ObjectKey;

/// What the controller knows.
#[derive(Debug, Default)]
pub struct Kernel {
    pub(super) settings: Settings,
    pub(super) shared: Shared,
    pub(super) agenda: Agenda,
    pub(super) nodes: Nodes,
    pub(super) demands: Demands,
    pub(super) allowed: Allowed,
    pub(super) jobs: Jobs,
    pub(super) lists: Lists,
    pub(super) prefetches: Prefetches,
    pub(super) sets: Sets,
    pub(super) secrets: Secrets,
    pub(super) broadcasts: Broadcasts,
    pub(super) crons: Crons,
    #[cfg(test)]
    pub(super) wishes: Wishes,
    /// What people are to be told with the next commands.
    pub(super) events: Vec<Event>,
    pub(super) measured: Vec<Measured>,
    pub(super) unkept: Unkept,
    pub(super) quarantine: Quarantine,
    /// The trouble that was last told, and when.
    pub(super) complaint: Option<(String, Timestamp)>,
    pub(super) passes: Passes,
    /// Kinds of which everything is known, or as much as can be known.
    pub(super) known: BTreeSet<Kind>,
    /// How far the time of day is ahead of the time that never jumps.
    pub(super) ahead: SignedDuration,
    /// What the next cycle asks to be read.
    reads: Vec<Read>,
}

impl Kernel {
    /// A kernel that knows nothing.
    pub fn new(settings: Settings) -> Self {
        let mut kernel = Self { settings, ..Self::default() };
        kernel.know_allow_list();
        kernel
    }

    /// Takes note of an input. Nothing is decided; what has changed is marked for the next cycle.
    pub fn observe(&mut self, input: Input, now: Timestamp) {
        match input {
            Input::Seen(object) => self.observe_object(object, now),
            Input::Gone { kind, key, uid } => self.forget(kind, &key, uid.as_deref()),
            Input::Listed { kind, namespace, names } => self.observe_list(kind, namespace, &names),
            // Children of a list that nobody may read are jobs like any other.
            Input::Forbidden(Kind::ImageListPullJob) => drop(self.known.insert(Kind::ImageListPullJob)),
            Input::Forbidden(_) | Input::Undefined(_) => {}
            Input::Unreadable { kind, key, uid, reason } => self.quarantine(kind, &key, &uid, &reason),
            Input::Unwatched { kind, namespace } => kind.unwatched(self, &namespace),
            Input::Clock { ahead } => {
                self.ahead = ahead;
                self.mark_crons();
            }
            Input::SourceRead { source, state, jitter } => {
                self.observe_source(&source, state, now, jitter);
            }
            Input::Settled { ticket, outcome, jitter } => {
                Target::settle(self, Settled { ticket, outcome, now, jitter });
            }
        }
    }

    /// Looks at everything that has changed or is due, and decides what to do.
    pub fn cycle(&mut self, now: Timestamp) -> Vec<Command> {
        let mut commands: Vec<Command> = self.reads.drain(..).map(Command::Read).collect();
        if !self.is_synced() {
            return commands;
        }
        self.agenda.mark_due(now);
        self.find_left_entries();
        while let Some(target) = self.agenda.next() {
            if !self.is_quarantined(&target) {
                target.pass(self, now, &mut commands);
            }
        }
        commands.extend(self.events.drain(..).map(Command::Record));
        commands
    }

    /// When the next cycle is due although nothing is observed.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.agenda.wake_at()
    }

    /// Whether enough is known of the cluster to decide anything.
    pub fn is_synced(&self) -> bool {
        Kind::needed().all(|kind| self.known.contains(&kind))
    }

    /// How many targets the next cycle looks at, without those whose time has yet to come.
    pub fn backlog(&self) -> usize {
        self.agenda.len() + self.demands.left()
    }

    /// The namespaces in which a kind has to be watched because something depends on it there.
    pub fn watched_namespaces(&self, kind: Kind) -> BTreeSet<String> {
        kind.namespaces(self)
    }

    /// Why the nodes of an object are where they are. `None` if it is over or not known.
    pub fn explain<K: Explain>(&mut self, key: &ObjectKey, now: Timestamp) -> Option<K::Explanation> {
        K::explain(self, key, now)
    }

    /// How often the passes over an object have looked at a node so far.
    pub fn visits(&self, kind: Kind, key: &ObjectKey) -> Option<u64> {
        kind.visits(self, key)
    }

    /// A run of a cron job is known twice: as what it is, and to its cron job.
    fn observe_object(&mut self, object: Object, now: Timestamp) {
        if !self.quarantine.is_empty() {
            self.release(object.kind(), &object.key(&self.settings.config_namespace));
        }
        if let Some(key) = RunKey::of_object(&object) {
            self.observe_run(&key, object.run());
        }
        object.observe(self, now);
    }

    fn forget(&mut self, kind: Kind, key: &ObjectKey, uid: Option<&str>) {
        self.release(kind, key);
        if let Some(run) = RunKey::of(kind, key) {
            self.forget_run(&run, uid);
        }
        kind.forget(self, key, uid);
    }

    /// Everything of a kind is known. What is held and not listed is gone, or younger than the list: it has to be read. An
    /// object that we made ourselves may come and go while no watch runs, so that only its absence from a list tells.
    fn observe_list(&mut self, kind: Kind, namespace: Option<String>, names: &BTreeSet<ObjectKey>) {
        let is_here = |key: &ObjectKey| namespace.as_ref().is_none_or(|here| *here == key.namespace);
        let held: BTreeSet<_> = kind.held(self).into_iter().chain(self.crons.held_runs(kind)).collect();
        let missing = held.into_iter().filter(|(key, _)| is_here(key) && !names.contains(key));
        self.reads.extend(missing.map(|(key, uid)| Read::Object { kind, key, uid }));
        self.known.insert(kind);
        kind.listed(self, &namespace.unwrap_or_default());
    }

    /// The answer to a write reaches what is known of the object's own kind as its watch would tell it, only sooner. A watch
    /// may be broken for a minute, and nobody waits for it.
    pub(super) fn learn(&mut self, ticket: &Ticket, outcome: Outcome<Object>, now: Timestamp) {
        match outcome {
            Outcome::Written(object) if object.has_ended() => {
                self.forget(ticket.kind, &ticket.key, ticket.uid.as_deref());
            }
            Outcome::Written(object) | Outcome::Collided(object) => self.observe_object(object, now),
            Outcome::Gone => self.forget(ticket.kind, &ticket.key, ticket.uid.as_deref()),
            Outcome::Refused(_) | Outcome::Failed(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
