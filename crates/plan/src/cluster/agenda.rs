//! What has to be looked at: because something has changed, or because its time has come.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::command::Target;
use crate::object::timers::Timers;

/// Marked targets and timers.
#[derive(Debug, Default)]
pub struct Agenda {
    marked: BTreeSet<Target>,
    timers: Timers<Target>,
}

impl Agenda {
    /// A target has to be looked at in the next cycle, or later in this one.
    pub fn mark(&mut self, target: Target) {
        self.marked.insert(target);
    }

    /// These targets have to be looked at.
    pub fn mark_all(&mut self, targets: impl IntoIterator<Item = Target>) {
        self.marked.extend(targets);
    }

    /// A target need not be looked at.
    pub fn unmark(&mut self, target: &Target) {
        self.marked.remove(target);
    }

    /// Whether a target has to be looked at.
    pub fn is_marked(&self, target: &Target) -> bool {
        self.marked.contains(target)
    }

    /// A target has to be looked at by this time, in place of the time that was set before.
    pub fn wake(&mut self, target: Target, at: Option<Timestamp>) {
        self.timers.set(target, at);
    }

    /// A target does not exist any more.
    pub fn drop_target(&mut self, target: Target) {
        self.marked.remove(&target);
        self.timers.set(target, None);
    }

    /// Marks everything whose time has come.
    pub fn mark_due(&mut self, now: Timestamp) {
        while let Some(target) = self.timers.take_due(now) {
            self.marked.insert(target);
        }
    }

    /// Takes out the first target that has to be looked at.
    pub fn next(&mut self) -> Option<Target> {
        self.marked.pop_first()
    }

    /// When the next timer ends.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// How many targets are marked.
    pub fn len(&self) -> usize {
        self.marked.len()
    }
}
