//! The kinds of objects that the controller watches.

/// A kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Node.
    Node,
    /// NodeImage.
    NodeImage,
    /// ImagePullJob.
    ImagePullJob,
    /// ImageListPullJob.
    ImageListPullJob,
    /// Secret, in the config namespace.
    Secret,
    /// Pod, in namespaces with a job that selects by pods.
    Pod,
    /// BroadcastJob.
    BroadcastJob,
    /// Pod of a BroadcastJob.
    BroadcastPod,
    /// AdvancedCronJob.
    AdvancedCronJob,
    /// Job, in namespaces with a cron job that makes some.
    Job,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Node,
        Self::NodeImage,
        Self::ImagePullJob,
        Self::ImageListPullJob,
        Self::Secret,
        Self::Pod,
        Self::BroadcastJob,
        Self::BroadcastPod,
        Self::AdvancedCronJob,
        Self::Job,
    ];
    /// The kinds that have to be known before anything is decided: on a part of the cluster a job would look as if it had
    /// no node, and an owner as if it were gone.
    pub const NEEDED: [Self; 5] =
        [Self::Node, Self::NodeImage, Self::ImagePullJob, Self::ImageListPullJob, Self::Secret];
    /// The kinds that have to be known besides before anything is decided about BroadcastJobs. Whoever does not use them
    /// need not grant the rights to them.
    pub const NEEDED_FOR_BROADCASTS: [Self; 2] = [Self::BroadcastJob, Self::BroadcastPod];

    /// Whether everything else works without its definition.
    pub fn can_be_left_out(self) -> bool {
        matches!(
            self,
            Self::ImagePullJob | Self::ImageListPullJob | Self::BroadcastJob | Self::AdvancedCronJob
        )
    }

    /// A short fixed word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::NodeImage => "node_image",
            Self::ImagePullJob => "image_pull_job",
            Self::ImageListPullJob => "image_list_pull_job",
            Self::Secret => "secret",
            Self::Pod => "pod",
            Self::BroadcastJob => "broadcast_job",
            Self::BroadcastPod => "broadcast_pod",
            Self::AdvancedCronJob => "advanced_cron_job",
            Self::Job => "job",
        }
    }
}
