//! What becomes of tasks that have ended: images that are lost, and failures that better credentials may help.

use std::collections::BTreeSet;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;

use super::Worklist;
use crate::agent::Moment;
use crate::agent::entry::{End, Entry, Failed, Stage};
use crate::agent::inventory::Listing;
use crate::agent::task::Task;
use crate::agent::wait::WaitReason;
use crate::object::ImageKey;
use crate::time::stamp;

/// How long an image is left alone after its second loss within a run. Each further loss doubles it: somebody needs the
/// room more.
const FIRST_REST_AFTER_LOSS: Duration = Duration::from_mins(5);
/// The longest rest after a loss.
const LONGEST_REST_AFTER_LOSS: Duration = Duration::from_hours(6);

impl Worklist {
    /// What should be on the node: the images of all tasks that ended well.
    pub fn warmed(&self) -> BTreeSet<ImageRef> {
        let ended_well = self.entries.values().filter(|entry| entry.stage.has_succeeded());
        ended_well.map(|entry| entry.task.reference.clone()).collect()
    }

    /// Takes over what a check found. Warmed images that are gone are pulled again for entries by hand; of the others
    /// the loss is reported and the controller decides. Returns how many tasks lost their image.
    pub fn checked(&mut self, listing: &Listing, now: Moment) -> usize {
        self.inventory.listed(listing);
        let mut losses = 0;
        for entry in self.entries.values_mut().filter(|entry| entry.stage.has_succeeded()) {
            let reference = &entry.task.reference;
            match self.inventory.holds(reference) {
                Some(true) => entry.loss.at = None,
                Some(false) if entry.loss.at.is_none() && listing.absent.contains(reference) => {
                    losses += 1;
                    note_loss(entry, now);
                }
                Some(false) | None => {}
            }
        }
        losses
    }

    /// Entries by hand that failed for lack of credentials and may be tried once more when those change.
    pub fn refused(&self) -> impl Iterator<Item = &Task> {
        self.entries.values().filter(|entry| refusal(entry).is_some()).map(|entry| &entry.task)
    }

    /// Notes what credentials an entry of [`refused`](Self::refused) has by now. If they changed, it is tried again.
    pub fn credentials_are(&mut self, key: &ImageKey, fingerprint: u64) -> bool {
        // Between question and answer the entry may have become another task.
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let Some(known) = refusal(entry).map(|failure| failure.fingerprint) else { return false };
        if known.is_some_and(|known| known != fingerprint) {
            entry.has_retried = true;
            entry.begin_again(Stage::QUEUED);
            return true;
        }
        if let Stage::Finished(End::Failed { failure, .. }) = &mut entry.stage {
            failure.fingerprint = Some(fingerprint);
        }
        false
    }
}

/// The failure of an entry that better credentials may help: some registries hide what one may not see, so "not found"
/// counts too.
fn refusal(entry: &Entry) -> Option<&Failed> {
    let Stage::Finished(End::Failed { failure, .. }) = &entry.stage else { return None };
    let is_refused = matches!(failure.class, Some(FailureClass::Unauthorized | FailureClass::NotFound))
        && entry.task.is_by_hand()
        && !entry.task.secrets.is_empty()
        && !entry.has_retried;
    is_refused.then_some(failure)
}

/// An entry by hand is pulled again: at once after the first loss, and after a rest when the node keeps removing it.
fn note_loss(entry: &mut Entry, now: Moment) {
    entry.loss.at = Some(stamp(now.wall));
    entry.loss.count += 1;
    if !entry.task.is_by_hand() {
        return;
    }
    let times = entry.loss.count;
    let Some(doublings) = times.checked_sub(2) else { return entry.begin_again(Stage::QUEUED) };
    let rest = FIRST_REST_AFTER_LOSS.saturating_mul(1 << doublings.min(16)).min(LONGEST_REST_AFTER_LOSS);
    let wait = Some(WaitReason::Removed { times, rest });
    entry.begin_again(Stage::Resting { until: now.elapsed + rest, wait });
}
