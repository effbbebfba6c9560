//! BroadcastJob: one pod on every matching node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CompletionPolicy;
use crate::unknown::Unknown;

/// The default parallelism: every node at once.
pub const UNLIMITED_PARALLELISM: i32 = i32::MAX;

/// Which pod runs on every matching node, how many at a time, and when the job ends.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "BroadcastJob",
    plural = "broadcastjobs",
    shortname = "bcj",
    namespaced,
    status = "BroadcastJobStatus",
    derive = "PartialEq",
    doc = "BroadcastJob runs one pod to completion on every matching node, also on nodes that join later.",
    printcolumn(
        name = "Desired",
        type_ = "integer",
        description = "Nodes that should run the pod.",
        json_path = ".status.desired"
    ),
    printcolumn(
        name = "Active",
        type_ = "integer",
        description = "Pods that are running.",
        json_path = ".status.active"
    ),
    printcolumn(
        name = "Succeeded",
        type_ = "integer",
        description = "Pods that succeeded.",
        json_path = ".status.succeeded"
    ),
    printcolumn(
        name = "Failed",
        type_ = "integer",
        description = "Pods that failed.",
        json_path = ".status.failed"
    ),
    printcolumn(
        name = "AGE",
        type_ = "date",
        description = "Time since the job was created.",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobSpec {
    /// How many pods may run at the same time: a number such as 10, or a percentage of the matching nodes such
    /// as `25%`, rounded up. Defaults to 2147483647, which means all at once.
    #[serde(default = "unlimited")]
    pub parallelism: IntOrString,
    /// The pod to run on every matching node. Its restartPolicy is `Never` or `OnFailure`.
    #[schemars(schema_with = "super::pod_template::schema")]
    pub template: Value,
    /// When the job ends, and what happens then.
    #[serde(default)]
    pub completion_policy: CompletionPolicy,
    /// `true` starts no further pods; those that run go on. Defaults to false.
    #[serde(default)]
    pub paused: bool,
    /// What happens when a pod fails.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
}

/// What happens when a pod fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FailurePolicy {
    /// `FailFast` ends the job as failed, `Continue` goes on with the other nodes, `Pause` pauses the job until
    /// it is resumed by hand. Defaults to `FailFast`.
    #[serde(rename = "type")]
    pub type_: FailurePolicyType,
    /// How many times the containers of a pod with restartPolicy `OnFailure` may restart before the pod counts
    /// as failed. Defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub restart_limit: Option<i32>,
}

/// What happens when a pod fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicyType {
    /// The other nodes go on.
    Continue,
    /// The job ends as failed, and running pods are deleted.
    #[default]
    FailFast,
    /// No further pods start until the job is resumed.
    Pause,
}

/// The progress of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BroadcastJobStatus {
    /// What is known about the job as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub conditions: Option<Vec<BroadcastJobCondition>>,
    /// When the controller first handled the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Number of pods that are running.
    #[schemars(extend("default" = null))]
    pub active: i32,
    /// Number of pods that succeeded.
    #[schemars(extend("default" = null))]
    pub succeeded: i32,
    /// Number of pods that failed.
    #[schemars(extend("default" = null))]
    pub failed: i32,
    /// Number of nodes that should run the pod.
    #[schemars(extend("default" = null))]
    pub desired: i32,
    /// With failure policy `Pause`: number of failed pods for which the job was paused already, so that it goes on
    /// when it is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_failures: Option<i32>,
    /// `running`, `paused`, `completed` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<BroadcastJobPhase>,
    /// What a newer version has written besides.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Unknown,
}

/// The phase of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BroadcastJobPhase {
    /// Pods are started and run.
    Running,
    /// No further pods are started.
    Paused,
    /// Every node's pod has ended.
    Completed,
    /// The job was ended by its failure policy or deadline.
    Failed,
}

/// What is known about the job as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobCondition {
    /// `Complete`, `Failed`, or what hinders the job.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[schemars(length(max = 16))]
    pub status: String,
    /// When the condition was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// When the status last flipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
    /// What a newer version has written besides.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Unknown,
}

/// The condition types that end a BroadcastJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastJobConditionType {
    /// The pods on all matching nodes have ended.
    Complete,
    /// The failure policy or the deadline ended the job.
    Failed,
}

impl BroadcastJobConditionType {
    /// The type as written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

fn unlimited() -> IntOrString {
    IntOrString::Int(UNLIMITED_PARALLELISM)
}
