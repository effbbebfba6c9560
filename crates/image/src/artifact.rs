//! What a registry stores: blobs, and the manifests that refer to them by digest.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Bytes and their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub digest: String,
    pub bytes: Vec<u8>,
}

/// A manifest or an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub media_type: &'static str,
    pub blob: Blob,
}

/// An image or an index with everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub blobs: Vec<Blob>,
    /// The last one refers, directly or not, to all the others; tags point to it.
    pub manifests: Vec<Manifest>,
}

impl Artifact {
    /// # Panics
    /// If there is no manifest.
    pub fn new(blobs: Vec<Blob>, manifests: Vec<Manifest>) -> Self {
        assert!(!manifests.is_empty(), "an artifact has a manifest");
        Self { blobs, manifests }
    }

    /// The manifest that tags point to.
    pub fn root(&self) -> &Manifest {
        &self.manifests[self.manifests.len() - 1]
    }

    /// The digest in references by digest.
    pub fn digest(&self) -> &str {
        &self.root().blob.digest
    }

    /// How many bytes a registry sends for all of it.
    pub fn size(&self) -> u64 {
        let blobs = self.blobs.iter().chain(self.manifests.iter().map(|manifest| &manifest.blob));
        blobs.map(|blob| blob.bytes.len() as u64).sum()
    }
}

impl Blob {
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { digest: digest(&bytes), bytes }
    }

    /// The reference to it in a manifest.
    pub fn descriptor(&self, media_type: &str) -> Value {
        json!({"digest": self.digest, "mediaType": media_type, "size": self.bytes.len()})
    }
}

impl Manifest {
    pub fn of(media_type: &'static str, bytes: Vec<u8>) -> Self {
        Self { media_type, blob: Blob::of(bytes) }
    }
}

/// The digest of these bytes in the form of registries.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::from("sha256:"), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}
