//! What the controller writes, and what becomes of it, in the words of its metrics.

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A NodeImage's metadata or spec.
    NodeImage,
    /// A verdict in a NodeImage's status.
    NodeImageStatus,
    /// An ImagePullJob's finalizer, or its end.
    ImagePullJob,
    /// An ImagePullJob's status.
    ImagePullJobStatus,
    /// An ImageListPullJob's label, or its end.
    ImageListPullJob,
    /// An ImageListPullJob's status.
    ImageListPullJobStatus,
    /// A child of an ImageListPullJob.
    Child,
    /// A BroadcastJob's pause, or its end.
    BroadcastJob,
    /// A BroadcastJob's status.
    BroadcastJobStatus,
    /// A pod of a BroadcastJob.
    Pod,
    /// An AdvancedCronJob's status.
    AdvancedCronJobStatus,
    /// A run of an AdvancedCronJob.
    Run,
    /// The copy of a Secret.
    Secret,
    /// An event.
    Event,
    /// The Lease.
    Lease,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It was taken.
    Ok,
    /// The object was another one than thought.
    Conflict,
    /// It will never be taken.
    Refused,
    /// It failed for reasons outside.
    Failed,
}

impl Written {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::NodeImage,
        Self::NodeImageStatus,
        Self::ImagePullJob,
        Self::ImagePullJobStatus,
        Self::ImageListPullJob,
        Self::ImageListPullJobStatus,
        Self::Child,
        Self::BroadcastJob,
        Self::BroadcastJobStatus,
        Self::Pod,
        Self::AdvancedCronJobStatus,
        Self::Run,
        Self::Secret,
        Self::Event,
        Self::Lease,
    ];

    /// A short fixed word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeImage => "node_image",
            Self::NodeImageStatus => "node_image_status",
            Self::ImagePullJob => "image_pull_job",
            Self::ImagePullJobStatus => "image_pull_job_status",
            Self::ImageListPullJob => "image_list_pull_job",
            Self::ImageListPullJobStatus => "image_list_pull_job_status",
            Self::Child => "child",
            Self::BroadcastJob => "broadcast_job",
            Self::BroadcastJobStatus => "broadcast_job_status",
            Self::Pod => "pod",
            Self::AdvancedCronJobStatus => "advanced_cron_job_status",
            Self::Run => "run",
            Self::Secret => "secret",
            Self::Event => "event",
            Self::Lease => "lease",
        }
    }
}

impl WriteResult {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Conflict, Self::Refused, Self::Failed];

    /// A short fixed word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
