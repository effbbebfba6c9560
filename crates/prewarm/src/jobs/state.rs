//! The state of a job in one word.

use prewarm_api::kruise::{CompletionType, ImagePullJob};
use prewarm_plan::cluster::image_pull_job::explain::reported_hold;
use prewarm_plan::demand::selection::parallelism;
use serde::Serialize;

use super::Job;
use crate::show::Tone;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// No controller has looked at it yet.
    New,
    /// It waits for something, such as its Secrets.
    Waiting,
    /// Its parallelism is 0.
    Paused,
    /// Nodes are pulling, or will.
    Running,
    /// It never ends, and every node has the image for now.
    Settled,
    /// It is over, and every node has the image.
    Done,
    /// It is over, and some node does not have the image.
    Failed,
    /// It is being deleted.
    Deleting,
}

impl State {
    pub fn of(job: &Job) -> Self {
        if job.metadata().deletion_timestamp.is_some() {
            return Self::Deleting;
        }
        match job.ended_at() {
            Some(_) if job.status().failed > 0 || has_failed_images(job) => return Self::Failed,
            Some(_) => return Self::Done,
            None => {}
        }
        let states: Vec<Self> = job.parts().iter().map(|part| part_state(part)).collect();
        // A list shows the most active state of its parts.
        let rank = [Self::Running, Self::Waiting, Self::Paused, Self::Failed, Self::Settled, Self::Done];
        rank.into_iter().find(|state| states.contains(state)).unwrap_or(Self::New)
    }

    pub fn tone(self) -> Tone {
        match self {
            Self::Done | Self::Settled => Tone::Good,
            Self::Running => Tone::Busy,
            Self::Failed => Tone::Bad,
            Self::New | Self::Waiting | Self::Paused | Self::Deleting => Tone::Plain,
        }
    }
}

fn has_failed_images(job: &Job) -> bool {
    let Job::List(list, _) = job else { return false };
    let failed = list.status.as_ref().and_then(|status| status.failed_image_statuses.as_ref());
    failed.is_some_and(|failed| !failed.is_empty())
}

fn part_state(job: &ImagePullJob) -> State {
    let Some(status) = &job.status else { return State::New };
    let is_done = status.succeeded.saturating_add(status.failed) >= status.desired;
    match status.completion_time {
        Some(_) if status.failed > 0 => State::Failed,
        Some(_) => State::Done,
        None if reported_hold(job).is_some() => State::Waiting,
        None if is_done && job.spec.completion_policy.type_ == CompletionType::Never => State::Settled,
        None if parallelism(job.spec.parallelism.as_ref()) == 0 && status.active == 0 => State::Paused,
        None => State::Running,
    }
}
