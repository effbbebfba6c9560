//! What waiting tasks wait for, counted for whoever watches the agent. No decision depends on it.

use super::Worklist;
use super::outcome::Conditions;
use crate::agent::Moment;
use crate::agent::entry::Stage;

/// Waiting tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// For one of the pulls that may run at once.
    pub place: usize,
    /// For room on the disk.
    pub room: usize,
    /// For the runtime to answer, or for the next agent, because this one stops.
    pub runtime: usize,
    /// For a registry that asked for fewer requests.
    pub registry: usize,
    /// For the next attempt after one that failed, or after the image was lost.
    pub retry: usize,
}

impl Worklist {
    /// What the waiting tasks wait for.
    pub fn waits(&self, conditions: &Conditions, now: Moment) -> Waits {
        let mut waits = Waits::default();
        for entry in self.entries.values() {
            let count = match entry.stage {
                Stage::Finished | Stage::Attempting { .. } | Stage::Confirming { .. } => continue,
                Stage::Resting { .. } => &mut waits.retry,
                Stage::Queued(_) if conditions.hold.is_some() => &mut waits.runtime,
                Stage::Queued(_) if conditions.no_room.is_some() => &mut waits.room,
                Stage::Queued(_) if self.closed_until(&entry.task, now).is_some() => &mut waits.registry,
                Stage::Queued(_) => &mut waits.place,
            };
            *count += 1;
        }
        waits
    }
}
