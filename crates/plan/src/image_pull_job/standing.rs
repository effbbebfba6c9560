//! Where one node is for one job: read off the node's NodeImage and what is about to be written to it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::{CompletionType, FailureClass, PullPhase, SecretReference};

use crate::ledger::node::{Node, Want};
use crate::ledger::record::{ImageRecord, TagRecord};
use crate::node::task::Key;

/// Two losses within this time are one too many.
pub const LOSS_WINDOW: Duration = Duration::from_hours(1);
/// So long an image that keeps being removed is left alone (kruise W13).
pub const LOSS_PAUSE: Duration = Duration::from_hours(6);

/// What of a job settles where a node is.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The job's UID.
    pub uid: &'a str,
    /// What it pulls.
    pub key: &'a Key,
    /// Whether it ends.
    pub completion: CompletionType,
    /// The Secrets that its pulls use.
    pub secrets: &'a [SecretReference],
    /// Whether it selects the node.
    pub is_member: bool,
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Whether the job selects the node; if not, the node only holds a task that the job once gave it.
    pub is_member: bool,
    /// How far it is.
    pub stage: Stage,
    /// What the job still has to do there.
    pub need: Option<Need>,
    /// Whether the node can work.
    pub is_ready: bool,
    /// Where the node stands; empty if it does not say.
    pub zone: Arc<str>,
    /// Bytes that have arrived, and all, as far as the agent tells.
    pub bytes: Option<(i64, i64)>,
}

/// How far a node is (kruise R45).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was asked of it.
    Waiting,
    /// It was told to pull at this time and has not answered.
    Granted(Timestamp),
    /// It has answered and is not done.
    Acknowledged {
        /// Whether the pull has begun.
        has_started: bool,
    },
    /// It has the image.
    Succeeded,
    /// It could not pull.
    Failed,
}

/// What the job has to do on a node, apart from granting a waiting one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Secrets are missing in the entry.
    Attach,
    /// It failed for lack of a Secret that is there by now (kruise W12).
    Retry,
    /// The node has lost the image; it may be asked again from this time on (kruise W13).
    Renew(Timestamp),
    /// The job no longer selects the node, and the pull has not begun (kruise R42).
    Withdraw,
}

/// Settles where a node is. `None` if the job has nothing to do with it.
pub fn standing(claim: &Claim, node: &Node) -> Option<Standing> {
    let image = node.image.as_ref()?;
    let entry = image.tag(claim.key);
    let owned = entry.filter(|(_, tag)| tag.is_owned_by(claim.uid));
    if !claim.is_member && owned.is_none() {
        return None;
    }
    let (stage, need) = match (node.intent(claim.key, claim.uid), owned) {
        (Some(intent), _) if intent.want.is_pull() => (Stage::Granted(intent.since), None),
        (Some(_), Some((_, tag))) => (stage(tag), None),
        (None, Some((image, tag))) => {
            let stage = stage(tag);
            (stage, need(claim, image, tag, stage))
        }
        (_, None) if node.refusal(claim.key).is_some() => (Stage::Failed, None),
        (_, None) => (Stage::Waiting, None),
    };
    let bytes = owned.and_then(|(_, tag)| tag.current()?.bytes);
    let (is_ready, zone) = (node.is_ready(), node.zone());
    Some(Standing { is_member: claim.is_member, stage, need, is_ready, zone, bytes })
}

fn stage(tag: &TagRecord) -> Stage {
    match tag.current() {
        None => Stage::Granted(tag.created_at.unwrap_or(Timestamp::UNIX_EPOCH)),
        Some(status) => match status.phase {
            PullPhase::Succeeded => Stage::Succeeded,
            PullPhase::Failed => Stage::Failed,
            PullPhase::Pulling => Stage::Acknowledged { has_started: true },
            PullPhase::Waiting => Stage::Acknowledged { has_started: status.started_at.is_some() },
        },
    }
}

fn need(claim: &Claim, image: &ImageRecord, tag: &TagRecord, stage: Stage) -> Option<Need> {
    if !claim.is_member {
        let has_not_begun = matches!(stage, Stage::Granted(_) | Stage::Acknowledged { has_started: false });
        return has_not_begun.then_some(Need::Withdraw);
    }
    if claim.secrets.iter().any(|secret| !image.secrets.contains(secret)) {
        let is_for_lack =
            stage == Stage::Failed && tag.current().is_some_and(|status| is_for_lack(status.class));
        return Some(if is_for_lack { Need::Retry } else { Need::Attach });
    }
    let lost_at = tag.current()?.lost_at?;
    let renews = claim.completion == CompletionType::Never && stage == Stage::Succeeded;
    renews.then(|| Need::Renew(renew_at(tag.renewed_at, lost_at)))
}

/// Whether credentials may have been what was missing. Registries hide private images behind "not found", and agents
/// of other makers tell no class.
fn is_for_lack(class: Option<FailureClass>) -> bool {
    class.is_none_or(|class| {
        matches!(class, FailureClass::Unauthorized | FailureClass::NotFound | FailureClass::Unknown)
    })
}

fn renew_at(renewed_at: Option<Timestamp>, lost_at: Timestamp) -> Timestamp {
    match renewed_at {
        Some(renewed_at) if lost_at < renewed_at + LOSS_WINDOW => renewed_at + LOSS_PAUSE,
        Some(_) | None => lost_at,
    }
}

impl Want {
    /// Whether it makes the node pull.
    pub fn is_pull(self) -> bool {
        matches!(self, Self::Grant | Self::Retry | Self::Renew)
    }
}
