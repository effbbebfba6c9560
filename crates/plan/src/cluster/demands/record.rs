//! One demand, and what is derived from it once instead of at every pass.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;
use prewarm_api::reference::ImageRef;
use prewarm_api::reference_object::ObjectReference;

use super::roll::Roll;
use super::standing::Claim;
use super::{UnknownNodes, parts};
use crate::cluster::Target;
use crate::demand::selection::Selection;
use crate::demand::{Demand, Until};
use crate::object::{ImageKey, NodeName, ObjectKey, SourceKey};

/// One demand.
#[derive(Clone, Debug)]
pub struct DemandRecord {
    /// Who makes it, and looks again when something about it has changed.
    pub target: Target,
    /// Where that object is.
    pub key: ObjectKey,
    /// When that object was made.
    pub made_at: Option<Timestamp>,
    /// What is wanted.
    pub demand: Demand,
    /// How it stands with the object.
    pub state: State,
    /// Whether it may have wanted something else before.
    pub is_edited: bool,
    /// Its nodes, while it is active.
    pub roll: Option<Roll>,
    /// How many matching pods there are on each node, if it selects by pods.
    pub pods: HashMap<NodeName, usize>,
    /// The nodes under whose names it is filed, if it has to do with no others.
    pub filed_under: Vec<NodeName>,
    /// The Secrets that its pulls use.
    pub secrets: Vec<SecretReference>,
    /// Secrets that it names and that do not exist.
    pub missing_secrets: Vec<String>,
    /// Secrets that it names and that hold no registry credentials, each with the reason.
    pub unusable_secrets: Vec<String>,
    /// Why its Secrets are not ready.
    pub secrets_wait: Option<String>,
    /// Why its image may not be had in its namespace.
    pub refusal: Option<String>,
    /// Names in its selector that stand for no node that can pull; `None` if that has to be looked up again.
    pub unknown_nodes: Option<UnknownNodes>,
}

/// How it stands with the object that makes a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is at work.
    Active,
    /// It is over or on its way out; its entries stay for as long as their results may.
    Over,
    /// Its owner is gone: its entries go before it does.
    Abandoned,
}

impl DemandRecord {
    /// Whether it is at work: neither over nor on its way out.
    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Whether it selects nodes by pods.
    pub fn is_by_pods(&self) -> bool {
        matches!(self.demand.nodes, Selection::Pods(_))
    }

    /// The names of its nodes, if it names nodes and always has: only those can hold a task of it. One that was edited may
    /// have tasks anywhere.
    pub fn fixed_names(&self) -> Option<&BTreeSet<String>> {
        match &self.demand.nodes {
            Selection::Names(names) if !self.is_edited => Some(names),
            _ => None,
        }
    }

    /// The Secrets of its namespace that it names, each once.
    pub fn sources(&self) -> BTreeSet<SourceKey> {
        self.demand
            .secrets
            .iter()
            .map(|name| SourceKey { namespace: self.key.namespace.clone(), name: name.clone() })
            .collect()
    }

    /// The registry of its image.
    pub fn registry(&self) -> Option<String> {
        let ImageKey { name, tag } = self.demand.image.as_ref()?;
        ImageRef::from_parts(name, tag).ok().map(|reference| reference.registry().to_owned())
    }

    /// Whether there are any.
    pub fn names_secrets(&self) -> bool {
        !self.demand.secrets.is_empty()
    }

    /// Whether it names a Secret that its pulls cannot use, be it that nobody has looked yet.
    pub fn lacks_secret(&self) -> bool {
        self.names_secrets() && self.secrets.len() < self.sources().len()
    }

    /// The object that makes it, for events: one that wants several images has a demand for each.
    pub fn about(&self) -> ObjectReference {
        let owner = self.demand.owner.clone();
        let uid = owner.uid.as_deref().map(|uid| parts::object(uid).to_owned());
        ObjectReference { uid, ..owner }
    }

    /// What settles where a node is for it.
    pub fn claim(&self, node: &str, is_member: bool) -> Option<Claim<'_>> {
        Some(Claim {
            uid: self.demand.owner.uid.as_deref()?,
            key: self.demand.image.as_ref()?,
            is_lasting: self.demand.is_lasting(),
            asks_always: self.demand.asks_always(node),
            leaves_at_once: self.demand.until == Until::Kept,
            secrets: &self.secrets,
            lacks_secret: self.lacks_secret(),
            is_member,
        })
    }
}
