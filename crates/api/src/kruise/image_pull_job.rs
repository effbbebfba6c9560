//! ImagePullJob: one image on many nodes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pull_template::pull_template_spec;
use crate::condition::Condition;
use crate::unknown::Unknown;

pull_template_spec! {
    /// What to pull, where, and how fast.
    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "apps.kruise.io",
        version = "v1beta1",
        kind = "ImagePullJob",
        plural = "imagepulljobs",
        namespaced,
        status = "ImagePullJobStatus",
        derive = "PartialEq",
        doc = "ImagePullJob puts one container image on many nodes before the pods that need it arrive.",
        printcolumn(name = "TOTAL", type_ = "integer", description = "Nodes that take part.", json_path = ".status.desired"),
        printcolumn(name = "ACTIVE", type_ = "integer", description = "Nodes that are pulling.", json_path = ".status.active"),
        printcolumn(name = "SUCCEED", type_ = "integer", description = "Nodes that have the image.", json_path = ".status.succeeded"),
        printcolumn(name = "FAILED", type_ = "integer", description = "Nodes on which the pull failed.", json_path = ".status.failed"),
        printcolumn(name = "AGE", type_ = "date", description = "Time since the job was created.", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "MESSAGE", type_ = "string", description = "The progress of the job.", json_path = ".status.message")
    )]
    #[serde(rename_all = "camelCase")]
    pub struct ImagePullJobSpec {
        /// The image to pull, with an optional registry, tag and digest, for example `nginx:1.25`,
        /// `registry.example:5000/team/app:v2` or `nginx@sha256:…`. Without a tag, `latest` is meant.
        #[schemars(length(min = 1, max = 512))]
        pub image: String
    }
}

/// The progress of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullJobStatus {
    /// When the controller first handled the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the job ended. A job with this field is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Number of nodes that take part.
    pub desired: i32,
    /// Number of nodes that have been asked to pull and are not done.
    #[serde(default)]
    pub active: i32,
    /// Number of nodes that have the image.
    #[serde(default)]
    pub succeeded: i32,
    /// Number of nodes on which the pull failed.
    #[serde(default)]
    pub failed: i32,
    /// How far the job is, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// Names of the first 500 nodes on which the pull failed, sorted; `failed` counts all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20000), inner(length(max = 253)))]
    pub failed_nodes: Option<Vec<String>>,
    /// What is known about the job as a whole: `Complete`, `Failed`, `Progressing`, and what hinders it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub conditions: Option<Vec<Condition>>,
    /// Bytes that have arrived on the nodes, as far as they tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes_done: Option<i64>,
    /// Bytes that the nodes pull in all, as far as they tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes_total: Option<i64>,
    /// What a newer version has written besides.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Unknown,
}
