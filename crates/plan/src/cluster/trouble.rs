//! What stands between the cluster and this version of the controller, for whoever has to be told.

use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::reference_object::ObjectReference;

use super::Kernel;
use super::command::Notice;
use super::quarantine::Quarantine;
use super::unkept::Unkept;
use crate::time::after;

/// The same trouble elsewhere is not told again within this time.
const SAME_TROUBLE: Duration = Duration::from_mins(10);

/// What goes wrong without any decision's doing.
#[derive(Clone, Copy, Debug)]
pub struct Trouble<'a> {
    /// Fields that the API server does not keep.
    pub unkept: &'a Unkept,
    /// Objects that this version cannot read.
    pub unreadable: &'a Quarantine,
}

impl Kernel {
    /// What stands between the cluster and this version of the controller.
    pub fn trouble(&self) -> Trouble<'_> {
        Trouble { unkept: &self.unkept, unreadable: &self.quarantine }
    }

    /// Tells of trouble that lasts. What ails all nodes is told of one of them.
    pub(super) fn complain(&mut self, about: ObjectReference, complaint: Option<Notice>, now: Timestamp) {
        let Some(complaint) = complaint else { return };
        let is_fresh =
            |(note, at): &(String, Timestamp)| *note == complaint.note && now < after(*at, SAME_TROUBLE);
        if !self.complaint.as_ref().is_some_and(is_fresh) {
            self.complaint = Some((complaint.note.clone(), now));
            self.events.push(complaint.about(about));
        }
    }
}
