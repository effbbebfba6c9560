//! All tasks of a node and what happens to them next. It reads no clock and does no I/O: the agent passes in what it
//! observed and when, and carries out what it decides.
//!
//! ```text
//!   ┌──────── the node has it already ────────┐
//! Queued ─▶ Attempting ─▶ Confirming ─▶ Finished (Succeeded)
//!   ▲           │ failed     │
//!   └─ Resting ◀┴───────▶ Finished (Failed), when attempts or time are used up
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;

use super::Moment;
use super::attempt::{Next, Reason};
use super::entry::{Entry, Failed, Stage};
use super::inventory::Inventory;
use super::pace::Pace;
use super::queue::Rotation;
use super::state::{Note, Phase, TaskState};
use super::task::{Asked, BadEntry, Task};
use super::wait::{Alone, WaitReason};
use crate::object::ImageKey;
use crate::time::stamp;
use outcome::failed;

pub use super::conditions::Conditions;
pub use outcome::{Decision, Ended, Ending, Failure, Found, LookAhead, Outcome, Shortage, Start};

mod ahead;
mod end;
mod foreign;
mod next;
mod outcome;
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
                entry.task = task;
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

    /// Notes why each queued task waits.
    fn explain_waiting(&mut self, conditions: &Conditions, now: Moment) {
        let is_one_alone = self.alone_until(now).is_some();
        let reason = |entry| self.wait_reason(entry, conditions, is_one_alone, now);
        let reasons: Vec<Option<WaitReason>> = self.entries.values().map(reason).collect();
        for (entry, reason) in self.entries.values_mut().zip(reasons) {
            if let Stage::Queued { wait, .. } = &mut entry.stage {
                *wait = reason;
            }
        }
    }

    /// Why a queued task waits.
    fn wait_reason(
        &self,
        entry: &Entry,
        conditions: &Conditions,
        is_one_alone: bool,
        now: Moment,
    ) -> Option<WaitReason> {
        if !entry.stage.is_queued() {
            return None;
        }
        let slow = || WaitReason::SlowRegistry { registry: entry.task.reference.registry().to_owned() };
        let is_closed = || self.closed_until(&entry.task, now).is_some();
        let another = is_one_alone.then_some(Alone::Another);
        let alone = || entry.doubt.alone().or(another).map(WaitReason::Alone);
        let reason = conditions.blocks().or_else(|| is_closed().then(slow)).or_else(alone);
        Some(reason.unwrap_or(conditions.no_place()))
    }

    /// When the next thing happens by itself: a rest or a deadline ends, a registry may be asked again, or a place opens.
    fn wake_at(&self, conditions: &Conditions, now: Moment) -> Option<Duration> {
        let is_blocked = conditions.blocks().is_some();
        let has_place = self.taken_places() < conditions.parallel && !is_blocked;
        let wake = |entry: &Entry| {
            let ready = match entry.stage {
                Stage::Finished(_) | Stage::Attempting { .. } | Stage::Confirming { .. } => return None,
                Stage::Resting { until, .. } => Some(until),
                Stage::Queued { .. } if has_place => self.closed_until(&entry.task, now),
                Stage::Queued { .. } => None,
            };
            ready.into_iter().chain(entry.deadline()).min()
        };
        let opens_at = || self.alone_until(now).or_else(|| self.places(conditions).kept_open_at());
        let opens_at = opens_at().filter(|at| *at > now.elapsed && self.has_queued() && !is_blocked);
        self.entries.values().filter_map(wake).chain(opens_at).min()
    }

    fn has_queued(&self) -> bool {
        self.entries.values().any(|entry| entry.stage.is_queued())
    }

    fn closed_until(&self, task: &Task, now: Moment) -> Option<Duration> {
        self.pace.open_at(task.reference.registry()).filter(|open| *open > now.elapsed)
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
