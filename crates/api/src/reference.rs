//! Image references: what a user writes, and the two forms that the rest of the program needs. Name and tag are
//! the keys of a NodeImage; the full form is what the runtime is asked for.
//!
//! The grammar is that of Go's `distribution/reference` v0.6.0 with `go-digest` v1.0.0, because other programs
//! compute the same keys with it. It is written by hand: `oci-spec` 0.10 knows no IPv6 hosts, and accepts names
//! that it does not read back. One key differs from Go's, on purpose: Go shortens `docker.io/ghcr.io/app` to
//! `ghcr.io/app`, an image in another registry. Here it keeps its long name, so a name always means one image.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use error::ParseError;

mod error;
mod grammar;

/// The tag of a reference that has neither tag nor digest.
pub const DEFAULT_TAG: &str = "latest";

/// One image, by tag or by digest. References are compared by what they mean, not by how they are written:
///
/// | written | name | tag | full form |
/// |---|---|---|---|
/// | `nginx` | `nginx` | `latest` | `docker.io/library/nginx:latest` |
/// | `reg:5000/a/b:v1` | `reg:5000/a/b` | `v1` | `reg:5000/a/b:v1` |
/// | `ubuntu:20.04@sha256:…` | `ubuntu` | `sha256:…` | `docker.io/library/ubuntu@sha256:…` |
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageRef {
    /// Registry and path in full, such as `docker.io/library/nginx`.
    full_name: String,
    version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Version {
    Tag(String),
    Digest(String),
}

impl ImageRef {
    /// Parses a reference as a user writes it. A missing tag is `latest`; a tag beside a digest is dropped.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        grammar::check_text(text)?;
        let (named, digest) = grammar::split_digest(text);
        let (name, tag) = grammar::split_tag(named);
        let full_name = grammar::full_name(name)?;
        let tag = tag.map(grammar::check_tag).transpose()?;
        let version = match digest {
            Some(digest) => Version::Digest(grammar::check_digest(digest)?.to_owned()),
            None => Version::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()),
        };
        Ok(Self { full_name, version })
    }

    /// Joins a NodeImage key and one of its tags (or digests). This is the inverse of [`name`](Self::name) and
    /// [`tag`](Self::tag).
    pub fn from_parts(name: &str, tag: &str) -> Result<Self, ParseError> {
        let full_name = grammar::full_name(name)?;
        let version = if tag.contains(':') {
            Version::Digest(grammar::check_digest(tag)?.to_owned())
        } else {
            Version::Tag(grammar::check_tag(tag)?.to_owned())
        };
        Ok(Self { full_name, version })
    }

    /// The familiar name, which is the key of a NodeImage: `nginx` for `docker.io/library/nginx`.
    pub fn name(&self) -> &str {
        grammar::familiar(&self.full_name)
    }

    /// The tag, or the whole digest (`sha256:…`) of a reference that has one.
    pub fn tag(&self) -> &str {
        match &self.version {
            Version::Tag(tag) => tag,
            Version::Digest(digest) => digest,
        }
    }

    /// Whether the reference names its image by digest.
    pub fn is_digest(&self) -> bool {
        matches!(self.version, Version::Digest(_))
    }

    /// The host that serves the image, with its port: `docker.io` unless the reference names another.
    pub fn registry(&self) -> &str {
        self.full_name.split_once('/').map_or(grammar::HUB, |(registry, _)| registry)
    }

    /// The path of the image in its registry: `library/nginx` for `nginx`.
    pub fn repository(&self) -> &str {
        self.full_name.split_once('/').map_or(self.full_name.as_str(), |(_, repository)| repository)
    }

    /// The full form, in which the runtime is asked: `docker.io/library/nginx:latest`.
    pub fn full(&self) -> String {
        self.join(&self.full_name)
    }

    fn join(&self, name: &str) -> String {
        match &self.version {
            Version::Tag(tag) => format!("{name}:{tag}"),
            Version::Digest(digest) => format!("{name}@{digest}"),
        }
    }
}

/// Writes the familiar form with tag or digest: `nginx:latest`.
impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.join(self.name()))
    }
}

impl FromStr for ImageRef {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for ImageRef {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ImageRef {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        Self::parse(&text)
    }
}

impl From<ImageRef> for String {
    fn from(reference: ImageRef) -> Self {
        reference.to_string()
    }
}

/// A reference without tag and digest: `[registry/]path`.
macro_rules! name_pattern {
    () => {
        concat!(
            "(?:(?:",
            // A host name or IPv4 address, and a port.
            r"[A-Za-z0-9]+(?:(?:\.|-+)[A-Za-z0-9]+)*(?::[0-9]+)?|",
            // An IPv6 address. Without a colon, capital or port it would not be recognised as a registry.
            r"\[[a-f0-9]*[A-F:][A-Fa-f0-9:]*\](?::[0-9]+)?|\[[a-f0-9]+\]:[0-9]+",
            ")/)?",
            // The path in the registry: words with separators between them.
            "[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*",
        )
    };
}

/// Matches every string that [`ImageRef::parse`] accepts, as a pattern for Go's, CEL's and Rust's engines.
///
/// It cannot count across alternatives, so it also matches two kinds of strings that are refused:
/// a bare name of 64 hexadecimal digits, and a repository of more than 255 characters.
pub const PATTERN: &str = concat!(
    "^",
    name_pattern!(),
    "(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?",
    "(?:@sha(?:256:[a-f0-9]{64}|384:[a-f0-9]{96}|512:[a-f0-9]{128}))?",
    "$"
);

/// Matches every name (a key of a NodeImage): a reference without tag and digest.
///
/// It also matches long forms such as `docker.io/library/nginx`, which parse to another, shorter name.
pub const NAME_PATTERN: &str = concat!("^", name_pattern!(), "$");

/// Matches the second half of a reference (a tag of a NodeImage): a tag, or a whole digest.
pub const TAG_PATTERN: &str = concat!(
    "^(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}",
    "|sha(?:256:[a-f0-9]{64}|384:[a-f0-9]{96}|512:[a-f0-9]{128}))$"
);
