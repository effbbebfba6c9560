//! Looks for the images of tasks that wait for a place. A task whose image is there ends without ever taking one, and an
//! attempt for an image that is absent begins with the pull.

use std::collections::BTreeMap;

use prewarm_api::reference::ImageRef;

use super::Worklist;
use super::outcome::{Ending, Found, LookAhead, present};
use crate::agent::Moment;
use crate::agent::conditions::Conditions;
use crate::agent::entry::Look;
use crate::object::ImageKey;

/// At most this many images are looked for at a time. The runtime answers within milliseconds, and meanwhile it pulls.
pub const MAX_LOOKS: usize = 16;

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
            let reference = &entry.task.reference;
            match found.remove(key) {
                Some(Found::Unclear) => entry.stage.set_look(Look::Answered),
                None => entry.stage.set_look(Look::Unasked),
                Some(Found::Present(image)) if entry.task.sources.is_met_by(image.digest.as_deref()) => {
                    self.inventory.saw(reference, true, now.elapsed);
                    entry.succeed(image, None, now);
                    endings.push(present(entry, now));
                }
                // Another image under this name is as good as none.
                Some(Found::Absent | Found::Present(_)) => {
                    self.inventory.saw(reference, false, now.elapsed);
                    entry.stage.set_look(Look::Answered);
                }
            }
        }
        endings
    }

    /// Looks again for an image that an attempt has ended for: it may be there by now.
    pub(super) fn look_again(&mut self, reference: &ImageRef) {
        self.inventory.forget(reference);
        let twins = self.entries.values_mut().filter(|entry| entry.task.reference == *reference);
        twins.for_each(|twin| twin.stage.set_look(Look::Unasked));
    }
}
