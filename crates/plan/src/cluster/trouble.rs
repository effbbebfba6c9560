//! Trouble between the cluster and this version of the controller that people should know of.

use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::reference_object::ObjectReference;

use super::Kernel;
use super::command::Notice;
use super::quarantine::Quarantine;
use super::unkept::Unkept;
use crate::time::after;

/// The same trouble elsewhere is not reported again within this time.
const SAME_TROUBLE: Duration = Duration::from_mins(10);

/// What goes wrong whatever is decided.
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

    /// Records trouble that lasts. Trouble on all nodes is recorded for one of them.
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
