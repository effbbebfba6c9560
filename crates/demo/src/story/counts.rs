//! The progress of a job or of an ImagePrefetch in numbers.

use std::fmt;

use prewarm_api::kruise::ImagePullJob;
use prewarm_api::ofen::ImagePrefetch;

/// How many nodes of a job are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All nodes of the job.
    pub desired: i32,
    /// The nodes that pull.
    pub active: i32,
    /// The nodes that have the image.
    pub succeeded: i32,
    /// The nodes that could not pull it.
    pub failed: i32,
}

impl Counts {
    pub fn of(job: &ImagePullJob) -> Self {
        let Some(status) = &job.status else { return Self::default() };
        let (desired, active) = (status.desired, status.active);
        Self { desired, active, succeeded: status.succeeded, failed: status.failed }
    }

    /// The status of an ImagePrefetch counts nodes that fail, and those whose turn has not come, as pulling, too.
    pub fn of_prefetch(prefetch: &ImagePrefetch) -> Self {
        let Some(status) = &prefetch.status else { return Self::default() };
        let failed = status.image_pull_failed_nodes;
        let active = status.image_pulling_nodes.saturating_sub(failed).max(0);
        Self { desired: status.desired_nodes, active, succeeded: status.image_pulled_nodes, failed }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { desired, active, succeeded, failed } = self;
        write!(formatter, "{succeeded} of {desired} nodes have it, {active} pulling")?;
        if *failed > 0 { write!(formatter, ", {failed} failed") } else { Ok(()) }
    }
}
