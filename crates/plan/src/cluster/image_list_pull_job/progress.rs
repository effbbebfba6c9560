//! How far a child is, as far as its list counts it (kruise R74).

use prewarm_api::kruise::{ImagePullJob, ImagePullJobStatus};

/// A child of a list.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// The job.
    pub job: &'a ImagePullJob,
    /// How far it is at this moment: its own status is written less often than its list looks at it.
    pub progress: Progress,
}

/// How far a child is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a list counts each of them by itself")]
pub struct Progress {
    /// Whether nodes are pulling.
    pub is_active: bool,
    /// Whether every node has ended.
    pub is_completed: bool,
    /// Whether every node has the image.
    pub is_succeeded: bool,
    /// Whether a node could not pull.
    pub has_failed: bool,
}

impl Progress {
    /// By the status. A finished child never changes, so it counts even if its numbers do not add up.
    pub fn of_status(status: &ImagePullJobStatus) -> Self {
        let ImagePullJobStatus { desired, active, succeeded, failed, .. } = *status;
        let has_ended = status.completion_time.is_some() || failed.saturating_add(succeeded) == desired;
        let is_completed = status.start_time.is_some() && has_ended;
        Self {
            is_active: active > 0,
            is_completed,
            is_succeeded: is_completed && succeeded == desired,
            has_failed: failed > 0,
        }
    }
}

impl<'a> From<&'a ImagePullJob> for Child<'a> {
    fn from(job: &'a ImagePullJob) -> Self {
        Self { job, progress: job.status.as_ref().map(Progress::of_status).unwrap_or_default() }
    }
}
