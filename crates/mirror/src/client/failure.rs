//! What mirrors did wrong, and the error when none of them did better. Nothing that a mirror was sent is in it.

use std::collections::BTreeSet;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;

use crate::hosts::Reason;

/// Why one mirror did not serve what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("does not have it (404)")]
    NotThere,
    #[error(
        "wants credentials ({0}): add the `header` that it asks for to its table, or let it serve without"
    )]
    Unauthorized(u16),
    #[error("asks for fewer requests (429)")]
    RateLimited,
    #[error("answers {0}")]
    Refused(u16),
    #[error("cannot be reached ({0})")]
    Unreached(String),
    #[error("cannot be reached within {0:?}")]
    Unconnected(Duration),
    #[error("is not trusted, or does not speak TLS ({0}): check its `ca`, its `client` and its address")]
    Tls(String),
    #[error("did not answer within {0:?}")]
    NoAnswer(Duration),
    #[error("stalled at byte {at} for {limit:?}")]
    Stalled { at: u64, limit: Duration },
    #[error("broke off at byte {at}")]
    BrokenOff { at: u64 },
    #[error("brought less than {least} bytes within {within:?} at byte {at}")]
    Slow { at: u64, least: u64, within: Duration },
    #[error("sent other content than the digest says")]
    Corrupt,
    #[error("has {length} bytes of it, and it has {size}")]
    Length { length: u64, size: u64 },
    #[error("sends more than {most} bytes")]
    TooLong { most: u64 },
    #[error("answers with {0}")]
    Odd(&'static str),
    #[error("redirects to {0}, which is the registry itself, and that is never asked")]
    ToUpstream(String),
    #[error("redirects more than {0} times")]
    TooManyRedirects(usize),
    #[error("cannot be asked: {0}")]
    Setup(Reason),
}

impl Failure {
    /// The class of this failure.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::NotThere => FailureClass::NotFound,
            Self::Unauthorized(_) => FailureClass::Unauthorized,
            Self::RateLimited => FailureClass::RateLimited,
            Self::Tls(_) | Self::Setup(_) => FailureClass::Tls,
            Self::NoAnswer(_) | Self::Stalled { .. } | Self::Slow { .. } => FailureClass::TimedOut,
            Self::Corrupt | Self::Length { .. } | Self::TooLong { .. } => FailureClass::Corrupt,
            Self::Refused(_)
            | Self::Unreached(_)
            | Self::Unconnected(_)
            | Self::BrokenOff { .. }
            | Self::Odd(_)
            | Self::ToUpstream(_)
            | Self::TooManyRedirects(_) => FailureClass::Unreachable,
        }
    }

    /// Whether the same mirror may do better in a moment.
    pub(super) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Refused(500..)
                | Self::Unreached(_)
                | Self::Unconnected(_)
                | Self::NoAnswer(_)
                | Self::Stalled { .. }
                | Self::Slow { .. }
                | Self::BrokenOff { .. }
        )
    }
}

/// A mirror that was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its address.
    pub mirror: String,
    pub failure: Failure,
}

/// Why content could not be brought.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Nobody may be asked.
    #[error("{what} has no mirror that may be asked: {why}")]
    NoMirror { what: String, why: String },
    /// Each mirror that may be asked failed.
    #[error("no mirror serves {what}: {}", listed(.tried))]
    Failed { what: String, tried: Vec<Tried> },
    /// The whole was there, and it was not what its digest says.
    #[error("{what} came with other content than its digest says from {}; repair or remove that mirror", .from.join(", "))]
    Corrupt { what: String, from: Vec<String> },
}

impl FetchError {
    /// The class of the failure: that of what most needs a person, and `NotFound` only if no mirror has it.
    pub fn class(&self) -> FailureClass {
        const URGENCY: [FailureClass; 6] = [
            FailureClass::Corrupt,
            FailureClass::Unauthorized,
            FailureClass::Tls,
            FailureClass::RateLimited,
            FailureClass::TimedOut,
            FailureClass::Unreachable,
        ];
        match self {
            Self::NoMirror { .. } => FailureClass::Unreachable,
            Self::Corrupt { .. } => FailureClass::Corrupt,
            Self::Failed { tried, .. } => {
                let classes: BTreeSet<FailureClass> = tried.iter().map(|one| one.failure.class()).collect();
                URGENCY.into_iter().find(|class| classes.contains(class)).unwrap_or(FailureClass::NotFound)
            }
        }
    }

    /// Whether every mirror answered, and none of them has it: worth asking again soon.
    pub fn is_not_there_yet(&self) -> bool {
        self.class() == FailureClass::NotFound
    }

    /// Whether there is nobody to ask, which no waiting changes.
    pub fn has_no_mirror(&self) -> bool {
        matches!(self, Self::NoMirror { .. })
    }

    /// The mirrors that had a part in wrong content, in the order in which they served it. A single one is proven to lie.
    pub fn suspects(&self) -> &[String] {
        if let Self::Corrupt { from, .. } = self { from } else { &[] }
    }

    /// The same error, which also names mirrors that were not asked because they lie.
    #[must_use]
    pub fn naming(self, liars: &BTreeSet<String>) -> Self {
        let (what, mut tried) = match self {
            Self::Failed { what, tried } => (what, tried),
            Self::NoMirror { what, .. } if !liars.is_empty() => (what, Vec::new()),
            other => return other,
        };
        let lied = liars.iter().map(|liar| Tried { mirror: liar.clone(), failure: Failure::Corrupt });
        tried.extend(lied);
        Self::Failed { what, tried }
    }
}

fn listed(tried: &[Tried]) -> String {
    let lines: Vec<String> = tried.iter().map(|one| format!("{} {}", one.mirror, one.failure)).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(failures: &[Failure]) -> FetchError {
        let tried = failures.iter().cloned();
        let tried = tried.map(|failure| Tried { mirror: "https://m.example".into(), failure }).collect();
        FetchError::Failed { what: "reg.example/a:v1".into(), tried }
    }

    #[test]
    fn it_is_not_found_only_if_no_mirror_has_it() {
        assert!(failed(&[Failure::NotThere, Failure::NotThere]).is_not_there_yet());
        for (failure, class) in [
            (Failure::Refused(503), FailureClass::Unreachable),
            (Failure::Unauthorized(401), FailureClass::Unauthorized),
            (Failure::Corrupt, FailureClass::Corrupt),
            (Failure::NoAnswer(Duration::from_secs(1)), FailureClass::TimedOut),
        ] {
            let error = failed(&[Failure::NotThere, failure, Failure::NotThere]);
            assert_eq!(error.class(), class);
            assert!(!error.is_not_there_yet());
        }
    }

    #[test]
    fn the_error_says_what_each_mirror_did() {
        let error = failed(&[Failure::NotThere, Failure::Stalled { at: 5, limit: Duration::from_secs(20) }]);
        assert_eq!(
            error.to_string(),
            "no mirror serves reg.example/a:v1: https://m.example does not have it (404); \
             https://m.example stalled at byte 5 for 20s"
        );
    }
    #[test]
    fn the_error_names_mirrors_that_were_not_asked_because_they_lie() {
        let liars = BTreeSet::from(["https://liar.example".to_owned()]);
        let lies = "https://liar.example sent other content than the digest says";
        let error = failed(&[Failure::NotThere]).naming(&liars);
        assert_eq!(error.class(), FailureClass::Corrupt);
        assert!(error.to_string().ends_with(lies), "{error}");
        let nobody = FetchError::NoMirror { what: "reg.example/a:v1".into(), why: String::new() };
        assert_eq!(nobody.clone().naming(&BTreeSet::new()), nobody);
        assert_eq!(nobody.naming(&liars).to_string(), format!("no mirror serves reg.example/a:v1: {lies}"));
    }
}
