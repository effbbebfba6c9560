//! Parses manifests and indexes. They come from a registry, so the content they refer to is verified when it arrives.

use std::collections::BTreeMap;

use prewarm_image::native_architecture;
use serde::Deserialize;

/// A reference to a piece of content in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Descriptor {
    pub digest: String,
    pub size: u64,
}

/// What a digest in a registry refers to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Document {
    /// The manifest for this platform has to be read next, if there is one.
    Index(Option<Descriptor>),
    Image(Manifest),
}

/// An image for one platform.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Manifest {
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(flatten)]
    descriptor: Descriptor,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

impl Document {
    /// Parses either. `None` if it is neither, or if a reference has no digest.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if let Ok(index) = serde_json::from_slice::<Index>(bytes) {
            let mut entries = index.manifests.into_iter();
            let chosen = entries.find(|entry| entry.platform.as_ref().is_some_and(Platform::is_native));
            let chosen = chosen.map(|entry| entry.descriptor);
            return chosen.as_ref().is_none_or(Descriptor::is_sound).then_some(Self::Index(chosen));
        }
        let manifest: Manifest = serde_json::from_slice(bytes).ok()?;
        manifest.parts().values().all(Descriptor::is_sound).then_some(Self::Image(manifest))
    }
}

impl Manifest {
    /// Its config and its layers, each once.
    pub fn parts(&self) -> BTreeMap<&str, Descriptor> {
        let parts = self.layers.iter().chain([&self.config]);
        parts.map(|part| (part.digest.as_str(), part.clone())).collect()
    }
}

impl Platform {
    fn is_native(&self) -> bool {
        self.os == "linux" && self.architecture == native_architecture()
    }
}

impl Descriptor {
    /// Digests become file names, so they must not contain anything that has a meaning in paths.
    pub fn is_sound(&self) -> bool {
        let hash = self.digest.strip_prefix("sha256:");
        hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    }
}

#[cfg(test)]
mod tests {
    use prewarm_image::{Image, Layer, index};

    use super::*;

    fn image(architecture: &str) -> Image {
        Image::new("web").architecture(architecture).layers(2, Layer::of(1000))
    }

    #[test]
    fn an_index_leads_to_the_manifest_for_this_platform() {
        let (native, other) = (image(native_architecture()), image("s390x"));
        let both = index(&[other.clone(), native.clone()]);
        let Some(Document::Index(Some(chosen))) = Document::parse(&both.root().blob.bytes) else {
            panic!("it is an index with this platform");
        };
        assert_eq!(chosen.digest, native.build().digest());
        assert_eq!(Document::parse(&index(&[other]).root().blob.bytes), Some(Document::Index(None)));
    }

    #[test]
    fn a_manifest_names_its_config_and_its_layers() {
        let artifact = image("amd64").build();
        let Some(Document::Image(manifest)) = Document::parse(&artifact.root().blob.bytes) else {
            panic!("it is a manifest");
        };
        let parts = manifest.parts();
        for blob in &artifact.blobs {
            assert_eq!(parts[blob.digest.as_str()].size, blob.bytes.len() as u64);
        }
        assert_eq!(parts.len(), artifact.blobs.len());
    }

    #[test]
    fn anything_else_and_digests_that_are_paths_are_refused() {
        let hostile = r#"{"config":{"digest":"sha256:../../etc/passwd","size":1},"layers":[]}"#;
        for bytes in ["", "{}", "[]", hostile] {
            assert_eq!(Document::parse(bytes.as_bytes()), None, "{bytes}");
        }
    }
}
