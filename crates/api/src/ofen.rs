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
