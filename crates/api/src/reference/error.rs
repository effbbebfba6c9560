//! Why a string is not an image reference, in sentences that a person can act on.

use thiserror::Error;

/// The most characters of a wrong reference that a message repeats.
const EXCERPT_CHARS: usize = 80;

/// What is wrong with an image reference. Trying again does not help; the text has to change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The reference is empty.
    #[error("the name of the image is missing: write for example `nginx:1.27`")]
    Empty,
    /// A space, a line end or a control character, often from a file or a variable.
    #[error("`{0}` contains white space or a control character: remove it")]
    WhiteSpace(String),
    /// A character outside ASCII, often from a word processor.
    #[error("{0:?} cannot stand in an image reference: it is not an ASCII character")]
    NotAscii(char),
    /// An address as in a browser.
    #[error("an image reference has no URL scheme: write it without `{0}://`")]
    Scheme(String),
    /// The ID of an image on one machine, which no registry knows.
    #[error("64 hexadecimal digits are an image ID, not a name: write `name@sha256:…` to pull by digest")]
    ImageId,
    /// The part before the first slash is not a valid registry.
    #[error("`{0}` is no registry: write a host name or an IP address, and a port if it has one")]
    Registry(String),
    /// A registry or folder without an image.
    #[error("`{0}` names no repository: add the path of an image after the last `/`")]
    NoRepository(String),
    /// Capitals in a name; holds the name to write instead.
    #[error("repository names are lower case: write `{0}`")]
    UpperCase(String),
    /// A name that no registry serves.
    #[error(
        "`{0}` is no repository: write lower-case letters and digits, divided by single `/`, `.`, `_`, \
         by `__` or by dashes"
    )]
    Repository(String),
    /// A name beyond the limit of all registries.
    #[error(
        "the repository has {length} characters (with `library/` if it is left out): at most {max} are allowed"
    )]
    TooLong {
        /// The length of the repository.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// A tag that no registry serves.
    #[error(
        "`{0}` is no tag: write at most 128 letters, digits, `_`, `.` and `-`, and begin with none of \
         the last two"
    )]
    Tag(String),
    /// A digest that is not an algorithm and a hexadecimal number.
    #[error("`{0}` is no digest: write `sha256:` and 64 digits of 0-9 and a-f (lower case)")]
    Digest(String),
    /// A digest that no runtime can verify.
    #[error("digest algorithm `{0}` is not supported: use sha256, sha384 or sha512")]
    DigestAlgorithm(String),
    /// A digest that was cut off or mixed up.
    #[error("a {algorithm} digest has {expected} digits, but this one has {length}")]
    DigestLength {
        /// The algorithm that the digest names.
        algorithm: &'static str,
        /// The length of its digests.
        expected: usize,
        /// The length of this one.
        length: usize,
    },
}

/// Shortens text from outside for a message, and makes control characters visible.
pub(super) fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(EXCERPT_CHARS) {
        match c {
            ' '..='~' => shown.push(c),
            _ => shown.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(EXCERPT_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
