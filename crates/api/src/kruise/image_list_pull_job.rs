//! ImageListPullJob: several images on many nodes, one ImagePullJob for each.

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
        kind = "ImageListPullJob",
        plural = "imagelistpulljobs",
        namespaced,
        status = "ImageListPullJobStatus",
        derive = "PartialEq",
        doc = "ImageListPullJob puts several container images on many nodes; it creates one ImagePullJob for each image.",
        printcolumn(name = "TOTAL", type_ = "integer", description = "Images in the list.", json_path = ".status.desired"),
        printcolumn(name = "SUCCEEDED", type_ = "integer", description = "Images that every node has.", json_path = ".status.succeeded"),
        printcolumn(name = "COMPLETED", type_ = "integer", description = "Images whose pull has ended on every node.", json_path = ".status.completed"),
        printcolumn(name = "AGE", type_ = "date", description = "Time since the job was created.", json_path = ".metadata.creationTimestamp")
    )]
    #[serde(rename_all = "camelCase")]
    pub struct ImageListPullJobSpec {
        /// The images to pull, each once and at most 255, for example `nginx:1.25`. Each may have a registry,
        /// tag and digest; without a tag, `latest` is meant.
        #[schemars(length(min = 1, max = 255), inner(length(min = 1, max = 512)))]
        #[schemars(extend("x-kubernetes-list-type" = "set"))]
        pub images: Vec<String>
    }
}

/// The progress of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageListPullJobStatus {
    /// When the controller first handled the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the job ended. A job with this field is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Number of images in the list.
    pub desired: i32,
    /// Number of images that some node is pulling.
    #[serde(default)]
    pub active: i32,
    /// Number of images whose pull has succeeded or failed on every node.
    #[serde(default)]
    pub completed: i32,
    /// Number of images that every node has.
    #[serde(default)]
    pub succeeded: i32,
    /// The images that failed on at least one node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub failed_image_statuses: Option<Vec<FailedImageStatus>>,
    /// What is known about the job as a whole: `Complete`, `Failed`, `Progressing`, and what hinders it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub conditions: Option<Vec<Condition>>,
    /// What a newer version has written besides.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Unknown,
}

/// An image that failed on at least one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedImageStatus {
    /// Name of the ImagePullJob that pulls this image; its status has the names of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub image_pull_job: Option<String>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub name: Option<String>,
    /// What to look at next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}
