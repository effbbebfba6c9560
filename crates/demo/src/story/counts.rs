//! How far a job is, in numbers.

use std::fmt;

use prewarm_api::kruise::ImagePullJob;

/// How many nodes of a job are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub desired: i32,
    /// Those that pull.
    pub active: i32,
    /// Those that have the image.
    pub succeeded: i32,
    /// Those that could not.
    pub failed: i32,
}

impl Counts {
    /// Those of a job.
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
