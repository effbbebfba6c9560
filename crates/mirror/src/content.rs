//! What manifests say: of an index, the manifest for a platform; of an image, its config and layers. They come from
//! mirrors, so nothing in them is trusted: every number, name and kind is checked before anything is asked for.

use std::collections::BTreeSet;

use prewarm_api::kruise::FailureClass;
use serde::Deserialize;

pub use digest::{Digest, DigestError, Hasher};
pub use platform::Platform;

mod digest;
mod platform;

/// The most bytes of a manifest. Registries refuse larger ones.
pub const MAX_MANIFEST: u64 = 4 * 1024 * 1024;
/// The most bytes of an image's config.
pub const MAX_CONFIG: u64 = 16 * 1024 * 1024;
/// The most layers of an image. Runtimes cannot stack more than a few hundred.
pub const MAX_LAYERS: usize = 512;
/// The most manifests of an index.
pub const MAX_MANIFESTS: usize = 1024;
/// The largest plausible sum of sizes: 16 TiB.
pub const MAX_TOTAL: u64 = 1 << 44;

/// The media types of manifests and indexes, the usual ones of images first.
const MANIFESTS: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
const INDEXES: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
const LAYERS: [&str; 6] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
];

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    #[error("the manifest is not JSON that an image has: {0}; push the image again")]
    Unreadable(String),
    #[error("the manifest is both an index and an image, so it means nothing for sure; push the image again")]
    Ambiguous,
    #[error("the manifest is of the old schema 1; push the image again with a current tool")]
    Schema1,
    #[error("`{0}` is not a kind of manifest that a node can run; name an image")]
    ForeignManifest(String),
    #[error("the index has another index for this platform; use the policy Default for this image")]
    NestedIndex,
    #[error("a config of kind `{0}` does not belong to a container image; name an image")]
    ForeignConfig(String),
    #[error("a layer of kind `{0}` cannot be brought from a mirror; use the policy Default for this image")]
    ForeignLayer(String),
    #[error("the manifest is announced as `{announced}` and says that it is `{own}`; push the image again")]
    Contradiction { announced: String, own: String },
    #[error("the manifest names {count} {what}: at most {most} are taken; push an image with fewer")]
    TooMany { what: &'static str, count: usize, most: usize },
    #[error("the manifest says that {digest} has {size} bytes, which cannot be; push the image again")]
    Size { digest: Digest, size: u64 },
    #[error(
        "the content store of this node's containerd takes digests of sha256 only, and not {0}; use the policy Default for this image"
    )]
    ForeignDigest(Digest),
    #[error("the index has no manifest for {0}; use an image that is built for it")]
    NoPlatform(Platform),
    #[error("the image is for {is}, and this node is {wanted}; use an image that is built for it")]
    OtherPlatform { is: Box<Platform>, wanted: Box<Platform> },
}

impl ContentError {
    /// The class of the failure. Content that was verified and cannot be read was pushed like that.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Unreadable(_)
            | Self::Ambiguous
            | Self::Contradiction { .. }
            | Self::TooMany { .. }
            | Self::Size { .. } => FailureClass::Corrupt,
            Self::Schema1
            | Self::NestedIndex
            | Self::ForeignDigest(_)
            | Self::ForeignManifest(_)
            | Self::ForeignConfig(_)
            | Self::ForeignLayer(_) => FailureClass::InvalidReference,
            Self::NoPlatform(_) | Self::OtherPlatform { .. } => FailureClass::NoPlatform,
        }
    }
}

/// One piece of content: what it is, its digest and its size.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
    /// Only entries of an index have one.
    #[serde(default)]
    pub platform: Option<Platform>,
}

/// A manifest, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    Index(Index),
    Image(Image),
}

/// An index: manifests for platforms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub media_type: String,
    pub manifests: Vec<Descriptor>,
}

/// An image for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub media_type: String,
    pub config: Descriptor,
    /// In the order in which they are stacked. The same layer may stand here twice.
    pub layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    media_type: Option<String>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// Whether a media type is one of a manifest or an index.
pub(crate) fn is_manifest_type(media_type: &str) -> bool {
    MANIFESTS.contains(&media_type) || INDEXES.contains(&media_type)
}

impl Document {
    /// Reads a manifest. `announced` is the media type that the mirror or an index gave it; none, or a general one
    /// such as `application/json`, is as good as what stands in the manifest.
    pub fn read(bytes: &[u8], announced: Option<&str>) -> Result<Self, ContentError> {
        let raw: Raw = serde_json::from_slice(bytes).map_err(|e| ContentError::Unreadable(e.to_string()))?;
        if raw.fs_layers.is_some() {
            return Err(ContentError::Schema1);
        }
        match (raw.manifests, raw.config, raw.layers) {
            // One document with two meanings would let two programs see two images under one digest.
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err(ContentError::Ambiguous),
            (Some(manifests), None, None) => {
                let media_type = settle(raw.media_type, announced, INDEXES)?;
                Index::checked(media_type, manifests).map(Self::Index)
            }
            (None, Some(config), Some(layers)) => {
                let media_type = settle(raw.media_type, announced, MANIFESTS)?;
                Image::checked(media_type, config, layers).map(Self::Image)
            }
            _ => {
                let kind = raw.media_type.or(announced.map(ToOwned::to_owned));
                Err(ContentError::ForeignManifest(shown(&kind.unwrap_or_else(|| "unknown".to_owned()))))
            }
        }
    }

    /// What its descriptor has to say of its kind.
    pub fn media_type(&self) -> &str {
        match self {
            Self::Index(index) => &index.media_type,
            Self::Image(image) => &image.media_type,
        }
    }
}

/// The media type of a manifest: what it says itself, else what was announced, else the usual one.
fn settle(own: Option<String>, announced: Option<&str>, allowed: [&str; 2]) -> Result<String, ContentError> {
    let own = own.filter(|own| !own.is_empty());
    if let Some(own) = &own
        && !allowed.contains(&own.as_str())
    {
        return Err(ContentError::ForeignManifest(shown(own)));
    }
    let announced = announced.filter(|announced| is_manifest_type(announced));
    match (own, announced) {
        (Some(own), Some(announced)) if own != announced => {
            Err(ContentError::Contradiction { announced: announced.to_owned(), own })
        }
        (Some(own), _) => Ok(own),
        (None, Some(announced)) if allowed.contains(&announced) => Ok(announced.to_owned()),
        (None, Some(announced)) => {
            Err(ContentError::Contradiction { announced: announced.to_owned(), own: allowed[0].to_owned() })
        }
        (None, None) => Ok(allowed[0].to_owned()),
    }
}

impl Index {
    fn checked(media_type: String, manifests: Vec<Descriptor>) -> Result<Self, ContentError> {
        if manifests.len() > MAX_MANIFESTS {
            let (count, most) = (manifests.len(), MAX_MANIFESTS);
            return Err(ContentError::TooMany { what: "manifests", count, most });
        }
        Ok(Self { media_type, manifests })
    }

    /// The entry that containerd takes on a node of this platform: the best fit, of equal ones the first, and entries
    /// that name no platform last.
    pub fn choose(&self, platform: &Platform) -> Result<&Descriptor, ContentError> {
        let rank = |entry: &Descriptor| match &entry.platform {
            Some(of) => platform.rank(of),
            None => Some(usize::MAX),
        };
        let fitting = self.manifests.iter().filter_map(|entry| Some((rank(entry)?, entry)));
        let (_, chosen) = fitting
            .min_by_key(|(rank, _)| *rank)
            .ok_or_else(|| ContentError::NoPlatform(platform.clone()))?;
        if !chosen.media_type.is_empty() && !is_manifest_type(&chosen.media_type) {
            return Err(ContentError::ForeignManifest(shown(&chosen.media_type)));
        }
        bounded(chosen, MAX_MANIFEST)?;
        Ok(chosen)
    }
}

impl Image {
    fn checked(
        media_type: String,
        config: Descriptor,
        layers: Vec<Descriptor>,
    ) -> Result<Self, ContentError> {
        if !CONFIGS.contains(&config.media_type.as_str()) {
            return Err(ContentError::ForeignConfig(shown(&config.media_type)));
        }
        if layers.len() > MAX_LAYERS {
            let (count, most) = (layers.len(), MAX_LAYERS);
            return Err(ContentError::TooMany { what: "layers", count, most });
        }
        if let Some(foreign) = layers.iter().find(|layer| !LAYERS.contains(&layer.media_type.as_str())) {
            return Err(ContentError::ForeignLayer(shown(&foreign.media_type)));
        }
        bounded(&config, MAX_CONFIG)?;
        let mut total = 0_u64;
        for layer in &layers {
            bounded(layer, MAX_TOTAL)?;
            total += layer.size;
            if total > MAX_TOTAL {
                return Err(ContentError::Size { digest: layer.digest.clone(), size: layer.size });
            }
        }
        Ok(Self { media_type, config, layers })
    }

    /// Everything that has to be brought, each digest once, the config first.
    pub fn parts(&self) -> Vec<&Descriptor> {
        let mut seen = BTreeSet::new();
        std::iter::once(&self.config).chain(&self.layers).filter(|part| seen.insert(&part.digest)).collect()
    }
}

/// A descriptor whose size can be. An empty layer is odd and allowed, but then its digest is that of nothing: no mirror
/// could be asked for anything else without bytes.
fn bounded(descriptor: &Descriptor, most: u64) -> Result<(), ContentError> {
    let is_empty = descriptor.size == 0;
    if descriptor.size > most || (is_empty && !descriptor.digest.fits(&[])) {
        return Err(ContentError::Size { digest: descriptor.digest.clone(), size: descriptor.size });
    }
    Ok(())
}

/// Foreign text for a message.
fn shown(text: &str) -> String {
    const MAX_SHOWN: usize = 100;
    prewarm_api::text::cut(&prewarm_api::text::plain(text), MAX_SHOWN)
}

#[cfg(test)]
mod tests;
