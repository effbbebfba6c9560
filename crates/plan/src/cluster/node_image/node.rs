//! One node: what its Node and its NodeImage say, and what is about to be written to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use prewarm_api::kruise::NodeImage;
use prewarm_api::names::{LINUX, NODE_TYPE_LABEL, OS_LABEL, VIRTUAL_KUBELET};

use super::crowded::Crowded;
use super::intents::Intents;
use super::kept::Fields;
use super::record::{NodeImageRecord, Shared, TagRecord};
use super::silence::{Begun, Verdict};

use crate::demand::selection::Requirements;
use crate::object::attempts::Attempts;
use crate::object::{ImageKey, NodeZone, Uid};

/// The label with a node's zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// What a kubelet reports as its container runtime is a name and a version. Longer texts are not passed on.
const LONGEST_RUNTIME: usize = 256;

/// One node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What its Node says, if there is one.
    pub facts: Option<Facts>,
    /// Its NodeImage, if there is one.
    pub image: Option<NodeImageRecord>,
    /// When this process last saw its agent report.
    pub reported_at: Option<Timestamp>,
    /// Pulls that have begun and not ended.
    pub begun: Begun,
    /// Writes to its NodeImage.
    pub attempts: Attempts,
    /// The UID of the NodeImage that is being written, if there was one.
    pub addressed: Option<Uid>,
    /// The verdicts that are being written.
    pub judging: Vec<Verdict>,
    /// Jobs that wait for room.
    pub crowded: Crowded,
    pub(super) intents: Intents,
    pub(super) refusals: BTreeMap<ImageKey, String>,
    pub(super) fields: Fields,
    /// How many entries the next patch may change: fewer after one was refused, to find the entry that is not taken.
    pub(super) most_entries: Option<usize>,
    /// The UID of the last NodeImage that is gone. UIDs do not come back, but late answers about it may.
    gone: Option<Uid>,
}

/// What a Node says.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its UID.
    pub uid: Uid,
    /// Its labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Whether it can work.
    pub is_ready: bool,
    /// Where it stands; empty if it does not say.
    pub zone: NodeZone,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether an agent runs there, or is to run there.
    pub has_agent: bool,
    /// The container runtime that its kubelet reports; nothing if it does not.
    pub runtime: Option<Arc<str>>,
}

/// What a job wants of a node and is not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is wanted.
    pub want: Want,
    /// When it was decided.
    pub since: Timestamp,
    /// The version that the entry had then; of a grant, if the job had the entry already.
    pub version: Option<i64>,
    /// Whether it is being written, so that it may arrive at any time.
    pub is_under_way: bool,
    /// How many bytes it adds to the NodeImage at most.
    pub weight: usize,
}

/// What a job can want of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Pull the image.
    Grant,
    /// Pull it once more: the reason of the failure is gone.
    Retry,
    /// Pull it once more: the node has lost it.
    Renew,
    /// Pull it once more: what was answered before does not count for what is asked now.
    Ask,
    /// Use these Secrets.
    Attach,
    /// Do not pull.
    Withdraw,
}

impl Facts {
    /// Reads a Node. `agents` is what the nodes have in common that agents run on.
    pub fn read(node: NodeObject, agents: &Requirements, shared: &mut Shared) -> Self {
        let labels = node.metadata.labels.unwrap_or_default();
        let is_linux = labels.get(OS_LABEL).is_none_or(|system| system == LINUX);
        let status = node.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let runtime = status.node_info.map(|info| info.container_runtime_version).unwrap_or_default();
        let is_ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
        Self {
            uid: node.metadata.uid.unwrap_or_default().into(),
            is_ready,
            has_agent: is_linux && agents.matches(&labels),
            zone: shared.text(labels.get(ZONE_LABEL).map_or("", String::as_str)),
            labels: shared.labels(labels),
            is_terminating: node.metadata.deletion_timestamp.is_some(),
            runtime: (1..=LONGEST_RUNTIME).contains(&runtime.len()).then(|| shared.text(&runtime)),
        }
    }

    /// Whether no container runtime is behind it (kruise R2).
    pub fn is_virtual(&self) -> bool {
        self.labels.get(NODE_TYPE_LABEL).is_some_and(|kind| kind == VIRTUAL_KUBELET)
    }
}

impl Node {
    /// Whether the node can work and be told so. Others come last, so that nobody waits for them.
    pub fn is_ready(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.is_ready) && !self.attempts.is_failing()
    }

    /// The Node whose labels its NodeImage has, or is about to have (kruise R2, R10).
    pub fn model(&self) -> Option<&Facts> {
        self.facts.as_ref().filter(|facts| !facts.is_terminating && !facts.is_virtual())
    }

    /// Whether no agent will ever answer for it. A missing pod is no sign of that: agents come later than nodes.
    pub fn is_agentless(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| !facts.has_agent)
    }

    /// Where the node stands.
    pub fn zone(&self) -> NodeZone {
        self.facts.as_ref().map(|facts| facts.zone.clone()).unwrap_or_default()
    }

    /// The NodeImage that jobs can select: one that is not on its way out.
    pub fn live_image(&self) -> Option<&NodeImageRecord> {
        self.image.as_ref().filter(|image| !image.is_terminating)
    }

    /// The tags that it has to pull. If a tag is listed twice, only the higher version counts.
    pub fn tags(&self) -> impl Iterator<Item = &TagRecord> {
        let images = self.image.iter().flat_map(|image| image.images.values());
        images.flat_map(|image| {
            image.tags.iter().filter(|tag| tag.current().is_some() || !image.is_outdone(tag))
        })
    }

    /// What a job wants of it and has not got.
    pub fn intent(&self, key: &ImageKey, uid: &str) -> Option<&Intent> {
        self.intents.get(key)?.get(uid).filter(|intent| !self.is_done(key, uid, intent))
    }

    /// Whether the NodeImage is as a job wants it, or has become another.
    pub(super) fn is_done(&self, key: &ImageKey, uid: &str, intent: &Intent) -> bool {
        let tag = self.image.as_ref().and_then(|image| image.tag(key)).map(|(_, tag)| tag);
        let is_owned = tag.is_some_and(|tag| tag.is_owned_by(uid));
        match intent.want {
            Want::Grant => is_owned && tag.map(|tag| tag.version) > intent.version,
            Want::Withdraw | Want::Attach => !is_owned,
            Want::Retry | Want::Renew | Want::Ask => !is_owned || tag.map(|tag| tag.version) > intent.version,
        }
    }

    /// Why an entry cannot be written.
    pub fn refusal(&self, key: &ImageKey) -> Option<&str> {
        self.refusals.get(key).map(String::as_str)
    }

    /// A job wants something of it, for which there is room.
    pub fn intend(&mut self, key: &ImageKey, uid: Uid, want: Want, since: Timestamp, weight: usize) {
        let tag = self.image.as_ref().and_then(|image| image.tag(key)).map(|(_, tag)| tag);
        let version = tag.filter(|tag| want != Want::Grant || tag.is_owned_by(&uid)).map(|tag| tag.version);
        let intent = Intent { want, since, version, is_under_way: false, weight };
        self.intents.entry(key.clone()).or_default().insert(uid, intent);
    }

    /// What the next patch carries, by entry.
    pub fn pending(&self) -> impl Iterator<Item = (&ImageKey, &BTreeMap<Uid, Intent>)> {
        self.intents.iter().take(self.most_entries.unwrap_or(usize::MAX))
    }

    /// What jobs want of it, by entry.
    pub fn intents(&self) -> impl Iterator<Item = (&ImageKey, &BTreeMap<Uid, Intent>)> {
        self.intents.iter()
    }

    /// Whether jobs want anything of it.
    pub fn has_intents(&self) -> bool {
        !self.intents.is_empty()
    }

    /// Whether there is nothing to know about it.
    pub fn is_empty(&self) -> bool {
        self.facts.is_none() && self.image.is_none() && !self.attempts.is_busy()
    }

    /// A patch that carries what is pending is on its way. Says whose pulls those are.
    pub fn send(&mut self) -> Vec<Uid> {
        let most = self.most_entries.unwrap_or(usize::MAX);
        let mut pulls = Vec::new();
        for (uid, intent) in self.intents.values_mut().take(most).flatten() {
            intent.is_under_way = true;
            if intent.want.is_pull() {
                pulls.push(uid.clone());
            }
        }
        pulls
    }

    /// The NodeImage is gone, and with it all that was to be written.
    pub fn forget_image(&mut self) {
        *self = Self {
            facts: self.facts.take(),
            attempts: std::mem::take(&mut self.attempts),
            addressed: self.addressed.take(),
            gone: self.image.take().map(|image| image.uid).or(self.gone.take()),
            ..Self::default()
        };
    }

    /// Whether an answer is about a NodeImage that is known to be gone.
    pub fn has_forgotten(&self, object: &NodeImage) -> bool {
        self.gone.is_some() && self.gone.as_deref() == object.metadata.uid.as_deref()
    }
}
