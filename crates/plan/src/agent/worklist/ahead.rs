//! Looks for the images of waiting tasks before their places come. What the node has already is finished without ever
//! taking a place, and an attempt for what it lacks begins with the pull.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Worklist;
use super::outcome::{Conditions, Ending, Found, LookAhead, present};
use crate::agent::Moment;
use crate::agent::entry::{Look, Stage};
use crate::object::ImageKey;

/// So many images are looked for at a time. The runtime answers within milliseconds, and meanwhile it pulls.
pub const MAX_LOOKS: usize = 16;
/// So long a look that found nothing counts. After that a pod may have brought the image, and the attempt looks again.
pub const LOOK_LASTS: Duration = Duration::from_secs(5);

impl Worklist {
    /// The next images to look for, if the runtime may be asked and no look is under way. Each waiting task is looked
    /// for once; neither the disk nor a slow registry is in the way of that.
    pub(super) fn look_ahead(&mut self, conditions: &Conditions) -> Option<LookAhead> {
        if self.is_looking || conditions.hold.is_some() {
            return None;
        }
        let mut images = Vec::new();
        let unasked = self.entries.iter_mut().filter(|(_, entry)| entry.stage.look() == Some(Look::Unasked));
        for (key, entry) in unasked.filter(|(_, entry)| !entry.task.is_always).take(MAX_LOOKS) {
            entry.stage.set_look(Look::Asked);
            images.push((key.clone(), entry.task.reference.clone()));
        }
        if images.is_empty() {
            return None;
        }
        self.looks += 1;
        self.is_looking = true;
        Some(LookAhead { number: self.looks, images })
    }

    /// Notes what a look ahead found. What it does not answer is asked again. Returns the tasks that ended with it.
    pub fn looked(&mut self, number: u64, mut found: BTreeMap<ImageKey, Found>, now: Moment) -> Vec<Ending> {
        let mut endings = Vec::new();
        if !self.is_looking || number != self.looks {
            return endings;
        }
        self.is_looking = false;
        // A task that was begun, withdrawn or asked for anew meanwhile is no longer waiting for this answer.
        let asked = self.entries.iter_mut().filter(|(_, entry)| entry.stage.look() == Some(Look::Asked));
        for (key, entry) in asked {
            match found.remove(key) {
                Some(Found::Absent) => entry.stage.set_look(Look::Absent { at: now.elapsed }),
                Some(Found::Unclear) => entry.stage.set_look(Look::Unclear),
                None => entry.stage.set_look(Look::Unasked),
                Some(Found::Present { image_id }) => {
                    entry.succeed(image_id, now);
                    endings.push(present(entry, now));
                }
            }
        }
        endings
    }

    /// Forgets what was found about other tasks of the image that this attempt is for: it may be there by now.
    pub(super) fn forget_looks(&mut self, attempt: u64) {
        let Some(reference) = self.attempted(attempt).map(|entry| entry.task.reference.clone()) else {
            return;
        };
        let twins = self.entries.values_mut().filter(|entry| entry.stage.is_queued());
        for twin in twins.filter(|entry| entry.task.reference == reference) {
            twin.stage.set_look(Look::Unasked);
        }
    }
}

/// Whether the last look at a queued task found nothing, and counts.
pub(super) fn is_absent(stage: &Stage, now: Moment) -> bool {
    matches!(stage.look(), Some(Look::Absent { at }) if now.elapsed.saturating_sub(at) <= LOOK_LASTS)
}
