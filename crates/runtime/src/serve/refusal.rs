//! Why a pull fails, in the words of containerd. Clients classify failures by them.

use std::path::PathBuf;

use prewarm_api::kruise::FailureClass;
use tonic::Status;

use crate::classify::classify;

/// Why a pull fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The name is not a valid reference.
    BadReference,
    /// The registry has no such image.
    NotFound,
    /// The registry requires credentials, and there are none for it.
    NoCredentials,
    /// The registry does not accept these credentials.
    WrongCredentials,
    /// The image is for other platforms only.
    NoPlatform {
        /// The digest of its index or manifest.
        manifest: String,
    },
    /// The registry cannot be reached, or the connection broke before the answer.
    NoAnswer {
        /// The request that failed.
        request: Request,
        /// The error, as in `dial tcp 10.0.0.1:443: connect: connection refused`.
        trouble: String,
    },
    /// The registry answers with an unexpected status.
    OddAnswer {
        /// The request.
        request: Request,
        /// The status, as in `500 Internal Server Error`.
        status: String,
    },
    /// The connection broke in the middle of the answer.
    CutOff,
    /// The content has another digest.
    WrongDigest {
        /// The requested digest.
        expected: String,
        /// The digest of the content that arrived.
        actual: String,
    },
    /// The content is too long or too short.
    WrongSize {
        /// The requested digest.
        digest: String,
        /// The size according to the manifest.
        expected: u64,
        /// The size of the content that arrived.
        actual: u64,
    },
    /// The content is not a manifest.
    BadManifest {
        /// The requested digest.
        digest: String,
    },
    /// The node's disk is full or cannot be written.
    Write {
        /// The file that should be written.
        path: PathBuf,
        /// The error, as in `no space left on device`.
        trouble: String,
    },
}

/// A request to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `HEAD` or `GET`.
    pub method: &'static str,
    /// The whole URL.
    pub url: String,
}

impl Refusal {
    /// The gRPC status for a pull of the image with this name.
    pub fn status(&self, name: &str) -> Status {
        let text = format!("failed to pull and unpack image \"{name}\": {}", self.words(name));
        match self {
            Self::BadReference => Status::unknown(self.words(name)),
            Self::NotFound | Self::NoPlatform { .. } => Status::not_found(text),
            Self::WrongDigest { .. } | Self::WrongSize { .. } => Status::failed_precondition(text),
            _ => Status::unknown(text),
        }
    }

    /// What clients make of it.
    pub fn class(&self) -> FailureClass {
        let status = self.status("");
        classify(status.code(), status.message())
    }

    fn words(&self, name: &str) -> String {
        match self {
            Self::BadReference => {
                format!("failed to parse image reference \"{name}\": invalid reference format")
            }
            Self::NotFound => format!("failed to resolve image: {name}: not found"),
            Self::NoCredentials => format!("{DENIED}: no basic auth credentials"),
            Self::WrongCredentials => DENIED.to_owned(),
            Self::NoPlatform { manifest } => {
                format!("no match for platform in manifest {manifest}: not found")
            }
            Self::NoAnswer { request, trouble } => {
                format!("failed to do request: {} \"{}\": {trouble}", request.verb(), request.url)
            }
            Self::OddAnswer { request, status } => {
                format!("unexpected status from {} request to {}: {status}", request.method, request.url)
            }
            Self::CutOff => "failed to copy: failed to read expected number of bytes: unexpected EOF".into(),
            Self::WrongDigest { expected, actual } => format!(
                "failed commit on ref \"layer-{expected}\": unexpected commit digest {actual}, expected {expected}: \
                 failed precondition"
            ),
            Self::WrongSize { digest, expected, actual } => format!(
                "failed commit on ref \"layer-{digest}\": \"layer-{digest}\" failed size validation: \
                 {actual} != {expected}: failed precondition"
            ),
            Self::BadManifest { digest } => format!("could not decode manifest {digest}"),
            Self::Write { path, trouble } => {
                format!("failed to copy: failed to send write: write {}: {trouble}", path.display())
            }
        }
    }
}

const DENIED: &str = "failed to resolve image: pull access denied, repository does not exist or may require \
                      authorization: authorization failed";

impl Request {
    /// The method as Go's client writes it.
    fn verb(&self) -> &'static str {
        if self.method == "HEAD" { "Head" } else { "Get" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "reg.example/shop/web:1";

    fn request() -> Request {
        Request { method: "HEAD", url: "http://reg.example/v2/shop/web/manifests/1".into() }
    }

    #[test]
    fn every_refusal_is_classified_as_that_of_the_real_program() {
        let text = ToString::to_string;
        for (refusal, class) in [
            (Refusal::BadReference, FailureClass::InvalidReference),
            (Refusal::NotFound, FailureClass::NotFound),
            (Refusal::NoCredentials, FailureClass::Unauthorized),
            (Refusal::WrongCredentials, FailureClass::Unauthorized),
            (Refusal::NoPlatform { manifest: text("sha256:00") }, FailureClass::NoPlatform),
            (
                Refusal::NoAnswer { request: request(), trouble: text("connect: connection refused") },
                FailureClass::Unreachable,
            ),
            (
                Refusal::OddAnswer { request: request(), status: text("503 Service Unavailable") },
                FailureClass::Unreachable,
            ),
            (Refusal::CutOff, FailureClass::Corrupt),
            (
                Refusal::WrongDigest { expected: text("sha256:00"), actual: text("sha256:11") },
                FailureClass::Corrupt,
            ),
            (Refusal::WrongSize { digest: text("sha256:00"), expected: 2, actual: 1 }, FailureClass::Corrupt),
            (Refusal::BadManifest { digest: text("sha256:00") }, FailureClass::Corrupt),
            (
                Refusal::Write { path: "/images/ingest".into(), trouble: text("no space left on device") },
                FailureClass::NoSpace,
            ),
        ] {
            let status = refusal.status(NAME);
            assert_eq!(classify(status.code(), status.message()), class, "{status}");
            assert_eq!(refusal.class(), class, "{status}");
        }
    }

    #[test]
    fn a_method_is_spelled_as_by_the_real_program() {
        let status = Refusal::NoAnswer { request: request(), trouble: "EOF".into() }.status(NAME);
        assert_eq!(
            status.message(),
            "failed to pull and unpack image \"reg.example/shop/web:1\": failed to do request: Head \
             \"http://reg.example/v2/shop/web/manifests/1\": EOF"
        );
    }
}
