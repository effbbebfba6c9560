//! NodeImage: what one node has to pull, and its progress.
//!
//! It is written by machines thousands of times an hour, so its schema keeps to cheap checks: bounds and
//! enums, one rule on the map's keys, and no list of type map.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FailureClass, ImagePullPolicy, SandboxConfig};
use crate::ofen::RegistryPolicy;
use crate::reference_object::ObjectReference;

/// What one node has to pull.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "NodeImage",
    plural = "nodeimages",
    status = "NodeImageStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "NodeImage says what one node pulls and how far it is. It has the node's name and labels. Write one by \
           hand only to pull an image on one definite node; for many nodes use ImagePullJob.",
    printcolumn(
        name = "DESIRED",
        type_ = "integer",
        description = "Tags that the node has to pull.",
        json_path = ".status.desired"
    ),
    printcolumn(
        name = "PULLING",
        type_ = "integer",
        description = "Tags that are being pulled.",
        json_path = ".status.pulling"
    ),
    printcolumn(
        name = "SUCCEED",
        type_ = "integer",
        description = "Tags that are on the node.",
        json_path = ".status.succeeded"
    ),
    printcolumn(
        name = "FAILED",
        type_ = "integer",
        description = "Tags that could not be pulled.",
        json_path = ".status.failed"
    ),
    printcolumn(
        name = "AGE",
        type_ = "date",
        description = "Time since the object was created.",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodeImageSpec {
    /// The images to pull, by their short name without tag, for example `ubuntu` or
    /// `registry.example:5000/team/app`. At most 256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub images: BTreeMap<String, ImageSpec>,
}

/// The tags of one image to pull.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSpec {
    /// Secrets with the registry's credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub pull_secrets: Option<Vec<SecretReference>>,
    /// The tags or digests to pull, each once, sorted.
    #[schemars(length(max = 1024))]
    pub tags: Vec<ImageTagSpec>,
    /// Labels and annotations for the container runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_config: Option<SandboxConfig>,
}

/// A Secret with registry credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Namespace of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Name of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// `batch` for a copy that the controller shares between jobs; empty for a Secret named by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub mode: Option<String>,
}

/// One tag or digest to pull.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagSpec {
    /// The tag, for example `latest`, or the whole digest, for example `sha256:…`.
    #[schemars(length(min = 1, max = 256))]
    pub tag: String,
    /// When the pull was asked for. Filled by the controller if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// How long and how often to try, and when the entry is removed again.
    pub pull_policy: ImageTagPullPolicy,
    /// The jobs that want this tag. Empty for an entry written by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub owner_references: Option<Vec<ObjectReference>>,
    /// Counts the rounds: a higher version means pull again. Defaults to 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("default" = null))]
    pub version: i64,
    /// `IfNotPresent` pulls nothing if the node has the image; `Always` asks the registry. Defaults to
    /// `IfNotPresent`.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
    /// `true` if a person wrote this entry before a job joined it: it then stays when the last job leaves. Set by the
    /// controller. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = null))]
    pub manual: bool,
    /// When the controller last asked for the image again because the node had lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<Time>,
    /// `true` if a pull Secret of the job was missing when this version was asked for: if it fails for that, it is tried
    /// once more when the Secret is there. Set by the controller. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = null))]
    pub secret_missing: bool,
    /// `MirrorOnly` fetches the image from the mirrors that the node is configured with, and never asks the registry itself.
    /// No default: as the container runtime is configured. Set by the controller while all who want the tag ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_policy: Option<RegistryPolicy>,
    /// With `MirrorOnly`, the digest that this tag has to stand for, as the first node resolved it. No default: whatever the
    /// mirrors say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub digest: Option<String>,
}

/// How long and how often to try one tag, and when its entry is removed again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagPullPolicy {
    /// Seconds after which one attempt is given up. Defaults to 600.
    #[serde(default = "default_timeout_seconds")]
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// How many times a failed attempt is repeated; 0 means a single attempt. Defaults to 3.
    #[serde(default = "default_backoff_limit")]
    #[schemars(range(min = 0))]
    pub backoff_limit: i32,
    /// Seconds after the pull has succeeded or failed at which this entry is removed. Required.
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: i32,
    /// Seconds all attempts together may take. No default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,
}

/// The progress of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeImageStatus {
    /// Number of tags that the node has to pull.
    pub desired: i32,
    /// Number of tags that are on the node.
    #[serde(default)]
    pub succeeded: i32,
    /// Number of tags that could not be pulled.
    #[serde(default)]
    pub failed: i32,
    /// Number of tags that are being pulled.
    #[serde(default)]
    pub pulling: i32,
    /// Number of tags that wait to be pulled.
    #[serde(default)]
    pub waiting: i32,
    /// The progress of each image, by its short name without tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 512))]
    pub image_statuses: Option<BTreeMap<String, ImageStatus>>,
    /// How the first pass over all images of this node ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_sync_status: Option<FirstSyncStatus>,
    /// Space on the filesystem that holds the node's images, at the time of this report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_filesystem: Option<ImageFilesystem>,
    /// The agent's pod that wrote this report. Two that alternate are two agents on one node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub reported_by: Option<String>,
}

/// Space on the filesystem that holds the node's images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageFilesystem {
    /// Number of free bytes.
    #[schemars(range(min = 0))]
    pub free_bytes: i64,
    /// Size of the filesystem in bytes.
    #[schemars(range(min = 0))]
    pub capacity_bytes: i64,
}

/// The progress of the tags of one image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// The progress of each tag.
    #[schemars(length(max = 2048))]
    pub tags: Vec<ImageTagStatus>,
}

/// The phase of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPhase {
    /// It waits to be pulled.
    #[default]
    Waiting,
    /// It is being pulled.
    Pulling,
    /// It is on the node.
    Succeeded,
    /// It could not be pulled.
    Failed,
}

/// The progress of one tag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagStatus {
    /// The tag or digest, as in the spec.
    #[schemars(length(max = 256))]
    pub tag: String,
    /// `Waiting`, `Pulling`, `Succeeded` or `Failed`.
    pub phase: PullPhase,
    /// Percent of the image that has arrived, 0 to 100.
    #[serde(default, skip_serializing_if = "is_zero_i32")]
    #[schemars(range(min = 0, max = 100), extend("default" = null))]
    pub progress: i32,
    /// When the pull began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the pull ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The version of the spec entry that this is the state of.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("default" = null))]
    pub version: i64,
    /// The image as the runtime knows it: its name, `@` and its ID.
    #[serde(rename = "imageID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image_id: Option<String>,
    /// The digest that the tag stood for when it was pulled, if the runtime tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub digest: Option<String>,
    /// Why it waits or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
    /// The class of the last failure: `NotFound`, `NoPlatform`, `InvalidReference`, `Unauthorized`,
    /// `RateLimited`, `Unreachable`, `Tls`, `NoSpace`, `TimedOut`, `Corrupt`, `RuntimeCrash` or
    /// `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = 63))]
    pub failure_class: Option<FailureClass>,
    /// How many attempts of this version have failed.
    #[serde(default, skip_serializing_if = "is_zero_i32")]
    #[schemars(range(min = 0), extend("default" = null))]
    pub failed_attempts: i32,
    /// How many times the container runtime stopped while it pulled this version.
    #[serde(default, skip_serializing_if = "is_zero_i32")]
    #[schemars(range(min = 0), extend("default" = null))]
    pub interruptions: i32,
    /// Bytes of the image that have arrived, if the runtime reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes_done: Option<i64>,
    /// Size of the image in bytes, if the runtime reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes_total: Option<i64>,
    /// When the image was found to be missing from the node after it had been pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<Time>,
    /// For which jobs the result counts, if the pull took the credentials of one of them: the jobs that wanted the tag when
    /// it began. A job with a `failureClass` was refused with its own credentials; for a job that is missing here and has
    /// the policy `Always`, the tag is pulled again. Absent if the result counts for every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub owner_results: Option<Vec<OwnerResult>>,
}

/// How a pull ended for one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerResult {
    /// UID of the job.
    #[schemars(length(max = 128))]
    pub uid: String,
    /// The class of the failure for this job. Absent if the result counts for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = 63))]
    pub failure_class: Option<FailureClass>,
    /// Why the result does not count for this job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
}

/// How a first pass ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SyncResult {
    /// Every image was pulled.
    #[default]
    Succeeded,
    /// At least one image could not be pulled.
    Failed,
}

/// How the first pass over all images of a node ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstSyncStatus {
    /// When the pass ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<Time>,
    /// `Succeeded` or `Failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SyncResult>,
    /// What failed, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}

fn default_timeout_seconds() -> i32 {
    super::PullPolicy::default().timeout_seconds
}

fn default_backoff_limit() -> i32 {
    super::PullPolicy::default().backoff_limit
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero_i32(number: &i32) -> bool {
    *number == 0
}
