//! What waiting tasks wait for, counted for whoever watches the agent. No decision depends on it.

use super::Worklist;
use crate::agent::Moment;
use crate::agent::conditions::Conditions;
use crate::agent::entry::Stage;
use crate::agent::wait::Waits;

impl Worklist {
    /// What the waiting tasks wait for.
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
}
