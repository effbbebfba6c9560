//! What becomes of attempts when the disk runs out of room.

use super::Worklist;
use super::end::fail;
use super::outcome::{Failure, Outcome, Shortage};
use crate::agent::Moment;
use crate::agent::entry::{Entry, Stage};
use crate::object::ImageKey;

impl Worklist {
    /// The disk ran out of room during an attempt. If it was the only one, its image has failed. Else all stop, and wait for
    /// room without having used up an attempt; from then on each of them is pulled alone.
    pub fn ran_short(&mut self, attempt: u64, failure: Failure, now: Moment, jitter: f64) -> Shortage {
        if self.attempted(attempt).is_none() {
            return Shortage::default();
        }
        if self.taken_places() <= 1 {
            let ending = self.ended(attempt, Outcome::NoRoom(failure), now, jitter);
            return Shortage { ending, stopped: Vec::new() };
        }
        let largest = self.suspect_of_shortage();
        let mut shortage = Shortage::default();
        let running = self.entries.values_mut().filter(|entry| entry.stage.held_since().is_some());
        for entry in running {
            let Some(attempt) = entry.stage.attempt() else { continue };
            self.inventory.forget(&entry.task.reference);
            shortage.stopped.push(attempt);
            if largest.as_ref() == Some(&entry.task.key) {
                shortage.ending = fail(entry, &failure, now, jitter);
            } else {
                entry.stage = Stage::QUEUED;
            }
        }
        shortage
    }

    /// Counts the shortage for all that are pulled. Returns the one that grew most of those that were there too often.
    fn suspect_of_shortage(&mut self) -> Option<ImageKey> {
        let running = self.entries.values_mut().filter(|entry| entry.stage.held_since().is_some());
        let often = running.filter_map(|entry| entry.doubt.ran_short().then_some(&*entry));
        let grown = |entry: &&Entry| entry.bytes.map_or(0, |bytes| bytes.done);
        often.max_by_key(grown).map(|entry| entry.task.key.clone())
    }
}
