//! One task on its way: queued, attempted, resting after a failure, finished. It knows what to report of itself.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FailureClass, ImageTagStatus, PullPhase};
use prewarm_api::names::message::NODE_SILENT;

use super::Moment;
use super::attempt::Timeline;
use super::task::Task;

/// The message of a tag whose image has arrived and is not there yet.
pub(super) const UNPACKING: &str = "unpacking: all of it has arrived";

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It may be attempted as soon as there is a place.
    Queued(Look),
    /// An attempt runs; its number tells a late answer of a cancelled attempt from that of the present one.
    Attempting { attempt: u64 },
    /// The runtime has pulled it, and whether it is there is being asked. That takes no place from others.
    Confirming { attempt: u64 },
    /// It is left alone until then.
    Resting { until: Duration },
    /// It ended, well or badly.
    Finished,
}

/// What is known of whether the node has a queued image already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing, and nobody was asked.
    Unasked,
    /// The runtime is being asked.
    Asked,
    /// It did not have it then.
    Absent { at: Duration },
    /// The runtime could not say. The attempt asks again, and its failure is reported.
    Unclear,
}

impl Stage {
    /// Queued, with nothing known.
    pub const QUEUED: Self = Self::Queued(Look::Unasked);

    pub fn is_queued(self) -> bool {
        matches!(self, Self::Queued(_))
    }

    /// The attempt that runs, if one does.
    pub fn attempt(self) -> Option<u64> {
        match self {
            Self::Attempting { attempt } | Self::Confirming { attempt } => Some(attempt),
            Self::Queued(_) | Self::Resting { .. } | Self::Finished => None,
        }
    }
}

/// How far a pull is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// What has arrived.
    pub done: u64,
    /// What the image has in all.
    pub total: u64,
    /// Everything has arrived and is being unpacked.
    pub is_unpacking: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub task: Task,
    pub stage: Stage,
    pub failures: u32,
    /// When this run of the agent was first asked for it; unknown if it is pulled again by itself.
    pub asked_at: Option<Duration>,
    /// When its first attempt began, in the time that never jumps.
    pub begun: Option<Duration>,
    /// How long it had been at work before, under an earlier run of the agent.
    pub spent: Duration,
    /// The wait reason of a queued task, or the last failure.
    pub message: Option<String>,
    pub class: Option<FailureClass>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub is_success: bool,
    pub image_id: Option<String>,
    pub bytes: Option<Bytes>,
    pub lost_at: Option<Timestamp>,
    /// How often the image was lost; a fight with a garbage collector is given up step by step.
    pub losses: u32,
    /// The credentials that the last failure was met with, and whether a change of them was used up.
    pub fingerprint: Option<u64>,
    pub has_retried: bool,
}

impl Entry {
    pub fn new(task: Task) -> Self {
        Self {
            task,
            stage: Stage::QUEUED,
            failures: 0,
            asked_at: None,
            begun: None,
            spent: Duration::ZERO,
            message: None,
            class: None,
            started_at: None,
            completed_at: None,
            is_success: false,
            image_id: None,
            bytes: None,
            lost_at: None,
            losses: 0,
            fingerprint: None,
            has_retried: false,
        }
    }

    /// Goes on where an earlier run of the agent stopped (kruise D6): what is finished stays so, what was begun keeps
    /// its beginning and its failures. That the controller heard nothing is no end: the node gives its answer late.
    pub fn resumed(task: Task, reported: &ImageTagStatus, now: Moment) -> Self {
        let mut entry = Self::new(task);
        if is_verdict_on_silence(reported) {
            return entry;
        }
        entry.failures = u32::try_from(reported.failed_attempts).unwrap_or(0);
        entry.message = reported.message.clone().filter(|message| message != UNPACKING);
        entry.class = reported.failure_class;
        entry.started_at = reported.start_time.as_ref().map(|time| time.0);
        entry.image_id.clone_from(&reported.image_id);
        entry.lost_at = reported.lost_at.as_ref().map(|time| time.0);
        if let (Some(at), PullPhase::Succeeded | PullPhase::Failed) =
            (&reported.completion_time, reported.phase)
        {
            entry.stage = Stage::Finished;
            entry.completed_at = Some(at.0);
            entry.is_success = reported.phase == PullPhase::Succeeded;
            entry.bytes = bytes_of(reported);
        } else if let Some(started) = entry.started_at {
            // A beginning in the future is a clock that jumped; it then counts from here.
            entry.spent = Duration::try_from(now.wall.duration_since(started)).unwrap_or_default();
            entry.begun = Some(now.elapsed);
        }
        entry
    }

    /// Forgets how it ended, so that it is pulled again under its version.
    pub fn begin_again(&mut self, stage: Stage) {
        let task = self.task.clone();
        let kept = (self.losses, self.lost_at, self.has_retried);
        *self = Self::new(task);
        (self.losses, self.lost_at, self.has_retried) = kept;
        self.stage = stage;
    }

    pub fn timeline(&self) -> Timeline {
        self.task.timeline
    }

    /// How long the task has been at work.
    pub fn elapsed(&self, now: Moment) -> Duration {
        let present = self.begun.map_or(Duration::ZERO, |begun| now.elapsed.saturating_sub(begun));
        present.saturating_add(self.spent)
    }

    /// When its time is used up, if that ever happens.
    pub fn deadline(&self) -> Option<Duration> {
        let left = self.timeline().deadline?.saturating_sub(self.spent);
        Some(self.begun?.saturating_add(left))
    }

    pub fn finish(&mut self, now: Moment) {
        self.stage = Stage::Finished;
        self.completed_at = Some(whole_seconds(now.wall));
        // A task can fail before its first attempt; clients expect both times.
        self.started_at.get_or_insert(whole_seconds(now.wall));
    }

    pub fn phase(&self) -> PullPhase {
        match self.stage {
            Stage::Finished if self.is_success => PullPhase::Succeeded,
            Stage::Finished => PullPhase::Failed,
            _ if self.started_at.is_some() => PullPhase::Pulling,
            _ => PullPhase::Waiting,
        }
    }

    pub fn status(&self) -> ImageTagStatus {
        let has_message = !(self.stage == Stage::Finished && self.is_success);
        let message = if self.is_unpacking() { Some(UNPACKING.to_owned()) } else { self.message.clone() };
        ImageTagStatus {
            tag: self.task.key.tag.clone(),
            phase: self.phase(),
            progress: self.progress(),
            start_time: self.started_at.map(Time),
            completion_time: self.completed_at.map(Time),
            version: self.task.version,
            image_id: self.image_id.clone(),
            message: message.filter(|_| has_message),
            failure_class: self.class.filter(|_| has_message),
            failed_attempts: i32::try_from(self.failures).unwrap_or(i32::MAX),
            bytes_done: self.bytes.map(|bytes| signed(bytes.done)),
            bytes_total: self.bytes.map(|bytes| signed(bytes.total)),
            lost_at: self.lost_at.map(Time),
        }
    }

    /// The bytes of an attempt that has ended say nothing about the next one.
    fn is_unpacking(&self) -> bool {
        self.stage.attempt().is_some() && self.bytes.is_some_and(|bytes| bytes.is_unpacking)
    }

    /// Percent of the bytes; the last one is only given away when the pull has ended.
    fn progress(&self) -> i32 {
        match (self.phase(), self.bytes) {
            (PullPhase::Succeeded, _) => 100,
            (PullPhase::Pulling, Some(bytes)) if bytes.total > 0 => {
                i32::try_from((u128::from(bytes.done) * 100 / u128::from(bytes.total)).min(99)).unwrap_or(99)
            }
            _ => 0,
        }
    }
}

/// Whether this is what the controller wrote while the node did not answer (kruise R16).
fn is_verdict_on_silence(reported: &ImageTagStatus) -> bool {
    reported.phase == PullPhase::Failed && reported.message.as_deref() == Some(NODE_SILENT)
}

fn bytes_of(status: &ImageTagStatus) -> Option<Bytes> {
    let (done, total) = (status.bytes_done?, status.bytes_total?);
    Some(Bytes {
        done: u64::try_from(done).unwrap_or(0),
        total: u64::try_from(total).unwrap_or(0),
        is_unpacking: false,
    })
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Kubernetes keeps times in whole seconds; anything finer would come back changed.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
