//! NodeImageSet: the images of one ImagePrefetch on one node.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LocalSecret;
use crate::condition::Condition;

/// Which images one node must hold, and where it may fetch them.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "ofen.cybozu.io",
    version = "v1",
    kind = "NodeImageSet",
    plural = "nodeimagesets",
    status = "NodeImageSetStatus",
    derive = "PartialEq",
    doc = "NodeImageSet says which images one node must hold. It is created from an ImagePrefetch.",
    printcolumn(
        name = "Desired",
        type_ = "integer",
        format = "int32",
        description = "Images the node must hold.",
        json_path = ".status.desiredImages"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        format = "int32",
        description = "Images the node holds.",
        json_path = ".status.availableImages"
    ),
    printcolumn(
        name = "Failed",
        type_ = "integer",
        format = "int32",
        description = "Images that could not be pulled.",
        json_path = ".status.downloadFailedImages"
    ),
    printcolumn(
        name = "Node",
        type_ = "string",
        description = "The node.",
        json_path = ".spec.nodeName",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodeImageSetSpec {
    /// The images to hold, at most 255.
    #[schemars(length(min = 1, max = 255), inner(length(min = 1, max = 512)))]
    pub images: Vec<String>,
    /// `Default` fetches from a mirror or the registry; `MirrorOnly` never asks the registry itself.
    pub registry_policy: RegistryPolicy,
    /// The node that must hold the images.
    #[schemars(length(min = 1, max = 253))]
    pub node_name: String,
    /// Secrets with the credentials of private registries, in the namespace of the ImagePrefetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub image_pull_secrets: Option<Vec<LocalSecret>>,
    /// The generation of the ImagePrefetch that this was created from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_prefetch_generation: Option<i64>,
    /// How many times a failed download of an image is repeated; 0 means a single attempt. No default: without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub image_download_retry_limit: Option<i32>,
}

/// Where a node may fetch images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RegistryPolicy {
    /// From a mirror, else from the registry.
    #[default]
    Default,
    /// From a mirror only.
    MirrorOnly,
}

/// The progress of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeImageSetStatus {
    /// The generation of the object that the agent last worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `ImageAvailable` and `ImageDownloadSucceeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Number of images the node must hold.
    pub desired_images: i32,
    /// Number of images the node holds.
    pub available_images: i32,
    /// Number of images that could not be pulled.
    pub download_failed_images: i32,
    /// The progress of each image, in the order of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), extend("x-kubernetes-list-type" = "atomic"))]
    pub container_image_statuses: Option<Vec<ContainerImageStatus>>,
}

/// The progress of one image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerImageStatus {
    /// The image.
    #[schemars(length(max = 512))]
    pub image_ref: String,
    /// Why it could not be pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub error: Option<String>,
    /// `WaitingForImageDownload`, `ImageDownloadInProgress`, `ImageDownloaded`, `ImageDownloadFailed` or
    /// `ImageDownloadTemporarilyFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub last_state: Option<String>,
}
