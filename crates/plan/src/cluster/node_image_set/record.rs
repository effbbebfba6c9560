//! What is remembered of NodeImageSets, and whose each is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::names::{OWNER_NAME_LABEL, OWNER_NAMESPACE_LABEL};
use prewarm_api::ofen::{API_VERSION, NODE_IMAGE_SET, NodeImageSet, NodeImageSetStatus, RegistryPolicy};
use prewarm_api::reference_object::ObjectReference;

use super::spec;
use crate::cluster::demands::parts::{self, Part};
use crate::cluster::demands::{State, Statement};
use crate::cluster::{Kind, Target, Ticket, reference};
use crate::demand::selection::Selection;
use crate::demand::{Demand, Limits, Source, Until};
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::{Entry, Store};
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, Uid};

/// All NodeImageSets.
#[derive(Debug, Default)]
pub struct Sets {
    pub(in crate::cluster) all: Store<NodeSet>,
    /// Those that ImagePrefetches made, by whose they are and by node.
    pub(super) by_owner: HashMap<ObjectKey, BTreeMap<NodeName, Uid>>,
    /// All, by node.
    pub(super) by_node: HashMap<NodeName, BTreeSet<Uid>>,
}

impl Sets {
    /// The set of an ImagePrefetch on a node.
    pub fn of(&self, owner: &ObjectKey, node: &str) -> Option<&Uid> {
        self.by_owner.get(owner)?.get(node)
    }

    /// How many sets an ImagePrefetch has.
    pub fn count(&self, owner: &ObjectKey) -> usize {
        self.by_owner.get(owner).map_or(0, BTreeMap::len)
    }
}

/// One NodeImageSet.
#[derive(Clone, Debug)]
pub struct NodeSet {
    /// The object.
    pub object: NodeImageSet,
    /// Its name.
    pub key: ObjectKey,
    /// The ImagePrefetch that it says it is of, if its name agrees.
    pub owner: Option<ObjectKey>,
    /// The ImagePrefetch and the node that its name was meant for, if it does not say so itself.
    pub claimed: Option<(ObjectKey, NodeName)>,
    /// Its images: of one that was made by hand, each is a demand.
    pub parts: Vec<Part>,
    /// Since when its node is known not to exist.
    pub orphan_since: Option<Timestamp>,
    /// The demands, if it was made by hand, that its node has given up, and since when that is known.
    pub gave_up: BTreeMap<Uid, Timestamp>,
    /// Writes to it.
    pub attempts: Attempts,
    /// What comes back of its status.
    pub echo: Echo<NodeImageSetStatus>,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
}

impl NodeSet {
    /// Reads an object.
    pub fn new(object: NodeImageSet) -> Self {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        Self {
            key: ObjectKey::of(&object.metadata),
            owner: owner(&object),
            claimed: None,
            parts: parts::parts(&uid, &object.spec.images),
            object,
            orphan_since: None,
            gave_up: BTreeMap::new(),
            attempts: Attempts::default(),
            echo: Echo::default(),
            written_at: None,
        }
    }

    /// It has another form. Returns whether it asks something else than before.
    pub fn renew(&mut self, mut object: NodeImageSet) -> bool {
        object.status = self.echo.read(object.status.take());
        let owner = owner(&object);
        self.claimed = self.claimed.take().filter(|_| owner.is_none());
        let owner = owner.or_else(|| self.claimed.as_ref().map(|(owner, _)| owner.clone()));
        let has_changed = self.object.spec != object.spec || self.owner != owner;
        if has_changed {
            let uid = object.metadata.uid.clone().unwrap_or_default();
            self.parts = parts::parts(&uid, &object.spec.images);
        }
        self.owner = owner;
        self.object = object;
        has_changed
    }

    /// The node that it is about, or is meant to be about.
    pub fn node(&self) -> &str {
        self.claimed.as_ref().map_or(&*self.object.spec.node_name, |(_, node)| node)
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// How entries and events name it.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            ..reference::object(NODE_IMAGE_SET, &self.object.metadata)
        }
    }

    /// What one that was made by hand says of the demand for one of its images. It has no Secrets: it is in no namespace, and whoever
    /// may make it may not use those of all.
    pub fn statement(&self, uid: &Uid, part: &Part) -> Statement {
        let spec = &self.object.spec;
        let metadata = &self.object.metadata;
        let source = match spec.registry_policy {
            RegistryPolicy::Default => Source::Anywhere,
            RegistryPolicy::MirrorOnly => Source::Mirrors,
        };
        let demand = Demand {
            owner: parts::owner(&self.reference(), part),
            image: part.image.clone(),
            nodes: Selection::Names([spec.node_name.clone()].into()),
            at_once: usize::MAX,
            secrets: BTreeSet::new(),
            pull_policy: parts::PULL_POLICY,
            limits: Limits::of_kept(spec.image_download_retry_limit),
            sandbox: None,
            source,
            until: Until::Kept,
        };
        Statement {
            target: Target::NodeImageSet(uid.clone()),
            key: self.key.clone(),
            made_at: metadata.creation_timestamp.as_ref().map(|Time(made)| *made),
            demand: Some(demand),
            state: State::Active,
            is_edited: true,
        }
    }

    /// For a write to it.
    pub fn ticket(&self, uid: &Uid) -> Ticket {
        Ticket {
            asker: Target::NodeImageSet(uid.clone()),
            kind: Kind::NodeImageSet,
            key: self.key.clone(),
            uid: Some(uid.clone()),
        }
    }
}

impl Entry for NodeSet {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        version(&self.object.metadata)
    }
}

/// The ImagePrefetch that a set is of: its labels say so, and its name has the hash that follows from them. Anybody may write labels.
fn owner(object: &NodeImageSet) -> Option<ObjectKey> {
    let labels = object.metadata.labels.as_ref()?;
    let label = |name: &str| labels.get(name).filter(|value| !value.is_empty()).cloned();
    let key = ObjectKey { namespace: label(OWNER_NAMESPACE_LABEL)?, name: label(OWNER_NAME_LABEL)? };
    let named = spec::name(&key.name, &key.namespace, &object.spec.node_name);
    (object.metadata.name.as_deref() == Some(&*named)).then_some(key)
}
