//! How attempts end, and what becomes of a task then: success, another attempt, failure.

use super::Worklist;
use super::outcome::{Ending, Failure, Outcome, failed, present, pulled};
use crate::agent::attempt::{Next, Reason};
use crate::agent::doubt::crash;
use crate::agent::entry::{Entry, Failed, Look, Stage};
use crate::agent::runtime::Absence;
use crate::agent::state::{Bytes, Note};
use crate::agent::wait::WaitReason;
use crate::agent::{Moment, message};
use crate::backoff;

impl Worklist {
    /// Notes how far an attempt is.
    pub fn progressed(&mut self, attempt: u64, bytes: Bytes) {
        if let Some(entry) = self.attempted(attempt) {
            entry.found.get_or_insert(bytes.done);
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
            Outcome::Succeeded { image, was_present, results } => {
                entry.succeed(image, results, now);
                Some(if was_present { present(entry, now) } else { pulled(entry, now) })
            }
            Outcome::Failed(failure) | Outcome::NoRoom(failure) => fail(entry, &failure, now, jitter),
            Outcome::Unserved(failure) => wait_for_mirrors(entry, &failure, now, jitter),
            Outcome::Interrupted(absence) => interrupt(entry, absence, now, jitter),
        }
    }

    pub(super) fn attempted(&mut self, attempt: u64) -> Option<&mut Entry> {
        self.entries.values_mut().find(|entry| entry.stage.attempt() == Some(attempt))
    }
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

pub(super) fn fail(entry: &mut Entry, failure: &Failure, now: Moment, jitter: f64) -> Option<Ending> {
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

/// No mirror has the image: none may have it yet. That is asked again soon, as often as it takes, and only the deadline ends it.
fn wait_for_mirrors(entry: &mut Entry, failure: &Failure, now: Moment, jitter: f64) -> Option<Ending> {
    entry.unserved = entry.unserved.saturating_add(1);
    let note = match entry.task.timeline.next(entry.failures, entry.elapsed(now)) {
        Next::GiveUp(Reason::Deadline) => Note::Deadline,
        _ => Note::Text(message::unserved(&entry.task.reference.full(), &failure.text)),
    };
    let is_over = note == Note::Deadline;
    entry.last_failure =
        Failed { class: Some(failure.class), note: Some(note), fingerprint: failure.fingerprint };
    if is_over {
        entry.give_up(now);
        return Some(failed(entry, now));
    }
    let until = now.elapsed + backoff::pause(entry.unserved, jitter);
    entry.stage = Stage::Resting { until, wait: None };
    None
}
