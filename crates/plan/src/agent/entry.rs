//! One task on its way: queued, attempted, resting after a failure, finished. It knows what to report of itself.

use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;

use super::Moment;
use super::doubt::Doubt;
use super::state::{Bytes, Note, OwnerResult, Phase, TaskState};
use super::task::Task;
use super::wait::WaitReason;
use super::worklist::Held;
use crate::time::stamp;

/// Where a task stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// It may be attempted as soon as there is a place.
    Queued { look: Look, wait: Option<WaitReason> },
    /// An attempt runs. By its number, a late answer of a cancelled attempt is recognized. It is alone if no other held a place
    /// in all its time.
    Attempting { attempt: u64, since: Duration, is_alone: bool },
    /// The runtime has pulled it, and whether it is there is being asked. That takes no place from others.
    Confirming { attempt: u64 },
    /// It is left alone until then: after a failure, or for this reason.
    Resting { until: Duration, wait: Option<WaitReason> },
    /// It ended.
    Finished(End),
}

/// Whether the runtime was asked for a queued image. What it answered is in the inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It was not.
    Unasked,
    /// It is being asked.
    Asked,
    /// It did not have the image, or could not say. The attempt finds out, and its failure is reported.
    Answered,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// The image is on the node.
    Succeeded {
        at: Timestamp,
        image_id: Option<String>,
        digest: Option<String>,
        results: Option<Vec<OwnerResult>>,
    },
    /// It was given up.
    Failed { at: Timestamp, failure: Failed },
}

/// What is known of a failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Failed {
    pub class: Option<FailureClass>,
    pub note: Option<Note>,
    /// The credentials that it was met with.
    pub fingerprint: Option<u64>,
}

impl Stage {
    /// Queued, with nothing known.
    pub const QUEUED: Self = Self::Queued { look: Look::Unasked, wait: None };

    pub fn is_queued(&self) -> bool {
        matches!(self, Self::Queued { .. })
    }

    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Finished(_))
    }

    pub fn has_succeeded(&self) -> bool {
        matches!(self, Self::Finished(End::Succeeded { .. }))
    }

    /// The look of a queued task.
    pub fn look(&self) -> Option<Look> {
        if let Self::Queued { look, .. } = self { Some(*look) } else { None }
    }

    /// Notes how far the look for a queued image is. Why the task waits is another matter.
    pub fn set_look(&mut self, now: Look) {
        if let Self::Queued { look, .. } = self {
            *look = now;
        }
    }

    /// Since when it holds a place, if it does.
    pub fn held_since(&self) -> Option<Duration> {
        if let Self::Attempting { since, .. } = self { Some(*since) } else { None }
    }

    /// The attempt that runs, if one does.
    pub fn attempt(&self) -> Option<u64> {
        match self {
            Self::Attempting { attempt, .. } | Self::Confirming { attempt } => Some(*attempt),
            Self::Queued { .. } | Self::Resting { .. } | Self::Finished(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub task: Task,
    pub stage: Stage,
    /// How many attempts failed, and how the last one did.
    pub failures: u32,
    pub last_failure: Failed,
    /// How often no mirror had the image. That uses up no attempt.
    pub unserved: u32,
    pub course: Course,
    /// How far the last attempt came.
    pub bytes: Option<Bytes>,
    /// How many bytes were there when the attempt was first seen: of earlier ones, or of other images.
    pub found: Option<u64>,
    pub loss: Loss,
    pub doubt: Doubt,
    /// Whether a change of credentials was used up for another round.
    pub has_retried: bool,
}

/// When a task was worked on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// When this run of the agent was first asked for it; unknown if it is pulled again by itself.
    pub asked_at: Option<Duration>,
    /// When its first attempt began, in the time that never jumps.
    pub begun: Option<Duration>,
    /// How long it had been at work before, under an earlier run of the agent.
    pub spent: Duration,
    /// When its first attempt began, by the time of day.
    pub started_at: Option<Timestamp>,
}

/// How an image was removed from the node after it had been pulled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// When it was last missed, until it is there again.
    pub at: Option<Timestamp>,
    /// How often; a fight with a garbage collector is given up step by step.
    pub count: u32,
}

impl Entry {
    pub fn new(task: Task) -> Self {
        Self {
            task,
            stage: Stage::QUEUED,
            failures: 0,
            last_failure: Failed::default(),
            unserved: 0,
            course: Course::default(),
            bytes: None,
            found: None,
            loss: Loss::default(),
            doubt: Doubt::default(),
            has_retried: false,
        }
    }

    /// Goes on where an earlier run of the agent stopped (kruise D6): what is finished stays so, what was begun keeps
    /// its beginning and its failures. The controller's verdict on a silent node is no end: the node answers late.
    pub fn resumed(task: Task, reported: &TaskState, now: Moment) -> Self {
        let mut entry = Self::new(task);
        if reported.note == Some(Note::Silence) {
            return entry;
        }
        let note = reported.note.clone().filter(|note| *note != Note::Unpacking);
        let failure = Failed { class: reported.class, note, fingerprint: None };
        entry.failures = reported.failed_attempts;
        entry.course.started_at = reported.started_at;
        entry.loss.at = reported.lost_at;
        entry.doubt.interruptions = reported.interruptions;
        let end = match (reported.phase, reported.completed_at) {
            (Phase::Succeeded, Some(at)) => {
                let (image_id, digest) = (reported.image_id.clone(), reported.digest.clone());
                End::Succeeded { at, image_id, digest, results: reported.results.clone() }
            }
            (Phase::Failed, Some(at)) => End::Failed { at, failure },
            _ => {
                entry.last_failure = failure;
                entry.course.resume(now);
                return entry;
            }
        };
        entry.stage = Stage::Finished(end);
        entry.bytes = reported.bytes;
        entry
    }

    /// Takes over what else is asked of it under the same version. Whoever rests, because no mirror has the image, need not wait if it
    /// may come from elsewhere.
    pub fn renew(&mut self, task: Task) {
        if self.task.sources != task.sources && matches!(self.stage, Stage::Resting { .. }) {
            self.stage = Stage::QUEUED;
        }
        self.task = task;
    }

    /// Forgets how it ended, so that it is pulled again under its version.
    pub fn begin_again(&mut self, stage: Stage) {
        let new = Self::new(self.task.clone());
        *self = Self { stage, loss: self.loss, has_retried: self.has_retried, ..new };
    }

    /// How long the task has been at work.
    pub fn elapsed(&self, now: Moment) -> Duration {
        let Course { begun, spent, .. } = self.course;
        let present = begun.map_or(Duration::ZERO, |begun| now.elapsed.saturating_sub(begun));
        present.saturating_add(spent)
    }

    /// When its time is used up, if that ever happens.
    pub fn deadline(&self) -> Option<Duration> {
        let left = self.task.timeline.deadline?.saturating_sub(self.course.spent);
        Some(self.course.begun?.saturating_add(left))
    }

    pub fn succeed(&mut self, image: Held, results: Option<Vec<OwnerResult>>, now: Moment) {
        self.loss.at = None;
        if let Some(bytes) = &mut self.bytes {
            bytes.done = bytes.total;
        }
        let (at, image_id, digest) = (stamp(now.wall), Some(image.id), image.digest);
        self.finish(End::Succeeded { at, image_id, digest, results }, now);
    }

    /// Gives the task up for what its last failure was.
    pub fn give_up(&mut self, now: Moment) {
        let failure = std::mem::take(&mut self.last_failure);
        self.finish(End::Failed { at: stamp(now.wall), failure }, now);
    }

    fn finish(&mut self, end: End, now: Moment) {
        self.stage = Stage::Finished(end);
        // A task can fail before its first attempt; clients expect both times.
        self.course.started_at.get_or_insert(stamp(now.wall));
    }

    pub fn phase(&self) -> Phase {
        match self.stage {
            Stage::Finished(End::Succeeded { .. }) => Phase::Succeeded,
            Stage::Finished(End::Failed { .. }) => Phase::Failed,
            _ if self.course.started_at.is_some() => Phase::Pulling,
            _ => Phase::Waiting,
        }
    }

    pub fn state(&self) -> TaskState {
        let (completed_at, class) = match &self.stage {
            Stage::Finished(End::Succeeded { at, .. }) => (Some(*at), None),
            Stage::Finished(End::Failed { at, failure }) => (Some(*at), failure.class),
            _ if self.is_arriving() => (None, None),
            _ => (None, self.last_failure.class),
        };
        let (image_id, digest, results) = match self.stage.clone() {
            Stage::Finished(End::Succeeded { image_id, digest, results, .. }) => (image_id, digest, results),
            _ => (None, None, None),
        };
        TaskState {
            key: self.task.key.clone(),
            version: self.task.version,
            phase: self.phase(),
            percent: self.percent(),
            bytes: self.bytes,
            started_at: self.course.started_at,
            completed_at,
            image_id,
            digest,
            note: self.note(),
            class,
            failed_attempts: self.failures,
            interruptions: self.doubt.interruptions,
            lost_at: self.loss.at,
            results,
        }
    }

    /// What is said of it: how it failed, if it did, and otherwise why it waits.
    fn note(&self) -> Option<Note> {
        match &self.stage {
            Stage::Finished(End::Succeeded { .. }) => None,
            Stage::Finished(End::Failed { failure, .. }) => failure.note.clone(),
            // The bytes of an attempt that has ended say nothing about the next one.
            Stage::Attempting { .. } | Stage::Confirming { .. }
                if self.bytes.is_some_and(Bytes::are_complete) =>
            {
                Some(Note::Unpacking)
            }
            _ if self.is_arriving() => None,
            _ if self.failures > 0 || self.unserved > 0 => self.last_failure.note.clone(),
            Stage::Queued { wait, .. } | Stage::Resting { wait, .. } => wait.clone().map(Note::Wait),
            Stage::Attempting { .. } | Stage::Confirming { .. } => None,
        }
    }

    /// Whether the attempt that runs has brought anything. Then it is better off than the one that failed before it, and whoever
    /// relies on the image need not look for another way.
    fn is_arriving(&self) -> bool {
        let has_more = |bytes: Bytes| self.found.is_some_and(|found| bytes.done > found);
        self.stage.attempt().is_some() && self.bytes.is_some_and(has_more)
    }

    /// Percent of the bytes, at most 99 until the pull has ended.
    fn percent(&self) -> u8 {
        match (self.phase(), self.bytes) {
            (Phase::Succeeded, _) => 100,
            (Phase::Pulling, Some(bytes)) if bytes.total > 0 => {
                u8::try_from((u128::from(bytes.done) * 100 / u128::from(bytes.total)).min(99)).unwrap_or(99)
            }
            _ => 0,
        }
    }
}

impl Course {
    /// Counts on from what an earlier run of the agent had begun.
    fn resume(&mut self, now: Moment) {
        let Some(started) = self.started_at else { return };
        // A beginning in the future is a clock that jumped; it then counts from here.
        self.spent = Duration::try_from(now.wall.duration_since(started)).unwrap_or_default();
        self.begun = Some(now.elapsed);
    }
}
