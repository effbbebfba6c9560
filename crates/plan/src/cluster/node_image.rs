//! What is to be written to one NodeImage: all that is pending for it, in one patch (design 4).
//!
//! `tidy` takes away what nobody wants any more, `join` writes what jobs want, `silence` judges nodes that do not
//! answer, `patch` turns the difference into a JSON patch. `room` says what a NodeImage has room for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::{API_VERSION, SecretReference};
use prewarm_api::names::NODE_RUNTIME_ANNOTATION;
use prewarm_api::reference_object::ObjectReference;
use serde_json::{Value, json};

use crate::cluster::{Kind, Target, Ticket, Verb, Write};
use crate::demand::Demand;
use crate::object::{ImageKey, NodeName, ObjectKey, Uid};
use crate::time::earliest;

pub mod crowded;
mod difference;
pub mod entry;
mod holders;
mod intents;
mod join;
mod kept;
pub mod node;
mod observe;
mod origin;
mod pass;
mod patch;
pub mod record;
pub mod room;
pub mod silence;
mod tidy;
pub mod weight;
mod world;

pub use patch::owner;
pub use silence::Verdict;

use holders::Holders;
use node::Node;
use record::{ImageRecord, NodeImageRecord};

/// All nodes, with their NodeImages.
#[derive(Debug, Default)]
pub struct Nodes {
    pub(in crate::cluster) all: BTreeMap<NodeName, Node>,
    holders: Holders,
}

impl Nodes {
    /// The nodes that hold an image, by name.
    pub fn holders(&self, key: &ImageKey) -> Vec<NodeName> {
        self.holders.of(key)
    }

    /// The names and UIDs of all NodeImages.
    pub fn held(&self) -> Vec<(ObjectKey, Uid)> {
        let images = self.all.iter().filter_map(|(name, node)| Some((name, node.image.as_ref()?)));
        images.map(|(name, image)| (cluster_key(name), image.uid.clone())).collect()
    }
}

/// The key of an object without a namespace.
fn cluster_key(name: &str) -> ObjectKey {
    ObjectKey { namespace: String::new(), name: name.to_owned() }
}

/// Everything that a pass over a node depends on.
pub struct Observed<'a> {
    /// The node's name.
    pub name: &'a str,
    /// The node.
    pub node: &'a Node,
    /// The demands of the cluster.
    pub demands: &'a dyn Demands,
    /// The time.
    pub now: Timestamp,
    /// What is added to the TTL of a job that ends (`--default-ttlseconds-for-always-nodeimage`).
    pub always_ttl: i32,
}

/// What a NodeImage's entries have to know about demands and Secrets.
pub trait Demands {
    /// The demand of the owner with this UID, if it exists.
    fn demand(&self, uid: &str) -> Option<Wanted<'_>>;
    /// Whether the owner with this UID is there and cannot be read.
    fn is_unreadable(&self, _uid: &str) -> bool {
        false
    }
    /// Whether all objects of an owner's kind are known, so that one that is missing is gone.
    fn knows(&self, _owner: &ObjectReference) -> bool {
        true
    }
    /// Whether a Secret exists; `None` if that is not known.
    fn has_secret(&self, reference: &SecretReference) -> Option<bool>;
}

/// A demand, as far as its entries go.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What is wanted.
    pub demand: &'a Demand,
    /// Whether it is not over.
    pub is_unfinished: bool,
    /// The Secrets that its pulls use.
    pub secrets: &'a [SecretReference],
    /// Whether it names a Secret that is not there.
    pub lacks_secret: bool,
}

impl Wanted<'_> {
    /// Whether its results have to stay until it is over (design 8).
    fn holds_results(&self) -> bool {
        self.is_unfinished && !self.demand.is_lasting()
    }
}

/// What is to be done with a NodeImage.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make it, with the labels of its Node and owned by it.
    Create {
        /// The Node's labels.
        labels: Arc<BTreeMap<String, String>>,
        /// The Node's UID.
        node_uid: Uid,
        /// The container runtime that its kubelet reports, if it does.
        runtime: Option<Arc<str>>,
    },
    /// Delete the one with this UID.
    Delete {
        /// The UID.
        uid: Uid,
    },
    /// Change it.
    Patch {
        /// The operations of a JSON patch, with the tests that guard it.
        operations: Vec<Value>,
        /// How many pulls it starts.
        grants: usize,
    },
    /// Write these verdicts into its status.
    Judge {
        /// The UID.
        uid: Uid,
        /// The verdicts.
        verdicts: Vec<Verdict>,
    },
}

impl Action {
    /// The operations of a patch, and how many pulls it starts.
    fn patch(&self) -> (&[Value], usize) {
        match self {
            Self::Patch { operations, grants } => (operations, *grants),
            Self::Create { .. } | Self::Delete { .. } | Self::Judge { .. } => (&[], 0),
        }
    }

    /// As a write to the NodeImage of this node.
    fn write(&self, name: &NodeName) -> Write {
        let (uid, verb) = match self {
            Self::Create { labels, node_uid, runtime } => {
                (None, Verb::Create(Box::new(new(name, labels, node_uid, runtime.as_deref()))))
            }
            Self::Delete { uid } => (Some(uid.clone()), Verb::Delete),
            Self::Patch { operations, grants } => (None, Verb::Patch(operations.clone(), *grants)),
            Self::Judge { uid, verdicts } => (Some(uid.clone()), Verb::Judge(verdicts.clone())),
        };
        let asker = Target::Node(name.clone());
        Write { ticket: Ticket { asker, kind: Kind::NodeImage, key: cluster_key(name), uid }, verb }
    }
}

/// A NodeImage without any entry.
fn new(name: &str, labels: &BTreeMap<String, String>, node_uid: &str, runtime: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": API_VERSION,
        "kind": "NodeImage",
        "metadata": {"name": name, "ownerReferences": [owner(name, node_uid)]},
        "spec": {},
    });
    if !labels.is_empty() {
        object["metadata"]["labels"] = json!(labels);
    }
    if let Some(runtime) = runtime {
        object["metadata"]["annotations"] = json!({NODE_RUNTIME_ANNOTATION: runtime});
    }
    object
}

/// What follows from a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now, if anything.
    pub action: Option<Action>,
    /// When to look again although nothing has changed.
    pub wake_at: Option<Timestamp>,
}

/// Decides what is to be done with the NodeImage of a node.
pub fn decide(observed: &Observed) -> Decision {
    let node = observed.node;
    let Some(image) = &node.image else { return Decision { action: create(node), wake_at: None } };
    if image.is_terminating {
        return Decision::default();
    }
    if is_abandoned(node, image) {
        return Decision { action: Some(Action::Delete { uid: image.uid.clone() }), wake_at: None };
    }
    let (changes, wake_at) = changes(observed, image);
    let mut operations = patch::metadata(observed.name, node, image);
    operations.extend(patch::entries(image, &changes));
    operations.extend(patch::runtime(node, image, operations.is_empty()));
    if !operations.is_empty() {
        let grants = grants(node);
        return Decision {
            action: Some(Action::Patch { operations: patch::guarded(image, operations), grants }),
            wake_at,
        };
    }
    let (verdicts, judge_at) = silence::judge(node, image, observed.now);
    let action = (!verdicts.is_empty()).then(|| Action::Judge { uid: image.uid.clone(), verdicts });
    Decision { action, wake_at: earliest(wake_at, judge_at) }
}

/// A NodeImage is made as soon as its node can work (kruise R8, W17).
fn create(node: &Node) -> Option<Action> {
    let facts = node.facts.as_ref()?;
    let is_wanted = facts.is_ready && !facts.is_terminating && !facts.is_virtual() && facts.has_agent;
    is_wanted.then(|| Action::Create {
        labels: facts.labels.clone(),
        node_uid: facts.uid.clone(),
        runtime: facts.runtime.clone(),
    })
}

/// Whether the node is gone, another one has its name (kruise R7), or nobody will ever read it.
fn is_abandoned(node: &Node, image: &NodeImageRecord) -> bool {
    match &node.facts {
        None => !image.is_fake(),
        Some(facts) if facts.is_terminating || !facts.has_agent => !image.is_fake(),
        Some(facts) => image.node_uid.as_ref().is_some_and(|uid| *uid != facts.uid),
    }
}

/// The images whose entry is to be another one, or none.
type Changes = BTreeMap<Arc<str>, Option<ImageRecord>>;

fn changes(observed: &Observed, image: &NodeImageRecord) -> (Changes, Option<Timestamp>) {
    let mut wanted: BTreeMap<&str, Vec<join::Pending>> = BTreeMap::new();
    for (key, intents) in observed.node.pending() {
        wanted.entry(&key.name).or_default().push((&key.tag, intents));
    }
    let names: BTreeSet<&str> =
        image.images.keys().map(AsRef::as_ref).chain(wanted.keys().copied()).collect();
    let mut changes = Changes::new();
    let mut wake_at = None;
    for name in names {
        let old = image.images.get_key_value(name);
        let (tidied, tag_at) = old.map_or((None, None), |(_, old)| tidy::image(observed, old));
        wake_at = earliest(wake_at, tag_at);
        let intents = wanted.get(name).map_or(&[][..], Vec::as_slice);
        let mut new = join::image(observed, name, tidied, intents);
        if let Some(image) = &mut new {
            origin::settle(observed, image);
        }
        if new.as_ref() != old.map(|(_, old)| old) {
            changes.insert(old.map_or_else(|| name.into(), |(name, _)| name.clone()), new);
        }
    }
    (changes, wake_at)
}

fn grants(node: &Node) -> usize {
    let intents = node.pending().flat_map(|(_, intents)| intents.values());
    intents.filter(|intent| intent.want.is_pull()).count()
}

#[cfg(test)]
mod tests;
