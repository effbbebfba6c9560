//! What a request asks for, read from its path and headers. Nothing is looked up here.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, RANGE};

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// The version check, by which clients find out that there is a registry.
    Ping,
    Manifest {
        repository: &'a str,
        reference: &'a str,
    },
    Blob {
        repository: &'a str,
        digest: &'a str,
    },
}

impl<'a> Route<'a> {
    /// The repository that it is about.
    pub fn repository(self) -> Option<&'a str> {
        match self {
            Self::Ping => None,
            Self::Manifest { repository, .. } | Self::Blob { repository, .. } => Some(repository),
        }
    }
}

/// The requested part of a blob.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Bytes(Range<usize>),
    /// A range outside of the blob.
    Outside,
}

/// Reads a path. A repository may have slashes, so the path is read from its end.
pub(crate) fn route(path: &str) -> Option<Route<'_>> {
    let rest = path.strip_prefix("/v2")?;
    if rest.is_empty() || rest == "/" {
        return Some(Route::Ping);
    }
    let (rest, name) = rest.strip_prefix('/')?.rsplit_once('/')?;
    let (repository, kind) = rest.rsplit_once('/')?;
    match kind {
        _ if repository.is_empty() || name.is_empty() => None,
        "manifests" => Some(Route::Manifest { repository, reference: name }),
        "blobs" => Some(Route::Blob { repository, digest: name }),
        _ => None,
    }
}

/// The user name and password that a client sends.
pub(super) fn shown(headers: &HeaderMap) -> Option<(String, String)> {
    let (scheme, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (username, password) = decoded.split_once(':')?;
    scheme.eq_ignore_ascii_case("basic").then(|| (username.to_owned(), password.to_owned()))
}

/// The part that the headers ask for. Anything else than a single range of bytes asks for everything, as in RFC 9110.
pub(super) fn part(headers: &HeaderMap, length: usize) -> Part {
    let asked = headers.get(RANGE).and_then(|value| value.to_str().ok()?.strip_prefix("bytes="));
    let Some((first, last)) = asked.and_then(|asked| asked.split_once('-')) else { return Part::Whole };
    match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), _) if first >= length => Part::Outside,
        (Ok(first), Ok(last)) if first <= last => Part::Bytes(first..length.min(last.saturating_add(1))),
        (Ok(first), Err(_)) if last.is_empty() => Part::Bytes(first..length),
        (Err(_), Ok(0)) if first.is_empty() => Part::Outside,
        (Err(_), Ok(count)) if first.is_empty() => Part::Bytes(length.saturating_sub(count)..length),
        _ => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_from_its_end() {
        for (path, expected) in [
            ("/v2/", Some(Route::Ping)),
            ("/v2", Some(Route::Ping)),
            ("/v2/a/manifests/1", Some(Route::Manifest { repository: "a", reference: "1" })),
            ("/v2/a/blobs/manifests/1", Some(Route::Manifest { repository: "a/blobs", reference: "1" })),
            ("/v2/a/b/blobs/sha256:00", Some(Route::Blob { repository: "a/b", digest: "sha256:00" })),
            ("/v2/a/tags/list", None),
            ("/v2/manifests/1", None),
            ("/v1/a/manifests/1", None),
            ("/", None),
        ] {
            assert_eq!(route(path), expected, "{path}");
        }
    }

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        let part_of = |value: &str| part(&HeaderMap::from_iter([(RANGE, value.parse().unwrap())]), 10);
        for (value, expected) in [
            ("bytes=0-3", Part::Bytes(0..4)),
            ("bytes=4-", Part::Bytes(4..10)),
            ("bytes=4-99", Part::Bytes(4..10)),
            ("bytes=-3", Part::Bytes(7..10)),
            ("bytes=-99", Part::Bytes(0..10)),
            ("bytes=10-", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=3-1", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("lines=0-1", Part::Whole),
        ] {
            assert_eq!(part_of(value), expected, "{value}");
        }
        assert_eq!(part(&HeaderMap::new(), 10), Part::Whole);
    }
}
