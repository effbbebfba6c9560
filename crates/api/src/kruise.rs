//! The kinds of `apps.kruise.io`, served as v1alpha1 and v1beta1 with one schema.
//!
//! Every doc comment in here is what `kubectl explain` prints, so it is written for a cluster operator.

mod advanced_cron_job;
mod broadcast_job;
mod failure;
mod image_list_pull_job;
mod image_pull_job;
mod node_image;
mod pod_template;
mod pull_template;

pub use advanced_cron_job::{
    AdvancedCronJob, AdvancedCronJobSpec, AdvancedCronJobStatus, BroadcastJobTemplate, ConcurrencyPolicy,
    CronTemplate, ImageListPullJobTemplate, SkipReason, SkippedRuns, TemplateKind, TemplateMetadata,
};
pub use broadcast_job::{
    BroadcastJob, BroadcastJobCondition, BroadcastJobConditionType, BroadcastJobPhase, BroadcastJobSpec,
    BroadcastJobStatus, FailurePolicy, FailurePolicyType, UNLIMITED_PARALLELISM,
};
pub use failure::FailureClass;
pub use image_list_pull_job::{
    FailedImageStatus, ImageListPullJob, ImageListPullJobSpec, ImageListPullJobStatus,
};
pub use image_pull_job::{ImagePullJob, ImagePullJobSpec, ImagePullJobStatus};
pub use node_image::{
    FirstSyncStatus, ImageFilesystem, ImageSpec, ImageStatus, ImageTagPullPolicy, ImageTagSpec,
    ImageTagStatus, NodeImage, NodeImageSpec, NodeImageStatus, OwnerResult, PullPhase, SecretReference,
    SyncResult,
};
pub use pull_template::{
    CompletionPolicy, CompletionType, ImagePullPolicy, MAX_BACKOFF_LIMIT, MAX_TIMEOUT_SECONDS, NodeSelector,
    PullPolicy, SandboxConfig,
};

/// The API group of these kinds.
pub const GROUP: &str = "apps.kruise.io";
/// API group and stored version of these kinds.
pub const API_VERSION: &str = "apps.kruise.io/v1beta1";
/// The kind of an ImagePullJob, as references to it have it.
pub const IMAGE_PULL_JOB: &str = "ImagePullJob";
/// The kind of the jobs for several images.
pub const IMAGE_LIST_PULL_JOB: &str = "ImageListPullJob";
/// The kind of the jobs that run a pod on every node.
pub const BROADCAST_JOB: &str = "BroadcastJob";
/// The kind of the jobs that create others on a schedule.
pub const ADVANCED_CRON_JOB: &str = "AdvancedCronJob";
