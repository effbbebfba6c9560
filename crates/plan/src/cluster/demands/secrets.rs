//! Whether the Secrets that an object names are ready, as its condition says it.

use prewarm_api::names::condition::SECRETS_READY;

use super::DemandRecord;
use crate::condition::{ConditionStatus, Finding, Reason};

/// Whether the Secrets that an object names are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretsReady<'a> {
    /// They are being copied, as this sentence says.
    Waiting(&'a str),
    /// These do not exist.
    Missing(&'a [String]),
    /// These hold no registry credentials, each with the reason; and these do not exist.
    Unusable(&'a [String], &'a [String]),
    /// All of them are.
    Copied,
}

impl<'a> SecretsReady<'a> {
    /// What is known of the Secrets of a demand.
    pub fn of(record: &'a DemandRecord) -> Self {
        if let Some(why) = &record.secrets_wait {
            return Self::Waiting(why);
        }
        Self::named(&record.unusable_secrets, &record.missing_secrets)
    }

    /// What these lists say.
    pub fn named(unusable: &'a [String], missing: &'a [String]) -> Self {
        match (unusable.is_empty(), missing.is_empty()) {
            (true, true) => Self::Copied,
            (true, false) => Self::Missing(missing),
            (false, _) => Self::Unusable(unusable, missing),
        }
    }

    /// As a condition.
    pub fn finding(&self) -> Finding {
        let (status, reason, message) = match self {
            Self::Waiting(why) => (ConditionStatus::False, Reason::WaitingForSecrets, (*why).to_owned()),
            Self::Copied => {
                (ConditionStatus::True, Reason::Copied, "the agents can read every named Secret".to_owned())
            }
            Self::Missing(names) => (ConditionStatus::False, Reason::SecretMissing, missing(names)),
            Self::Unusable(reasons, names) => {
                let unusable = format!(
                    "these Secrets hold no registry credentials and are not copied: {}; the pull goes on without them",
                    reasons.join("; ")
                );
                let missing = (!names.is_empty()).then(|| missing(names));
                let message = [Some(unusable), missing].into_iter().flatten().collect::<Vec<_>>().join("; ");
                (ConditionStatus::False, Reason::SecretUnusable, message)
            }
        };
        Finding { type_: SECRETS_READY, status, reason, message }
    }
}

fn missing(names: &[String]) -> String {
    format!(
        "these Secrets do not exist in this namespace: {}; the pull goes on without them, and failed nodes are tried \
         again when they appear",
        names.join(", ")
    )
}
