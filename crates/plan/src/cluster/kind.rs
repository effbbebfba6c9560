//! The kinds of objects that the controller watches.

use crate::words;

words! {
    /// A kind that is watched.
    pub enum Kind {
        /// Node.
        Node = "node",
        /// NodeImage.
        NodeImage = "node_image",
        /// ImagePullJob.
        ImagePullJob = "image_pull_job",
        /// ImageListPullJob.
        ImageListPullJob = "image_list_pull_job",
        /// Secret, in the config namespace.
        Secret = "secret",
        /// Pod, in namespaces with a job that selects by pods.
        Pod = "pod",
        /// BroadcastJob.
        BroadcastJob = "broadcast_job",
        /// Pod of a BroadcastJob.
        BroadcastPod = "broadcast_pod",
        /// AdvancedCronJob.
        AdvancedCronJob = "advanced_cron_job",
        /// Job, in namespaces with a cron job that makes some.
        Job = "job",
    }
}

impl Kind {
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
}
