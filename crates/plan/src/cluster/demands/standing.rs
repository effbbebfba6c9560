//! Which nodes belong to a demand, and where each of them is for it: read off the node's NodeImage and what is about to be written
//! to it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::{FailureClass, PullPhase, SecretReference};

use super::record::DemandRecord;
use crate::cluster::node_image::entry::Share;
use crate::cluster::node_image::node::{Node, Want};
use crate::cluster::node_image::record::{ImageRecord, TagRecord, TagStatus};
use crate::cluster::node_image::room::Crowd;
use crate::cluster::{Kernel, Target};
use crate::demand::Until;
use crate::demand::selection::Selection;
use crate::object::{ImageKey, NodeName, NodeZone, Uid};
use crate::time::after;

/// Two losses within this time are one too many.
pub const LOSS_WINDOW: Duration = Duration::from_hours(1);
/// So long an image that keeps being removed is left alone (kruise W13).
pub const LOSS_PAUSE: Duration = Duration::from_hours(6);

/// What of a job settles where a node is.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the job")]
pub struct Claim<'a> {
    /// The job's UID.
    pub uid: &'a str,
    /// What it pulls.
    pub key: &'a ImageKey,
    /// Whether it holds until its owner goes.
    pub is_lasting: bool,
    /// Whether the registry is asked even if the node has the image.
    pub asks_always: bool,
    /// Whether nothing stays on a node that it does not select.
    pub leaves_at_once: bool,
    /// The Secrets that its pulls use.
    pub secrets: &'a [SecretReference],
    /// Whether it names a Secret that is not there.
    pub lacks_secret: bool,
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
    pub zone: NodeZone,
    /// Bytes that have arrived, and all, as far as the agent tells.
    pub bytes: Option<(i64, i64)>,
    /// What keeps a pull from ending, of demands that are kept: they try on, and people want to know why.
    pub trouble: Option<(FailureClass, Arc<str>)>,
}

/// How far a node is (kruise R45).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was asked of it.
    Waiting,
    /// Nothing can be asked of it: its NodeImage has no room for the job.
    Crowded(Crowd),
    /// A write that tells it to pull is on its way.
    Telling,
    /// It was told to pull at this time, or is to be told, and has not answered.
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

impl Stage {
    /// Whether the node has had its turn.
    pub fn is_served(self) -> bool {
        !matches!(self, Self::Waiting | Self::Crowded(_))
    }
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

impl Need {
    /// What is wanted of the node then.
    pub fn want(self) -> Want {
        match self {
            Self::Attach => Want::Attach,
            Self::Retry => Want::Retry,
            Self::Renew(_) => Want::Renew,
            Self::Withdraw => Want::Withdraw,
        }
    }
}

/// Settles where a node is. `None` if the job has nothing to do with it.
pub fn standing(claim: &Claim, node: &Node) -> Option<Standing> {
    node.image.as_ref()?;
    let owned = owned(claim, node).map(|(_, tag)| tag);
    let intent = node.intent(claim.key, claim.uid);
    let pull = intent.filter(|intent| intent.want.is_pull());
    if !claim.is_member && owned.is_none() && !pull.is_some_and(|pull| pull.is_under_way) {
        return None;
    }
    let stage = match (pull, owned) {
        (Some(pull), _) if pull.is_under_way => Stage::Telling,
        (Some(pull), _) => Stage::Granted(pull.since),
        (None, Some(tag)) => stage(claim, tag),
        (None, None) if node.refusal(claim.key).is_some() => Stage::Failed,
        (None, None) => match node.crowded.get(claim.key, claim.uid) {
            None => Stage::Waiting,
            // It fits nowhere, and waiting does not help.
            Some(Crowd::TooLarge) => Stage::Failed,
            Some(crowd) => Stage::Crowded(crowd),
        },
    };
    let need = needed(claim, node).filter(|_| intent.is_none());
    let bytes = owned.and_then(|tag| tag.current()?.bytes);
    let trouble = owned.filter(|_| claim.leaves_at_once).and_then(|tag| tag.current()?.trouble.clone());
    let (is_ready, zone) = (node.is_ready(), node.zone());
    Some(Standing { is_member: claim.is_member, stage, need, is_ready, zone, bytes, trouble })
}

/// What the job has to do on a node that holds a task of it, whether or not it is about to.
pub fn needed(claim: &Claim, node: &Node) -> Option<Need> {
    let (image, tag) = owned(claim, node)?;
    // What is not taken is not tried again until there is more room.
    let is_refused = node.refusal(claim.key).is_some() || node.crowded.get(claim.key, claim.uid).is_some();
    need(claim, image, tag, stage(claim, tag)).filter(|_| !is_refused)
}

/// Whether a grant has anything to do: the job does not have the tag, or has it with a result of others.
pub fn may_be_granted(claim: &Claim, node: &Node) -> bool {
    owned(claim, node).is_none_or(|(_, tag)| stage(claim, tag) == Stage::Waiting)
}

fn owned<'a>(claim: &Claim, node: &'a Node) -> Option<(&'a ImageRecord, &'a TagRecord)> {
    let (image, tag) = node.image.as_ref()?.tag(claim.key)?;
    tag.is_owned_by(claim.uid).then_some((image, tag))
}

fn stage(claim: &Claim, tag: &TagRecord) -> Stage {
    match tag.current() {
        None => Stage::Granted(tag.created_at.unwrap_or(Timestamp::UNIX_EPOCH)),
        Some(status) => match status.phase {
            PullPhase::Succeeded => match status.share(claim.uid) {
                Share::Refused(_) => Stage::Failed,
                // It was pulled before this job came. What is there is enough unless the registry has to be asked.
                Share::None if claim.asks_always => Stage::Waiting,
                Share::None | Share::Counts => Stage::Succeeded,
            },
            PullPhase::Failed => Stage::Failed,
            PullPhase::Pulling => Stage::Acknowledged { has_started: true },
            PullPhase::Waiting => Stage::Acknowledged { has_started: status.started_at.is_some() },
        },
    }
}

fn need(claim: &Claim, image: &ImageRecord, tag: &TagRecord, stage: Stage) -> Option<Need> {
    if !claim.is_member {
        let has_not_begun = matches!(stage, Stage::Granted(_) | Stage::Acknowledged { has_started: false });
        return (has_not_begun || claim.leaves_at_once).then_some(Need::Withdraw);
    }
    let class = |status: &TagStatus| match status.share(claim.uid) {
        Share::Refused(class) => Some(class),
        Share::Counts | Share::None => status.class,
    };
    let is_for_lack = stage == Stage::Failed && tag.current().map(class).is_some_and(is_for_lack);
    if claim.secrets.iter().any(|secret| !image.secrets.contains(secret)) {
        return Some(if is_for_lack { Need::Retry } else { Need::Attach });
    }
    // Another job may have brought the Secret along, for another tag of the image.
    let has_secrets = !claim.secrets.is_empty() && !claim.lacks_secret;
    if is_for_lack && tag.secret_missing && has_secrets {
        return Some(Need::Retry);
    }
    let lost_at = tag.current()?.lost_at?;
    let renews = claim.is_lasting && stage == Stage::Succeeded;
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
        Some(renewed_at) if lost_at < after(renewed_at, LOSS_WINDOW) => after(renewed_at, LOSS_PAUSE),
        Some(_) | None => lost_at,
    }
}

impl Want {
    /// Whether it makes the node pull.
    pub fn is_pull(self) -> bool {
        matches!(self, Self::Grant | Self::Retry | Self::Renew | Self::Ask)
    }
}

/// Whether a demand selects a node (kruise R40). What the Node says counts before its NodeImage says so too, so that nothing
/// is begun on a node that has left (kruise W17).
pub fn is_member(record: &DemandRecord, name: &str, node: &Node) -> bool {
    let Some(image) = node.live_image().filter(|_| !node.is_agentless()) else { return false };
    let labels = node.model().map_or(&image.labels, |facts| &facts.labels);
    record.demand.nodes.takes_node(name, labels).unwrap_or_else(|| record.pods.contains_key(name))
}

impl Kernel {
    /// Something about a node has changed that may matter to any demand: its labels, its readiness, its being there.
    pub(in crate::cluster) fn node_changed(&mut self, name: &NodeName) {
        self.agenda.mark(Target::Node(name.clone()));
        self.mark_prefetches_for(name);
        self.mark_sets_on(name);
        for uid in self.demands.of_node(name) {
            if let Some(record) = self.demands.get_mut(&uid)
                && matches!(&record.demand.nodes, Selection::Names(names) if names.contains(&**name))
            {
                record.unknown_nodes = None;
                self.agenda.mark(record.target.clone());
            }
            self.update_standing(&uid, name);
        }
    }

    /// One entry of a node has changed.
    pub(in crate::cluster) fn entry_changed(&mut self, key: &ImageKey, name: &NodeName) {
        let concerned: Vec<Uid> = self.demands.by_image.get(key).into_iter().flatten().cloned().collect();
        for uid in concerned {
            self.update_standing(&uid, name);
        }
    }

    /// A demand has changed: every node is looked at that it may have to do with. It costs the nodes that it names, so that
    /// thousands of small ones are no more than one large one.
    pub(in crate::cluster) fn update_standings(&mut self, uid: &Uid) {
        let fixed = self.demands.get(uid).filter(|record| record.fixed_names().is_some());
        let names: Vec<NodeName> = match fixed {
            Some(record) => record.filed_under.clone(),
            None => self.nodes.all.keys().cloned().collect(),
        };
        for name in names {
            if let Some(node) = self.nodes.all.get_mut(&name) {
                node.crowded.remove(uid);
            }
            self.update_standing(uid, &name);
        }
    }

    /// Settles where one node is for one demand, and marks who makes the demand if that is somewhere else.
    pub(in crate::cluster) fn update_standing(&mut self, uid: &Uid, name: &NodeName) {
        let Some(record) = self.demands.get_mut(uid) else { return };
        let standing = self.nodes.all.get(name).and_then(|node| {
            let claim = record.claim(name, is_member(record, name, node))?;
            standing(&claim, node)
        });
        if record.roll.as_mut().is_some_and(|roll| roll.put(name, standing)) {
            let is_shown = record.demand.until == Until::Kept;
            self.agenda.mark(record.target.clone());
            if is_shown {
                self.mark_sets_on(name);
            }
        }
    }
}
