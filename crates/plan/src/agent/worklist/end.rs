//! How attempts end, and what becomes of a task then and later: success, another attempt, failure, loss, one more try.

use std::collections::BTreeSet;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;

use super::Worklist;
use super::outcome::{Ending, Failure, Outcome, Shortage, failed, present, pulled};
use crate::agent::attempt::{Next, Reason};
use crate::agent::doubt::crash;
use crate::agent::entry::{End, Entry, Failed, Look, Stage};
use crate::agent::inventory::Listing;
use crate::agent::runtime::Absence;
use crate::agent::state::{Bytes, Note};
use crate::agent::task::Task;
use crate::agent::wait::WaitReason;
use crate::agent::{Moment, message};
use crate::backoff;
use crate::object::ImageKey;
use crate::time::stamp;

/// How long an image is left alone after its second loss within a run. Each further loss doubles it: somebody needs the
/// room more.
const FIRST_REST_AFTER_LOSS: Duration = Duration::from_mins(5);
/// The longest rest after a loss.
const LONGEST_REST_AFTER_LOSS: Duration = Duration::from_hours(6);

impl Worklist {
    /// Notes how far an attempt is.
    pub fn progressed(&mut self, attempt: u64, bytes: Bytes) {
        if let Some(entry) = self.attempted(attempt) {
            entry.bytes = Some(bytes);
        }
    }

    /// Notes that the runtime has pulled what this attempt is for: its place is free for the next.
    pub fn pulled(&mut self, attempt: u64) {
        if let Some(entry) = self.attempted(attempt) {
            entry.stage = Stage::Confirming { attempt };
        }
    }

    /// Notes how an attempt ended. Returns the ending if the task ended with it; the answer of a cancelled attempt
    /// counts for nothing.
    pub fn ended(&mut self, attempt: u64, outcome: Outcome, now: Moment, jitter: f64) -> Option<Ending> {
        let reference = self.attempted(attempt)?.task.reference.clone();
        match &outcome {
            Outcome::Succeeded { was_present: false, .. } => self.pace.served(reference.registry()),
            Outcome::Failed(failure) if failure.is_registry_overloaded => {
                self.pace.overloaded(reference.registry(), now.elapsed, jitter);
            }
            _ => {}
        }
        self.look_again(&reference);
        if matches!(outcome, Outcome::Succeeded { .. }) {
            self.inventory.saw(&reference, true, now.elapsed);
        }
        let entry = self.attempted(attempt)?;
        match outcome {
            Outcome::Succeeded { image_id, was_present, results } => {
                entry.succeed(image_id, results, now);
                Some(if was_present { present(entry, now) } else { pulled(entry, now) })
            }
            Outcome::Failed(failure) | Outcome::NoRoom(failure) => fail(entry, &failure, now, jitter),
            Outcome::Interrupted(absence) => interrupt(entry, absence, now, jitter),
        }
    }

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

    pub(super) fn attempted(&mut self, attempt: u64) -> Option<&mut Entry> {
        self.entries.values_mut().find(|entry| entry.stage.attempt() == Some(attempt))
    }

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

/// The runtime went away. If it stopped while it pulled nothing but this image, for the third time, that is the image's doing.
fn interrupt(entry: &mut Entry, absence: Absence, now: Moment, jitter: f64) -> Option<Ending> {
    let is_alone = matches!(entry.stage, Stage::Attempting { is_alone: true, .. });
    if absence == Absence::Stopped && entry.doubt.interrupted(is_alone) {
        return fail(entry, &crash(entry.doubt.interruptions), now, jitter);
    }
    entry.stage = Stage::Queued { look: Look::Unasked, wait: Some(WaitReason::RuntimeGone) };
    None
}

fn fail(entry: &mut Entry, failure: &Failure, now: Moment, jitter: f64) -> Option<Ending> {
    entry.failures += 1;
    let timeline = entry.task.timeline;
    let reason = match timeline.next(entry.failures, entry.elapsed(now)) {
        Next::GiveUp(reason) => Some(reason),
        Next::Attempt { .. } => failure.is_final.then_some(Reason::NoAttemptLeft),
    };
    let sentence = || {
        message::sentence(&message::Failure {
            reference: &entry.task.reference.full(),
            class: failure.class,
            text: &failure.text,
            begun: entry.failures,
            allowed: timeline.attempts,
            credentials: &failure.problems,
            advice: &failure.advice,
        })
    };
    let note = if reason == Some(Reason::Deadline) { Note::Deadline } else { Note::Text(sentence()) };
    entry.last_failure =
        Failed { class: Some(failure.class), note: Some(note), fingerprint: failure.fingerprint };
    if reason.is_some() {
        entry.give_up(now);
        return Some(failed(entry, now));
    }
    let until = now.elapsed + backoff::pause(entry.failures, jitter);
    entry.stage = Stage::Resting { until, wait: None };
    None
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
