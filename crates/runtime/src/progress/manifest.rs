//! What a manifest says about an image's layers. Manifests come from registries, so nothing in them is trusted.

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::reference::ImageRef;
use serde::Deserialize;

/// The largest manifest that is read, in bytes. Registries refuse larger ones.
pub const MAX_MANIFEST: u64 = 4 * 1024 * 1024;

/// The most layers of an image. Runtimes cannot stack more than a few hundred.
const MAX_LAYERS: usize = 512;

/// The largest plausible sum of sizes: 16 TiB.
const MAX_TOTAL: u64 = 1 << 44;

/// The config and the layers of one image, and which of them have been seen on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    /// The digest of the manifest that names them.
    pub manifest: String,
    /// Sizes by digest. A layer that is used twice is listed once, as it is downloaded once.
    pub sizes: BTreeMap<String, u64>,
    /// Digests that were complete in an earlier sample. They count as done even if the runtime drops what it has
    /// unpacked.
    pub seen: BTreeSet<String>,
}

impl Layers {
    /// Filters for the digests that have not been seen.
    pub fn unseen_filters(&self) -> Vec<String> {
        let unseen = self.sizes.keys().filter(|digest| !self.seen.contains(*digest));
        unseen.map(|digest| format!("digest=={digest}")).collect()
    }

    pub fn with_seen<'a>(mut self, digests: impl Iterator<Item = &'a str>) -> Self {
        self.seen.extend(digests.filter(|digest| self.sizes.contains_key(*digest)).map(ToOwned::to_owned));
        self
    }
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    size: u64,
}

/// A filter for manifests from the image's repository. containerd records what they refer to before it downloads the
/// layers.
pub fn filter(reference: &ImageRef) -> String {
    // containerd records the host without its port, and every repository in which it found a blob.
    let registry = reference.registry();
    let host = match registry.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or(address),
        None => registry.split(':').next().unwrap_or(registry),
    };
    // A repository has only letters, digits and `._/-`, of which the dot has a meaning in a pattern. The backslash is
    // doubled, because the pattern is in quotes.
    let repository = reference.repository().replace('.', r"\\.");
    format!(
        r#"labels."containerd.io/distribution.source.{host}"~="(^|,){repository}(,|$)",labels."containerd.io/gc.ref.content.config""#
    )
}

/// Parses a manifest. `None` if it is not one, or if its numbers are impossible.
pub fn parse(digest: &str, bytes: &[u8]) -> Option<Layers> {
    let manifest: Manifest = serde_json::from_slice(bytes).ok()?;
    if manifest.layers.len() > MAX_LAYERS {
        return None;
    }
    let mut sizes = BTreeMap::new();
    let mut total: u64 = 0;
    for part in manifest.layers.into_iter().chain([manifest.config]) {
        if !is_digest(&part.digest) {
            return None;
        }
        if sizes.insert(part.digest, part.size).is_none() {
            total = total.checked_add(part.size).filter(|total| *total <= MAX_TOTAL)?;
        }
    }
    Some(Layers { manifest: digest.to_owned(), sizes, seen: BTreeSet::new() })
}

/// Digests become parts of filters, so they must not contain anything that has a meaning there.
fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hash)| {
        !algorithm.is_empty()
            && algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && (32..=128).contains(&hash.len())
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    fn read(config: &str, layers: &[(String, &str)]) -> Option<Layers> {
        let layer = |(digest, size): &(String, &str)| format!(r#"{{"digest":"{digest}","size":{size}}}"#);
        let layers: Vec<String> = layers.iter().map(layer).collect();
        let text = format!(r#"{{"config":{config},"layers":[{}]}}"#, layers.join(","));
        parse("sha256:manifest", text.as_bytes())
    }

    fn config() -> String {
        format!(r#"{{"digest":"{}","size":5}}"#, digest('c'))
    }

    #[test]
    fn a_layer_that_is_used_twice_counts_once() {
        let layers = [(digest('a'), "10"), (digest('b'), "20"), (digest('a'), "10")];
        let read = read(&config(), &layers).unwrap();
        assert_eq!(read.sizes.values().sum::<u64>(), 35);
    }

    #[test]
    fn a_manifest_with_impossible_numbers_is_refused() {
        for size in ["-1", "18446744073709551615", "17592186044417", "1.5", "\"10\"", "null"] {
            assert_eq!(read(&config(), &[(digest('a'), size)]), None, "{size}");
        }
    }

    #[test]
    fn a_manifest_with_an_invalid_digest_is_refused() {
        for hostile in ["", "sha256:", "sha256:00,size==1", "layer\",labels.x==\"1", "sha256:zz"] {
            let layer = (hostile.replace('"', "\\\""), "10");
            assert_eq!(read(&config(), &[layer]), None, "{hostile}");
        }
    }

    #[test]
    fn too_many_layers_and_other_documents_are_refused() {
        let many: Vec<_> = (0..=MAX_LAYERS).map(|number| (format!("sha256:{number:064x}"), "1")).collect();
        assert_eq!(read(&config(), &many), None);
        assert!(read(&config(), &many[1..]).is_some());
        for other in ["", "{}", "[]", r#"{"manifests":[]}"#, "\u{0}"] {
            assert_eq!(parse("sha256:manifest", other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_filter_names_the_host_without_port_and_the_whole_repository() {
        let filter_of = |text: &str| filter(&ImageRef::parse(text).unwrap());
        assert_eq!(
            filter_of("reg.example:5000/shop/my.web:v1"),
            r#"labels."containerd.io/distribution.source.reg.example"~="(^|,)shop/my\\.web(,|$)",labels."containerd.io/gc.ref.content.config""#
        );
        assert!(filter_of("nginx").starts_with(
            r#"labels."containerd.io/distribution.source.docker.io"~="(^|,)library/nginx(,|$)""#
        ));
        assert!(filter_of("[2001:db8::1]:5000/a").contains(r#"source.2001:db8::1""#));
    }
}
