//! The kinds of `ofen.cybozu.io/v1`.
//!
//! Every doc comment in here is what `kubectl explain` prints, so it is written for a cluster operator.

mod image_prefetch;
mod node_image_set;

pub use image_prefetch::{ImagePrefetch, ImagePrefetchSpec, ImagePrefetchStatus, LocalSecret};
pub use node_image_set::{
    ContainerImageStatus, NodeImageSet, NodeImageSetSpec, NodeImageSetStatus, RegistryPolicy,
};

/// The API group of these kinds.
pub const GROUP: &str = "ofen.cybozu.io";
/// API group and version of these kinds.
pub const API_VERSION: &str = "ofen.cybozu.io/v1";
/// The kind of the objects that keep images on a number of nodes.
pub const IMAGE_PREFETCH: &str = "ImagePrefetch";
/// The kind of the objects that say what one node has of them.
pub const NODE_IMAGE_SET: &str = "NodeImageSet";
