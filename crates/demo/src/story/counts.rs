//! The progress of a job in numbers.

use std::fmt;

use prewarm_api::kruise::ImagePullJob;

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
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { desired, active, succeeded, failed } = self;
        write!(formatter, "{succeeded} of {desired} nodes have it, {active} pulling")?;
        if *failed > 0 { write!(formatter, ", {failed} failed") } else { Ok(()) }
    }
}
