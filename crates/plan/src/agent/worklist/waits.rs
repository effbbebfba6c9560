//! What waiting tasks wait for, and until when at most.

use std::time::Duration;

use super::Worklist;
use crate::agent::Moment;
use crate::agent::conditions::Conditions;
use crate::agent::entry::{Entry, Stage};
use crate::agent::task::Task;
use crate::agent::wait::{Alone, WaitReason, Waits};

impl Worklist {
    /// What the waiting tasks wait for, counted for whoever watches the agent.
    pub fn waits(&self, conditions: &Conditions, now: Moment) -> Waits {
        let mut waits = Waits::default();
        let is_one_alone = self.alone_until(now).is_some();
        for entry in self.entries.values() {
            match &entry.stage {
                Stage::Finished(_) | Stage::Attempting { .. } | Stage::Confirming { .. } => {}
                Stage::Resting { wait, .. } => waits.add(wait.as_ref()),
                Stage::Queued { .. } => {
                    waits.add(self.wait_reason(entry, conditions, is_one_alone, now).as_ref());
                }
            }
        }
        waits
    }

    /// Notes why each queued task waits.
    pub(super) fn explain_waiting(&mut self, conditions: &Conditions, now: Moment) {
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
    pub(super) fn wake_at(&self, conditions: &Conditions, now: Moment) -> Option<Duration> {
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

    pub(super) fn closed_until(&self, task: &Task, now: Moment) -> Option<Duration> {
        self.pace.open_at(task.reference.registry()).filter(|open| *open > now.elapsed)
    }
}
