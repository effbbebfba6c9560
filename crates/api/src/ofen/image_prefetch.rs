//! ImagePrefetch: images that a number of nodes, or all, must hold.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::selector::LabelSelector;

/// Which images must be on which nodes.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "ofen.cybozu.io",
    version = "v1",
    kind = "ImagePrefetch",
    plural = "imageprefetches",
    namespaced,
    status = "ImagePrefetchStatus",
    derive = "PartialEq",
    doc = "ImagePrefetch keeps images on a number of nodes, or on all, and downloads each from the registry once.",
    printcolumn(
        name = "DesiredNodes",
        type_ = "integer",
        description = "Nodes that must hold the images.",
        json_path = ".status.desiredNodes"
    ),
    printcolumn(
        name = "ImagePulledNodes",
        type_ = "integer",
        description = "Nodes that hold the images.",
        json_path = ".status.imagePulledNodes"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        description = "Time since the object was created.",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ImagePrefetchSpec {
    /// The images to hold, at most 255, for example `ghcr.io/cybozu/ubuntu:24.04`.
    #[schemars(length(min = 1, max = 255), inner(length(min = 1, max = 512)))]
    pub images: Vec<String>,
    /// Which nodes may be chosen, by their labels. No default: every node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// `true` takes every node that nodeSelector allows; replicas must then be left out. Defaults to false.
    #[serde(default)]
    pub all_nodes: bool,
    /// How many nodes must hold the images, for example 2. Required, and at least 1, unless allNodes is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Secrets in the object's namespace with the credentials of private registries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub image_pull_secrets: Option<Vec<LocalSecret>>,
}

/// A Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The progress of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePrefetchStatus {
    /// The generation of the object that this status was computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `NodeImageSetsCreated` and `NoImagePullFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Number of nodes that must hold the images.
    pub desired_nodes: i32,
    /// Number of nodes that hold all images.
    pub image_pulled_nodes: i32,
    /// Number of nodes that do not hold all images yet.
    pub image_pulling_nodes: i32,
    /// Number of nodes on which an image could not be pulled.
    pub image_pull_failed_nodes: i32,
    /// Names of the chosen nodes, sorted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20000), inner(length(max = 253)))]
    pub selected_nodes: Option<Vec<String>>,
}
