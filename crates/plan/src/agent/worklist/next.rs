//! Which task begins next, and what its beginning means for the others.

use std::collections::BTreeSet;
use std::time::Duration;

use prewarm_api::reference::ImageRef;

use super::Worklist;
use super::outcome::Start;
use crate::agent::attempt::Next;
use crate::agent::conditions::Conditions;
use crate::agent::doubt::ALONE_FOR;
use crate::agent::entry::{Entry, Stage};
use crate::agent::places::{Holder, Places};
use crate::agent::{Moment, source};
use crate::object::ImageKey;
use crate::time::stamp;

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
        entry.bytes = None;
        let source = source::choose(entry.task.sources);
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
