//! The classes of failed pulls: one word for status, event, metric and retry.

use serde::{Deserialize, Serialize};

/// Why a pull failed, as far as a program can distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FailureClass {
    /// The registry has no such repository, tag or digest.
    NotFound,
    /// The image exists, but not for this node's platform.
    NoPlatform,
    /// The reference is invalid.
    InvalidReference,
    /// The registry refuses the credentials, or requires some.
    Unauthorized,
    /// The registry asks for fewer requests.
    RateLimited,
    /// The registry cannot be reached, or answers with an error of its own.
    Unreachable,
    /// The registry's certificate is not trusted, or one side does not speak TLS.
    Tls,
    /// The node has no room for the image.
    NoSpace,
    /// The attempt or the task took too long.
    TimedOut,
    /// The content does not match its digest.
    Corrupt,
    /// The container runtime stopped each time it pulled the image.
    RuntimeCrash,
    /// None of the others, or a class that a newer version wrote.
    #[default]
    #[serde(other)]
    Unknown,
}

impl FailureClass {
    /// Every class, in the order of their declaration.
    pub const ALL: [Self; 12] = [
        Self::NotFound,
        Self::NoPlatform,
        Self::InvalidReference,
        Self::Unauthorized,
        Self::RateLimited,
        Self::Unreachable,
        Self::Tls,
        Self::NoSpace,
        Self::TimedOut,
        Self::Corrupt,
        Self::RuntimeCrash,
        Self::Unknown,
    ];

    /// Its name, as statuses and metrics have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::NoPlatform => "NoPlatform",
            Self::InvalidReference => "InvalidReference",
            Self::Unauthorized => "Unauthorized",
            Self::RateLimited => "RateLimited",
            Self::Unreachable => "Unreachable",
            Self::Tls => "Tls",
            Self::NoSpace => "NoSpace",
            Self::TimedOut => "TimedOut",
            Self::Corrupt => "Corrupt",
            Self::RuntimeCrash => "RuntimeCrash",
            Self::Unknown => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_written_by_its_name_and_read_again() {
        for class in FailureClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
            assert_eq!(serde_json::from_value::<FailureClass>(class.name().into()).unwrap(), class);
        }
    }

    #[test]
    fn a_class_of_a_newer_version_is_unknown() {
        assert_eq!(serde_json::from_value::<FailureClass>("Cursed".into()).unwrap(), FailureClass::Unknown);
    }
}
