//! The pass over an ImageListPullJob.

use std::sync::Arc;

use jiff::Timestamp;

use super::Ledger;
use super::command::Command;

impl Ledger {
    #[expect(clippy::unused_self, reason = "TEMPORARY")]
    pub(super) fn list_pass(&mut self, _uid: &Arc<str>, _now: Timestamp, _commands: &mut Vec<Command>) {}
}
