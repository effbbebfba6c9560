//! Digests, and computing them over bytes that arrive in pieces.

use std::fmt;

use serde::Deserialize;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// A digest such as `sha256:…`, of an algorithm that can be computed here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest(String);

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 digits of 0-9 and a-f, or the same of sha384 (96) or sha512 (128)")]
pub struct DigestError;

impl Digest {
    /// Parses a digest.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let (algorithm, digits) = text.split_once(':').ok_or(DigestError)?;
        let length = match algorithm {
            "sha256" => 64,
            "sha384" => 96,
            "sha512" => 128,
            _ => return Err(DigestError),
        };
        let are_digits = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() == length && are_digits { Ok(Self(text.to_owned())) } else { Err(DigestError) }
    }

    /// The SHA-256 digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::Sha256(Sha256::new_with_prefix(bytes)).finish())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is of the algorithm that every content store knows.
    pub fn is_sha256(&self) -> bool {
        self.0.starts_with("sha256:")
    }

    /// Computes a digest of the same algorithm.
    pub fn hasher(&self) -> Hasher {
        match self.0.split_once(':') {
            Some(("sha384", _)) => Hasher::Sha384(Sha384::new()),
            Some(("sha512", _)) => Hasher::Sha512(Sha512::new()),
            _ => Hasher::Sha256(Sha256::new()),
        }
    }

    /// Whether it is the digest of these bytes.
    pub fn fits(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.matches(self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        Self::parse(&text)
    }
}

/// A digest under way.
#[derive(Clone)]
pub enum Hasher {
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    /// The bytes that come next.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(state) => state.update(bytes),
            Self::Sha384(state) => state.update(bytes),
            Self::Sha512(state) => state.update(bytes),
        }
    }

    /// Whether the bytes so far have this digest.
    pub fn matches(self, digest: &Digest) -> bool {
        self.finish() == digest.0
    }

    fn finish(self) -> String {
        match self {
            Self::Sha256(state) => format!("sha256:{:x}", state.finalize()),
            Self::Sha384(state) => format!("sha384:{:x}", state.finalize()),
            Self::Sha512(state) => format!("sha512:{:x}", state.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_algorithm_is_computed_piece_by_piece() {
        let whole = b"abcdef";
        for (algorithm, length) in [("sha256", 64), ("sha384", 96), ("sha512", 128)] {
            let any = Digest::parse(&format!("{algorithm}:{}", "0".repeat(length))).unwrap();
            let mut hasher = any.hasher();
            hasher.update(&whole[..2]);
            hasher.update(&whole[2..]);
            let digest = Digest::parse(&hasher.finish()).unwrap();
            assert!(digest.fits(whole) && !digest.fits(b"abcdeg"), "{algorithm}");
        }
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let upper = format!("sha256:{}", "A".repeat(64));
        for text in ["", "sha256", "sha256:", "md5:00", "sha256:zz", "sha512:00", upper.as_str()] {
            assert_eq!(Digest::parse(text), Err(DigestError), "{text}");
        }
    }
}
