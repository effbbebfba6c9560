//! An image that the runtime has, and which references mean it.

use prewarm_api::reference::ImageRef;

use crate::proto::cri;

/// One image on the node, under all its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The runtime's own id: the digest of the config, with or without `sha256:`.
    pub id: String,
    /// Names with tags, in the form of the runtime.
    pub tags: Vec<String>,
    /// Names with digests, in the form of the runtime.
    pub digests: Vec<String>,
    /// The size in bytes: packed on containerd, unpacked on CRI-O.
    pub size: u64,
    /// Whether the runtime protects it from being collected.
    pub pinned: bool,
}

impl Image {
    /// Whether one of its names is this reference, in its long or its short form. The name counts, not only the
    /// content: the same digest in another repository is another image.
    pub fn is(&self, reference: &ImageRef) -> bool {
        self.names().any(|name| name == *reference)
    }

    /// All its names, by tag and by digest. Names that cannot be parsed are skipped.
    pub fn names(&self) -> impl Iterator<Item = ImageRef> {
        self.tags.iter().chain(&self.digests).filter_map(|name| ImageRef::parse(name).ok())
    }
}

impl From<cri::Image> for Image {
    fn from(image: cri::Image) -> Self {
        Self {
            id: image.id,
            tags: image.repo_tags,
            digests: image.repo_digests,
            size: image.size,
            pinned: image.pinned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn image(tags: &[&str], digests: &[&str]) -> Image {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Image { id: "id".into(), tags: owned(tags), digests: owned(digests), size: 1, pinned: false }
    }

    fn is(image: &Image, reference: &str) -> bool {
        image.is(&ImageRef::parse(reference).unwrap())
    }

    #[test]
    fn long_and_short_names_mean_the_same_image() {
        let nginx = image(&["docker.io/library/nginx:latest"], &[]);
        assert!(is(&nginx, "nginx:latest") && is(&nginx, "nginx") && is(&nginx, "docker.io/library/nginx"));
        assert!(!is(&nginx, "nginx:1.0") && !is(&nginx, "test/nginx"));
        let test = image(&["docker.io/test/nginx:1.0"], &[]);
        assert!(is(&test, "test/nginx:1.0") && !is(&test, "nginx:1.0"));
    }

    #[test]
    fn a_registry_with_a_port_is_part_of_the_name() {
        let web = image(&["reg:5000/shop/web:v1"], &[]);
        assert!(is(&web, "reg:5000/shop/web:v1"));
        assert!(!is(&web, "reg:5001/shop/web:v1") && !is(&web, "shop/web:v1"));
    }

    #[test]
    fn a_digest_counts_under_its_own_repository_only() {
        let web = image(&[], &[&format!("docker.io/library/web@{DIGEST}")]);
        assert!(is(&web, &format!("web@{DIGEST}")) && is(&web, &format!("web:v1@{DIGEST}")));
        assert!(!is(&web, &format!("other/web@{DIGEST}")) && !is(&web, "web"));
    }

    #[test]
    fn names_that_cannot_be_parsed_match_nothing() {
        let odd = image(&["<none>:<none>", ""], &["10.77.0.1@sha256:00"]);
        assert!(!is(&odd, "none:none"));
    }
}
