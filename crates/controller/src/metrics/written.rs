//! What the controller writes, and what becomes of it, in the words of its metrics.

use prewarm_plan::words;

words! {
    /// What is written.
    pub enum Written {
        /// A NodeImage's metadata or spec.
        NodeImage = "node_image",
        /// A verdict in a NodeImage's status.
        NodeImageStatus = "node_image_status",
        /// An ImagePullJob's finalizer, or its end.
        ImagePullJob = "image_pull_job",
        /// An ImagePullJob's status.
        ImagePullJobStatus = "image_pull_job_status",
        /// An ImageListPullJob's label, or its end.
        ImageListPullJob = "image_list_pull_job",
        /// An ImageListPullJob's status.
        ImageListPullJobStatus = "image_list_pull_job_status",
        /// A child of an ImageListPullJob.
        Child = "child",
        /// A BroadcastJob's pause, or its end.
        BroadcastJob = "broadcast_job",
        /// A BroadcastJob's status.
        BroadcastJobStatus = "broadcast_job_status",
        /// A pod of a BroadcastJob.
        Pod = "pod",
        /// An AdvancedCronJob's status.
        AdvancedCronJobStatus = "advanced_cron_job_status",
        /// A run of an AdvancedCronJob.
        Run = "run",
        /// The copy of a Secret.
        Secret = "secret",
        /// An event.
        Event = "event",
        /// The Lease.
        Lease = "lease",
    }
}

words! {
    /// What became of a write.
    pub enum WriteResult {
        /// It was taken.
        Ok = "ok",
        /// The object was another one than thought.
        Conflict = "conflict",
        /// It will never be taken.
        Refused = "refused",
        /// It failed for reasons outside.
        Failed = "failed",
    }
}
