//! The pieces that ImagePullJob, ImageListPullJob and the image-list template of a cron share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::selector::LabelSelectorRequirement;

/// Whether an image that a node already has is pulled again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Ask the registry every time, so that a moved tag is brought up to date.
    Always,
    /// Skip nodes that have the image.
    #[default]
    IfNotPresent,
}

/// When a job is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CompletionType {
    /// The job ends when every node has succeeded or failed.
    #[default]
    Always,
    /// The job never ends: nodes that join are warmed too, and every node is refreshed once a day.
    Never,
}

/// The longest time of one attempt, in seconds: a day. An attempt that takes longer holds a place for nothing.
pub const MAX_TIMEOUT_SECONDS: i32 = 86_400;
/// The most repetitions of a failed attempt. With pauses of half a minute they take a day, however fast each one fails.
pub const MAX_BACKOFF_LIMIT: i32 = 1_000;

/// How long one pull may take and how often it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PullPolicy {
    /// Seconds after which one attempt to pull the image is given up, at most 86400. Defaults to 600.
    #[schemars(range(min = 0, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: i32,
    /// How many times a failed attempt is repeated before the node counts as failed, at most 1000; 0 means a single
    /// attempt. Defaults to 3.
    #[schemars(range(min = 0, max = MAX_BACKOFF_LIMIT))]
    pub backoff_limit: i32,
}

impl PullPolicy {
    /// The same policy within the bounds of its schema: a stored one may be from a time without them.
    #[must_use]
    pub fn bounded(&self) -> Self {
        Self {
            timeout_seconds: self.timeout_seconds.min(MAX_TIMEOUT_SECONDS),
            backoff_limit: self.backoff_limit.min(MAX_BACKOFF_LIMIT),
        }
    }
}

impl Default for PullPolicy {
    fn default() -> Self {
        Self { timeout_seconds: 600, backoff_limit: 3 }
    }
}

/// When the job ends, and what happens then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CompletionPolicy {
    /// `Always` ends the job when every node has succeeded or failed; `Never` keeps it running, warms nodes
    /// that join later and refreshes every node once a day. Defaults to `Always`.
    #[serde(rename = "type")]
    pub type_: CompletionType,
    /// Seconds the whole job may take; nodes that are not done by then count as failed. At least the pull
    /// timeout (pullPolicy.timeoutSeconds), and only for type `Always`. No default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after its end at which the job object is deleted; 0 deletes it at once. Only for type
    /// `Always`. No default: the job stays until it is deleted by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// Which nodes take part: by name, or by label, but not both. `{}` means every node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NodeSelector {
    /// The names of the nodes, each once. Leave the field out to mean every node: an empty list is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10000), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub names: Option<Vec<String>>,
    /// Labels a node must have, for example `pool: gpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::selector::match_labels")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Conditions on a node's labels; all of them must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

/// Metadata handed to the container runtime with the pull, as the kubelet does for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxConfig {
    /// Labels of the sandbox configuration, for example `io.kubernetes.image.app: foo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::bounds::free_text_map")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the sandbox configuration, for example
    /// `io.kubernetes.image.metrics.tags: cluster=cn-shanghai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::bounds::free_text_map")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// Stamps the fields that a pull job has besides its image or images into a spec.
///
/// A flattened struct would say the same, but `serde(flatten)` buffers every object it reads and loses the
/// schema's `required` and `default` of what it flattens.
macro_rules! pull_template_spec {
    (
        $(#[$outer:meta])*
        pub struct $name:ident { $(#[$first_meta:meta])* pub $first:ident: $first_type:ty }
    ) => {
        $(#[$outer])*
        pub struct $name {
            $(#[$first_meta])*
            pub $first: $first_type,
            /// Names of Secrets in the job's namespace with the credentials of private registries, of type
            /// `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
            pub pull_secrets: Option<Vec<String>>,
            /// Which nodes take part, by `names` or by `matchLabels` and `matchExpressions`. No default: every
            /// node. Cannot be combined with podSelector.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub selector: Option<crate::kruise::NodeSelector>,
            /// Selects the nodes on which pods of the job's namespace with these labels run. Cannot be combined
            /// with selector.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub pod_selector: Option<crate::selector::LabelSelector>,
            /// How many nodes may pull one image at the same time, for example 10. Defaults to 1; 0 pauses the
            /// job and raising it resumes. Percentages are not supported.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub parallelism: Option<k8s_openapi::apimachinery::pkg::util::intstr::IntOrString>,
            /// How long one pull may take and how often it is tried again.
            #[serde(default)]
            pub pull_policy: crate::kruise::PullPolicy,
            /// When the job ends, and what happens then.
            #[serde(default)]
            pub completion_policy: crate::kruise::CompletionPolicy,
            /// Labels and annotations for the container runtime, as the kubelet attaches a pod's to its pulls.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sandbox_config: Option<crate::kruise::SandboxConfig>,
            /// `IfNotPresent` skips nodes that have the image; `Always` asks the registry again, so that
            /// a moved tag is brought up to date. Defaults to `IfNotPresent`.
            #[serde(default)]
            pub image_pull_policy: crate::kruise::ImagePullPolicy,
        }
    };
}
pub(super) use pull_template_spec;
