//! All tasks of a node and what happens to them next. It reads no clock and does no I/O: the agent tells it what it
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
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FailureClass, ImageTagStatus, PullPhase};
use prewarm_api::reference::ImageRef;

use super::Moment;
use super::attempt::Next;
use super::entry::{Entry, Stage, whole_seconds};
use super::pace::Pace;
use super::queue::Turns;
use super::report::TaskState;
use super::task::{Asked, BadEntry, Task};
use crate::object::ImageKey;
use outcome::ending;

pub use outcome::{Conditions, Decision, Ending, Failure, Found, LookAhead, Outcome, Start};
pub use waits::Waits;

mod ahead;
mod end;
mod outcome;
#[cfg(test)]
mod tests;
mod waits;

/// The tasks of one node.
#[derive(Debug, Default)]
pub struct Worklist {
    entries: BTreeMap<ImageKey, Entry>,
    bad: Vec<(BadEntry, Timestamp)>,
    turns: Turns,
    pace: Pace,
    attempts: u64,
    looks: u64,
    is_looking: bool,
}

impl Worklist {
    /// A worklist without anything in it. Attempts and looks are numbered on, so that a late answer to this one is not
    /// taken for an answer to the other.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { attempts: self.attempts, looks: self.looks, ..Self::default() }
    }

    /// Takes over what the NodeImage asks. Known tasks go on, new ones are queued or, if the NodeImage says so,
    /// resumed. Returns the attempts to cancel.
    pub fn adopt(
        &mut self,
        asked: Asked,
        reported: &BTreeMap<ImageKey, ImageTagStatus>,
        now: Moment,
    ) -> Vec<u64> {
        let cancelled = self.withdraw(&asked.tasks);
        for (key, task) in asked.tasks {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.task = task;
                continue;
            }
            let known = reported.get(&key).filter(|status| status.version == task.version);
            let mut entry = match known {
                Some(status) => Entry::resumed(task, status, now),
                None => Entry::new(task),
            };
            entry.asked_at = Some(now.elapsed);
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
            if !stays {
                cancelled.extend(entry.stage.attempt());
            }
            stays
        });
        cancelled
    }

    /// A bad entry keeps the time at which it was first reported.
    fn take_over_bad(
        &mut self,
        bad: Vec<BadEntry>,
        reported: &BTreeMap<ImageKey, ImageTagStatus>,
        now: Moment,
    ) {
        let seen = std::mem::take(&mut self.bad);
        let since = |entry: &BadEntry| {
            let known = seen.iter().find(|(known, _)| known == entry).map(|(_, at)| *at);
            let reported = reported.get(&entry.key).filter(|status| status.version == entry.version);
            let reported = reported.filter(|status| status.phase == PullPhase::Failed);
            known.or_else(|| Some(reported?.completion_time.as_ref()?.0)).unwrap_or(now.wall)
        };
        self.bad =
            bad.into_iter().map(|entry| (since(&entry), entry)).map(|(at, entry)| (entry, at)).collect();
    }

    /// Decides what begins now.
    pub fn decide(&mut self, conditions: &Conditions, now: Moment) -> Decision {
        let mut decision = Decision::default();
        self.end_overdue(now, &mut decision);
        while self.taken_places() < conditions.parallel && conditions.blocks().is_none() {
            let Some(key) = self.next(now) else { break };
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
                Stage::Finished | Stage::Attempting { .. } | Stage::Confirming { .. } => continue,
                Stage::Resting { until } if until <= now.elapsed => entry.stage = Stage::QUEUED,
                Stage::Queued(_) | Stage::Resting { .. } => {}
            }
            if let Next::GiveUp(reason) = entry.timeline().next(entry.failures, entry.elapsed(now)) {
                if let Some(message) = reason.message() {
                    entry.message = Some(message.to_owned());
                    entry.class = Some(FailureClass::TimedOut);
                }
                entry.finish(now);
                decision.endings.push(ending(entry, now, false));
            }
        }
    }

    /// The task whose turn it is. A reference is pulled once at a time, and a slowed registry is left alone.
    fn next(&self, now: Moment) -> Option<ImageKey> {
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
        self.turns.next(ready.map(|entry| &entry.task)).map(|task| task.key.clone())
    }

    fn begin(&mut self, key: &ImageKey, now: Moment) -> Option<Start> {
        let entry = self.entries.get_mut(key)?;
        let Next::Attempt { timeout } = entry.timeline().next(entry.failures, entry.elapsed(now)) else {
            return None;
        };
        self.attempts += 1;
        self.turns.took(entry.task.owner());
        let is_known_absent = ahead::is_absent(entry.stage, now);
        entry.stage = Stage::Attempting { attempt: self.attempts };
        let is_first = entry.begun.replace(entry.begun.unwrap_or(now.elapsed)).is_none();
        let waited = entry.asked_at.filter(|_| is_first).map(|at| now.elapsed.saturating_sub(at));
        entry.started_at.get_or_insert(whole_seconds(now.wall));
        if entry.failures == 0 {
            entry.message = None;
        }
        entry.bytes = None;
        Some(Start { attempt: self.attempts, task: entry.task.clone(), timeout, is_known_absent, waited })
    }

    /// Says why each queued task waits, in words that do not change while it does.
    fn explain_waiting(&mut self, conditions: &Conditions, now: Moment) {
        let closed: BTreeMap<ImageKey, Duration> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.stage.is_queued())
            .filter_map(|(key, entry)| Some((key.clone(), self.closed_until(&entry.task, now)?)))
            .collect();
        for (key, entry) in &mut self.entries {
            if !entry.stage.is_queued() || entry.failures > 0 {
                continue;
            }
            let registry = entry.task.reference.registry();
            let why = match conditions.blocks() {
                Some(why) => why.to_owned(),
                None if closed.contains_key(key) => {
                    format!("waits because {registry} asked for fewer requests")
                }
                None => format!("waits for one of {} places", conditions.parallel),
            };
            entry.message = Some(why);
        }
    }

    /// When the next thing happens by itself: a rest or a deadline ends, or a registry may be asked again.
    fn wake_at(&self, conditions: &Conditions, now: Moment) -> Option<Duration> {
        let has_place = self.taken_places() < conditions.parallel && conditions.blocks().is_none();
        let wake = |entry: &Entry| {
            let ready = match entry.stage {
                Stage::Finished | Stage::Attempting { .. } | Stage::Confirming { .. } => return None,
                Stage::Resting { until } => Some(until),
                Stage::Queued(_) if has_place => self.closed_until(&entry.task, now),
                Stage::Queued(_) => None,
            };
            ready.into_iter().chain(entry.deadline()).min()
        };
        self.entries.values().filter_map(wake).min()
    }

    fn closed_until(&self, task: &Task, now: Moment) -> Option<Duration> {
        self.pace.open_at(task.reference.registry()).filter(|open| *open > now.elapsed)
    }

    /// What is to be reported of every entry.
    pub fn states(&self) -> Vec<TaskState> {
        let good = self
            .entries
            .values()
            .map(|entry| TaskState { name: entry.task.key.name.clone(), status: entry.status() });
        let bad = self.bad.iter().map(|(entry, seen)| TaskState {
            name: entry.key.name.clone(),
            status: bad_status(entry, *seen),
        });
        good.chain(bad).collect()
    }

    /// How many entries there are, good and bad.
    pub fn asked(&self) -> usize {
        self.entries.len() + self.bad.len()
    }

    /// How many attempts run, whether or not they hold a place.
    pub fn running(&self) -> usize {
        self.entries.values().filter(|entry| entry.stage.attempt().is_some()).count()
    }

    fn taken_places(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.stage, Stage::Attempting { .. })).count()
    }

    /// How many tasks have not ended.
    pub fn unfinished(&self) -> usize {
        self.entries.values().filter(|entry| entry.stage != Stage::Finished).count()
    }

    /// How many tasks wait for an attempt.
    pub fn queued(&self) -> usize {
        self.unfinished() - self.running()
    }
}

fn bad_status(entry: &BadEntry, seen: Timestamp) -> ImageTagStatus {
    let time = Time(whole_seconds(seen));
    ImageTagStatus {
        tag: entry.key.tag.clone(),
        phase: PullPhase::Failed,
        start_time: Some(time.clone()),
        completion_time: Some(time),
        version: entry.version,
        message: Some(entry.reason.clone()),
        failure_class: Some(entry.class),
        ..ImageTagStatus::default()
    }
}
