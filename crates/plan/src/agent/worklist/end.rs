//! How attempts end, and what becomes of a task then and later: success, another attempt, failure, loss, one more try.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_api::reference::ImageRef;

use super::Worklist;
use super::outcome::{Ending, Failure, Outcome, ending};
use crate::agent::attempt::{Next, Reason};
use crate::agent::entry::{Bytes, Entry, Stage, whole_seconds};
use crate::agent::task::Task;
use crate::agent::{Moment, message};
use crate::backoff;
use crate::object::ImageKey;

/// After its second loss within a run, an image is left alone for this long, then twice as long, and so on: somebody
/// needs the room more.
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
        let registry = self.attempted(attempt)?.task.reference.registry().to_owned();
        match &outcome {
            Outcome::Succeeded { was_present: false, .. } => self.pace.served(&registry),
            Outcome::Failed(failure) if failure.is_registry_overloaded => {
                self.pace.overloaded(&registry, now.elapsed, jitter);
            }
            _ => {}
        }
        self.forget_looks(attempt);
        let entry = self.attempted(attempt)?;
        match outcome {
            Outcome::Succeeded { image_id, was_present } => {
                succeed(entry, image_id, now);
                Some(ending(entry, now, was_present))
            }
            Outcome::Failed(failure) => fail(entry, &failure, now, jitter),
            Outcome::Interrupted(why) => {
                entry.stage = Stage::QUEUED;
                if entry.failures == 0 {
                    entry.message = Some(why);
                }
                None
            }
        }
    }

    pub(super) fn attempted(&mut self, attempt: u64) -> Option<&mut Entry> {
        self.entries.values_mut().find(|entry| entry.stage.attempt() == Some(attempt))
    }

    /// What should be on the node: the images of all tasks that ended well.
    pub fn warmed(&self) -> impl Iterator<Item = (&ImageKey, &ImageRef)> {
        let ended_well = |entry: &&Entry| entry.stage == Stage::Finished && entry.is_success;
        self.entries.values().filter(ended_well).map(|entry| (&entry.task.key, &entry.task.reference))
    }

    /// Notes which of the warmed images are gone from the node. Entries by hand are pulled again; of the others the
    /// loss is reported and the controller decides. Returns whether anything changed.
    pub fn noted(&mut self, key: &ImageKey, is_present: bool, now: Moment) -> bool {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.phase() == PullPhase::Succeeded)
        else {
            return false;
        };
        match (is_present, entry.lost_at.is_some()) {
            (true, true) => entry.lost_at = None,
            (false, false) => {
                entry.lost_at = Some(whole_seconds(now.wall));
                entry.losses += 1;
                if entry.task.is_by_hand() {
                    pull_again(entry, now);
                }
            }
            _ => return false,
        }
        true
    }

    /// Entries by hand that failed for lack of credentials and may be tried once more when those change.
    pub fn refused(&self) -> impl Iterator<Item = (&Task, Option<u64>)> {
        self.entries.values().filter(|entry| is_refused(entry)).map(|entry| (&entry.task, entry.fingerprint))
    }

    /// Notes what credentials an entry of [`refused`](Self::refused) has by now. If they changed, it is tried again.
    pub fn credentials_are(&mut self, key: &ImageKey, fingerprint: u64) -> bool {
        // Between question and answer the entry may have become another task.
        let Some(entry) = self.entries.get_mut(key).filter(|entry| is_refused(entry)) else { return false };
        match entry.fingerprint {
            Some(known) if known != fingerprint => {
                entry.has_retried = true;
                entry.begin_again(Stage::QUEUED);
                true
            }
            _ => {
                entry.fingerprint = Some(fingerprint);
                false
            }
        }
    }
}

/// Whether better credentials may help: some registries hide what one may not see, so "not found" counts too.
fn is_refused(entry: &Entry) -> bool {
    entry.phase() == PullPhase::Failed
        && matches!(entry.class, Some(FailureClass::Unauthorized | FailureClass::NotFound))
        && entry.task.is_by_hand()
        && !entry.task.secrets.is_empty()
        && !entry.has_retried
}

pub(super) fn succeed(entry: &mut Entry, image_id: String, now: Moment) {
    entry.is_success = true;
    entry.image_id = Some(image_id);
    entry.message = None;
    entry.class = None;
    entry.lost_at = None;
    if let Some(bytes) = &mut entry.bytes {
        bytes.done = bytes.total;
    }
    entry.finish(now);
}

fn fail(entry: &mut Entry, failure: &Failure, now: Moment, jitter: f64) -> Option<Ending> {
    entry.failures += 1;
    entry.class = Some(failure.class);
    entry.fingerprint = failure.fingerprint;
    let timeline = entry.timeline();
    entry.message = Some(message::sentence(&message::Failure {
        reference: &entry.task.reference.full(),
        class: failure.class,
        text: &failure.text,
        begun: entry.failures,
        allowed: timeline.attempts,
        credentials: &failure.problems,
        advice: &failure.advice,
    }));
    let reason = match timeline.next(entry.failures, entry.elapsed(now)) {
        Next::GiveUp(reason) => Some(reason),
        Next::Attempt { .. } => failure.is_final.then_some(Reason::NoAttemptLeft),
    };
    if let Some(reason) = reason {
        if let Some(message) = reason.message() {
            entry.message = Some(message.to_owned());
        }
        entry.finish(now);
        return Some(ending(entry, now, false));
    }
    entry.stage = Stage::Resting { until: now.elapsed + backoff::pause(entry.failures, jitter) };
    None
}

/// At once after the first loss, and after a rest when the node keeps removing it.
fn pull_again(entry: &mut Entry, now: Moment) {
    let Some(doublings) = entry.losses.checked_sub(2) else { return entry.begin_again(Stage::QUEUED) };
    let rest = FIRST_REST_AFTER_LOSS.saturating_mul(1 << doublings.min(16)).min(LONGEST_REST_AFTER_LOSS);
    entry.begin_again(Stage::Resting { until: now.elapsed + rest });
    let (losses, minutes) = (entry.losses, rest.as_secs() / 60);
    entry.message = Some(format!(
        "waits {minutes} minutes because this node removed the image {losses} times: it lacks room"
    ));
}
