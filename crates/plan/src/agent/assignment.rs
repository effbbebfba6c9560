//! Whom a node works for: what follows when its object is seen, replaced by another one, or gone.

use std::collections::BTreeMap;

use super::Moment;
use super::disk::Room;
use super::report::{FirstSync, Report};
use super::state::TaskState;
use super::task::Asked;
use super::worklist::Worklist;
use crate::object::{ImageKey, Uid};

/// What one object asks of the node, and how far that is.
#[derive(Debug, Default)]
pub struct Assignment {
    uid: Option<Uid>,
    first_sync: Option<FirstSync>,
    /// The tasks.
    pub worklist: Worklist,
}

/// The object as a watch shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Which object it is: another one may have the same name.
    pub uid: Option<Uid>,
    /// Whether it is being deleted.
    pub is_ending: bool,
    /// What it asks.
    pub asked: Asked,
    /// What was reported to it.
    pub reported: BTreeMap<ImageKey, TaskState>,
    /// How the first pass ended, if that was reported.
    pub first_sync: Option<FirstSync>,
    /// Whether another program reported that, and not this one.
    pub is_foreign: bool,
}

/// What follows for whoever carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// Whom the node works for now.
    pub object: Object,
    /// Attempts that nobody wants any more.
    pub cancelled: Vec<u64>,
}

/// Whom the node works for after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The same object as before.
    Same,
    /// Another one. What was begun for the last one has no meaning for it.
    Another,
    /// Nobody: there is nothing to report to.
    Gone,
}

impl Assignment {
    /// Takes over what the object asks.
    pub fn observe(&mut self, observed: Observed, now: Moment) -> Adoption {
        let is_another = observed.uid != self.uid;
        if is_another && observed.is_ending {
            // Nothing of it was begun, so there is nothing to report to it.
            return self.forget(now);
        }
        let mut cancelled = Vec::new();
        if is_another {
            // A node that was made anew under its old name starts from what its own object says.
            cancelled = self.worklist.attempts();
            let worklist = self.worklist.emptied();
            *self = Self { uid: observed.uid, first_sync: None, worklist };
        }
        self.first_sync = observed.first_sync.or(self.first_sync.take());
        if !observed.is_ending {
            cancelled.extend(self.worklist.adopt(observed.asked, &observed.reported, now));
            if observed.is_foreign {
                cancelled.extend(self.worklist.adopt_foreign(&observed.reported));
            }
        }
        let object = if is_another { Object::Another } else { Object::Same };
        Adoption { object, cancelled }
    }

    /// There is no object: everything that it asked is withdrawn.
    pub fn forget(&mut self, now: Moment) -> Adoption {
        let cancelled = self.worklist.adopt(Asked::default(), &BTreeMap::new(), now);
        Adoption { object: Object::Gone, cancelled }
    }

    /// Notes how the first pass ended, once everything has.
    pub fn note_first_sync(&mut self, now: Moment) {
        if self.first_sync.is_none() && self.uid.is_some() && self.worklist.unfinished() == 0 {
            self.first_sync = Some(FirstSync::of(&self.worklist.states(), now.wall));
        }
    }

    /// What there is to report.
    pub fn report(&self, room: Option<Room>) -> Report {
        Report::new(self.worklist.states(), self.first_sync.clone(), room)
    }
}

#[cfg(test)]
mod tests;
