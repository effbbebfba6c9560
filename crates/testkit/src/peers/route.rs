//! What a request asks for.

use http::Request;

/// The header by which mirrors know each other.
pub const MIRRORED: &str = "x-spegel-mirrored";

/// A manifest or a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Whether anything is served here at all.
    Ping,
    /// A manifest by tag: the full name of the image.
    Tag(String),
    /// A manifest or a blob by its digest.
    Digest { digest: String, is_manifest: bool },
    /// Nothing that is served.
    Else,
}

impl Wanted {
    pub fn of<B>(request: &Request<B>) -> Self {
        Self::read(request.uri().path(), request.uri().query().unwrap_or_default())
    }

    fn read(path: &str, query: &str) -> Self {
        if path == "/v2/" || path == "/v2" {
            return Self::Ping;
        }
        // Without the registry's name nobody knows whose image it is.
        let Some(registry) = registry(query) else { return Self::Else };
        let Some(rest) = path.strip_prefix("/v2/") else { return Self::Else };
        if let Some((name, reference)) = rest.rsplit_once("/manifests/") {
            return if reference.contains(':') {
                Self::Digest { digest: reference.to_owned(), is_manifest: true }
            } else {
                Self::Tag(format!("{registry}/{name}:{reference}"))
            };
        }
        match rest.rsplit_once("/blobs/") {
            Some((_, digest)) => Self::Digest { digest: digest.to_owned(), is_manifest: false },
            None => Self::Else,
        }
    }
}

/// The registry of the parameter `ns`. Only its port is written in a way that has to be read.
fn registry(query: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let registry = pairs.into_iter().find(|(name, _)| *name == "ns")?.1;
    (!registry.is_empty()).then(|| registry.replace("%3A", ":").replace("%3a", ":"))
}

/// The bytes of a body of this length that a `Range` selects: first and last.
pub fn range(text: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let first: u64 = first.parse().ok()?;
    let last = if last.is_empty() { length.checked_sub(1)? } else { last.parse().ok()? };
    let last = last.min(length.checked_sub(1)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_tag_or_a_digest() {
        let tag = Wanted::read("/v2/shop/web/manifests/v1", "ns=10.77.0.1%3A5000");
        assert_eq!(tag, Wanted::Tag("10.77.0.1:5000/shop/web:v1".into()));
        let of = |is_manifest| Wanted::Digest { digest: "sha256:00".into(), is_manifest };
        assert_eq!(Wanted::read("/v2/a/manifests/sha256:00", "x=1&ns=docker.io"), of(true));
        assert_eq!(Wanted::read("/v2/a/blobs/sha256:00", "ns=docker.io"), of(false));
        assert_eq!(Wanted::read("/v2/", ""), Wanted::Ping);
        for (path, query) in [("/v2/a/manifests/v1", ""), ("/v2/a/manifests/v1", "ns="), ("/a", "ns=b")] {
            assert_eq!(Wanted::read(path, query), Wanted::Else, "{path}?{query}");
        }
    }

    #[test]
    fn a_range_is_within_the_body() {
        assert_eq!(range("bytes=3-", 10), Some((3, 9)));
        assert_eq!(range("bytes=3-4", 10), Some((3, 4)));
        assert_eq!(range("bytes=3-40", 10), Some((3, 9)));
        for odd in ["bytes=10-", "bytes=-3", "bytes=4-3", "3-", "bytes=0-1,2-3"] {
            assert_eq!(range(odd, 10), None, "{odd}");
        }
        assert_eq!(range("bytes=0-", 0), None);
    }
}
