//! Why a pull fails, in the words of containerd. Clients tell failures apart by them.

use std::path::PathBuf;

use tonic::Status;

/// Why a pull fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The name is none.
    BadReference,
    /// The registry has no such image.
    NotFound,
    /// The registry wants credentials, and there are none for it.
    NoCredentials,
    /// The registry does not take these credentials.
    WrongCredentials,
    /// The image is for other platforms.
    NoPlatform {
        /// The digest of its index or manifest.
        manifest: String,
    },
    /// There is no way to the registry, or it broke off before the answer.
    NoAnswer {
        /// What was to be asked.
        request: Request,
        /// What went wrong, as in `dial tcp 10.0.0.1:443: connect: connection refused`.
        trouble: String,
    },
    /// The registry answers with something else than was asked for.
    OddAnswer {
        /// What was asked.
        request: Request,
        /// As in `500 Internal Server Error`.
        status: String,
    },
    /// The registry broke off within the answer.
    CutOff,
    /// What arrived is something else.
    WrongDigest {
        /// What was asked for.
        expected: String,
        /// What arrived.
        actual: String,
    },
    /// What arrived is too long or too short.
    WrongSize {
        /// What was asked for.
        digest: String,
        /// How many bytes it has.
        expected: u64,
        /// How many arrived.
        actual: u64,
    },
    /// What arrived is no manifest.
    BadManifest {
        /// What was asked for.
        digest: String,
    },
    /// The node's disk takes no more.
    Write {
        /// What was to be written.
        path: PathBuf,
        /// As in `no space left on device`.
        trouble: String,
    },
}

/// A request to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `HEAD` or `GET`.
    pub method: &'static str,
    /// The whole address.
    pub url: String,
}

impl Refusal {
    /// The answer to a pull of an image of this name.
    pub fn status(&self, name: &str) -> Status {
        let text = format!("failed to pull and unpack image \"{name}\": {}", self.words(name));
        match self {
            Self::BadReference => Status::unknown(self.words(name)),
            Self::NotFound | Self::NoPlatform { .. } => Status::not_found(text),
            Self::WrongDigest { .. } | Self::WrongSize { .. } => Status::failed_precondition(text),
            _ => Status::unknown(text),
        }
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
    use prewarm_api::kruise::FailureClass;

    use super::*;
    use crate::classify::classify;

    const NAME: &str = "reg.example/shop/web:1";

    fn request() -> Request {
        Request { method: "HEAD", url: "http://reg.example/v2/shop/web/manifests/1".into() }
    }

    #[test]
    fn every_refusal_has_the_class_that_its_words_have_from_the_real_program() {
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
        }
    }

    #[test]
    fn a_method_is_written_as_the_real_program_writes_it() {
        let status = Refusal::NoAnswer { request: request(), trouble: "EOF".into() }.status(NAME);
        assert_eq!(
            status.message(),
            "failed to pull and unpack image \"reg.example/shop/web:1\": failed to do request: Head \
             \"http://reg.example/v2/shop/web/manifests/1\": EOF"
        );
    }
}
