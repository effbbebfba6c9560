//! All tasks of a node and what happens to them next. It reads no clock and does no I/O: the agent passes in what it
//! observed and when, and carries out what it decides.
//!
//! ```text
//!   ┌──────── the node has it already ────────┐
//! Queued ─▶ Attempting ─▶ Confirming ─▶ Finished (Succeeded)
//!   ▲           │ failed     │
//!   └─ Resting ◀┴───────▶ Finished (Failed), when attempts or time are used up
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;

use super::attempt::{Next, Reason};
use super::doubt::ALONE_FOR;
use super::entry::{Entry, Failed, Stage};
use super::inventory::Inventory;
use super::pace::Pace;
use super::places::{Holder, Places};
use super::queue::Rotation;
use super::source::Allowed;
use super::state::{Note, Phase, TaskState};
use super::task::{Asked, BadEntry, Task};
use super::{Moment, source};
use crate::object::ImageKey;
use crate::time::stamp;
use outcome::failed;

pub use super::conditions::Conditions;
pub use outcome::{Decision, Ended, Ending, Failure, Found, Held, LookAhead, Outcome, Shortage, Start};

mod ahead;
mod end;
mod foreign;
mod loss;
mod outcome;
mod shortage;
#[cfg(test)]
mod tests;
mod waits;

/// The tasks of one node.
#[derive(Debug, Default)]
pub struct Worklist {
    entries: BTreeMap<ImageKey, Entry>,
    bad: Vec<(BadEntry, Timestamp)>,
    rotation: Rotation,
    pace: Pace,
    inventory: Inventory,
    attempts: u64,
    looks: u64,
    is_looking: bool,
}

impl Worklist {
    /// A worklist of the same node without anything in it. Attempts and looks are numbered on, so that a late answer to
    /// this one is not taken for an answer to the other.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let mut inventory = self.inventory.clone();
        let attempted = self.entries.values().filter(|entry| entry.stage.attempt().is_some());
        attempted.for_each(|entry| inventory.forget(&entry.task.reference));
        Self { inventory, attempts: self.attempts, looks: self.looks, ..Self::default() }
    }

    /// What the node holds, as far as is known.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Takes over what the NodeImage asks. Known tasks go on, new ones are queued or, if the NodeImage says so,
    /// resumed. Returns the attempts to cancel.
    pub fn adopt(&mut self, asked: Asked, reported: &BTreeMap<ImageKey, TaskState>, now: Moment) -> Vec<u64> {
        let cancelled = self.withdraw(&asked.tasks);
        for (key, task) in asked.tasks {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.renew(task);
                continue;
            }
            let known = reported.get(&key).filter(|state| state.version == task.version);
            let mut entry = match known {
                Some(state) => Entry::resumed(task, state, now),
                None => Entry::new(task),
            };
            entry.course.asked_at = Some(now.elapsed);
            self.entries.insert(key, entry);
        }
        self.take_over_bad(asked.bad, reported, now);
        cancelled
    }

    /// Removes what is no longer asked for, or asked for under another version.
    fn withdraw(&mut self, asked: &BTreeMap<ImageKey, Task>) -> Vec<u64> {
        let mut cancelled = Vec::new();
        self.entries.retain(|key, entry| {
            let stays = asked.get(key).is_some_and(|task| task.version == entry.task.version);
            if let Some(attempt) = entry.stage.attempt().filter(|_| !stays) {
                self.inventory.forget(&entry.task.reference);
                cancelled.push(attempt);
            }
            stays
        });
        cancelled
    }

    /// A bad entry keeps the time at which it was first reported.
    fn take_over_bad(&mut self, bad: Vec<BadEntry>, reported: &BTreeMap<ImageKey, TaskState>, now: Moment) {
        let seen = std::mem::take(&mut self.bad);
        let since = |entry: &BadEntry| {
            let known = seen.iter().find(|(known, _)| known == entry).map(|(_, at)| *at);
            let reported = reported.get(&entry.key).filter(|state| state.version == entry.version);
            let reported = reported.filter(|state| state.phase == Phase::Failed);
            known.or_else(|| reported?.completed_at).unwrap_or(now.wall)
        };
        self.bad =
            bad.into_iter().map(|entry| (since(&entry), entry)).map(|(at, entry)| (entry, at)).collect();
    }

    /// Decides what begins now.
    pub fn decide(&mut self, conditions: &Conditions, now: Moment) -> Decision {
        let mut decision = Decision::default();
        self.end_overdue(now, &mut decision);
        while conditions.blocks().is_none() {
            let Some(key) = self.next(conditions, now) else { break };
            decision.starts.extend(self.begin(&key, now));
        }
        decision.look = self.look_ahead(conditions);
        self.explain_waiting(conditions, now);
        decision.wake_at = self.wake_at(conditions, now);
        decision
    }

    /// Ends tasks whose time is used up between two attempts, and wakes those that rested enough.
    fn end_overdue(&mut self, now: Moment, decision: &mut Decision) {
        for entry in self.entries.values_mut() {
            match entry.stage {
                Stage::Finished(_) | Stage::Attempting { .. } | Stage::Confirming { .. } => continue,
                Stage::Resting { until, .. } if until <= now.elapsed => entry.stage = Stage::QUEUED,
                Stage::Queued { .. } | Stage::Resting { .. } => {}
            }
            if let Next::GiveUp(reason) = entry.task.timeline.next(entry.failures, entry.elapsed(now)) {
                if reason == Reason::Deadline {
                    let (class, note) = (Some(FailureClass::TimedOut), Some(Note::Deadline));
                    entry.last_failure = Failed { class, note, ..entry.last_failure.clone() };
                }
                entry.give_up(now);
                decision.endings.push(failed(entry, now));
            }
        }
    }

    /// What is to be reported of every entry.
    pub fn states(&self) -> Vec<TaskState> {
        let good = self.entries.values().map(Entry::state);
        good.chain(self.bad.iter().map(|(entry, seen)| bad_state(entry, *seen))).collect()
    }

    /// How many entries there are, good and bad.
    pub fn asked(&self) -> usize {
        self.entries.len() + self.bad.len()
    }

    /// The attempts that run.
    pub fn attempts(&self) -> Vec<u64> {
        self.entries.values().filter_map(|entry| entry.stage.attempt()).collect()
    }

    /// How many attempts run, whether or not they hold a place.
    pub fn running(&self) -> usize {
        self.attempts().len()
    }

    /// What may come from mirrors alone and has not ended: what was begun of it is gone on with.
    pub fn from_mirrors(&self) -> BTreeSet<&ImageRef> {
        let unfinished = self.entries.values().filter(|entry| !entry.stage.is_finished());
        let mirrored = unfinished.filter(|entry| matches!(entry.task.sources, Allowed::Mirrors { .. }));
        mirrored.map(|entry| &entry.task.reference).collect()
    }

    /// The image that this attempt is for, while it runs.
    pub fn attempted_image(&self, attempt: u64) -> Option<&ImageRef> {
        let entry = self.entries.values().find(|entry| entry.stage.attempt() == Some(attempt))?;
        Some(&entry.task.reference)
    }

    /// Whether an attempt for this image runs.
    pub fn is_attempted(&self, reference: &ImageRef) -> bool {
        let mut attempted = self.entries.values().filter(|entry| entry.stage.attempt().is_some());
        attempted.any(|entry| entry.task.reference == *reference)
    }

    fn taken_places(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.stage, Stage::Attempting { .. })).count()
    }

    /// How many tasks have not ended.
    pub fn unfinished(&self) -> usize {
        self.entries.values().filter(|entry| !entry.stage.is_finished()).count()
    }

    /// How many tasks wait for an attempt.
    pub fn queued(&self) -> usize {
        self.unfinished() - self.running()
    }
}

impl Worklist {
    /// The task to begin next. A reference is pulled once at a time, and a slowed registry is left alone. What has to be pulled
    /// alone comes when nothing else could, and keeps others away for a while.
    pub(super) fn next(&self, conditions: &Conditions, now: Moment) -> Option<ImageKey> {
        if self.alone_until(now).is_some() {
            return None;
        }
        let busy: BTreeSet<&ImageRef> = self
            .entries
            .values()
            .filter(|entry| entry.stage.attempt().is_some())
            .map(|entry| &entry.task.reference)
            .collect();
        let ready = self.entries.values().filter(|entry| {
            entry.stage.is_queued()
                && !busy.contains(&entry.task.reference)
                && self.closed_until(&entry.task, now).is_none()
        });
        let (alone, others): (Vec<&Entry>, Vec<&Entry>) =
            ready.partition(|entry| entry.doubt.alone().is_some());
        let places = self.places(conditions);
        let fitting = others.iter().filter(|entry| places.has_one_for(&entry.task, now.elapsed));
        let next = self.rotation.next(fitting.map(|entry| &entry.task), &places);
        let is_free = places.holders.is_empty() && conditions.parallel > 0;
        let alone = alone.iter().filter(|_| is_free).map(|entry| &entry.task);
        next.or_else(|| self.rotation.next(alone, &places)).map(|task| task.key.clone())
    }

    /// Who holds the places.
    pub(super) fn places(&self, conditions: &Conditions) -> Places<'_> {
        let holders = self.entries.values().filter_map(|entry| {
            let since = entry.stage.held_since()?;
            Some(Holder { task: &entry.task, since })
        });
        Places { parallel: conditions.parallel, holders: holders.collect() }
    }

    /// Until when an image that is pulled alone keeps others away.
    pub(super) fn alone_until(&self, now: Moment) -> Option<Duration> {
        let alone = self.entries.values().filter(|entry| entry.doubt.alone().is_some());
        let until = alone.filter_map(|entry| entry.stage.held_since()).max()?.saturating_add(ALONE_FOR);
        (until > now.elapsed).then_some(until)
    }

    pub(super) fn begin(&mut self, key: &ImageKey, now: Moment) -> Option<Start> {
        let entry = self.entries.get_mut(key)?;
        let Next::Attempt { timeout } = entry.task.timeline.next(entry.failures, entry.elapsed(now)) else {
            return None;
        };
        self.attempts += 1;
        self.rotation.served(entry.task.owner());
        let is_alone = self.join_others();
        let entry = self.entries.get_mut(key)?;
        let is_known_absent = self.inventory.was_just_absent(&entry.task.reference, now.elapsed);
        entry.stage = Stage::Attempting { attempt: self.attempts, since: now.elapsed, is_alone };
        let course = &mut entry.course;
        let is_first = course.begun.replace(course.begun.unwrap_or(now.elapsed)).is_none();
        let waited = course.asked_at.filter(|_| is_first).map(|at| now.elapsed.saturating_sub(at));
        course.started_at.get_or_insert(stamp(now.wall));
        (entry.bytes, entry.found) = (None, None);
        let source = source::choose(&entry.task.sources);
        let task = entry.task.clone();
        Some(Start { attempt: self.attempts, task, source, timeout, is_known_absent, waited })
    }

    /// Another attempt begins: those that run are alone no more. Returns whether there are none.
    fn join_others(&mut self) -> bool {
        let mut is_first = true;
        for entry in self.entries.values_mut() {
            if let Stage::Attempting { is_alone, .. } = &mut entry.stage {
                (*is_alone, is_first) = (false, false);
            }
        }
        is_first
    }
}

fn bad_state(entry: &BadEntry, seen: Timestamp) -> TaskState {
    let time = Some(stamp(seen));
    TaskState {
        started_at: time,
        completed_at: time,
        note: Some(Note::Text(entry.reason.clone())),
        class: Some(entry.class),
        ..TaskState::new(entry.key.clone(), entry.version, Phase::Failed)
    }
}
