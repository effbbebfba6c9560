//! What is remembered of ImagePrefetches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::ofen::{API_VERSION, IMAGE_PREFETCH, ImagePrefetch, ImagePrefetchStatus};
use prewarm_api::reference_object::ObjectReference;

use super::stall::Steady;
use super::wave::Past;
use crate::cluster::demands::parts::{self, Part};
use crate::cluster::demands::{State, Statement};
use crate::cluster::{Kind, Target, Ticket, reference};
use crate::demand::selection::{Requirements, Selection};
use crate::demand::{Demand, Limits, Role, Roles, Source, Until};
use crate::hash::fnv1a;
use crate::object::attempts::Attempts;
use crate::object::echo::Echo;
use crate::object::store::{Entry, Store};
use crate::object::version::version;
use crate::object::{NodeName, ObjectKey, Uid};

/// All ImagePrefetches.
#[derive(Debug, Default)]
pub struct Prefetches {
    pub(in crate::cluster) all: Store<Prefetch>,
}

/// One ImagePrefetch.
#[derive(Clone, Debug)]
pub struct Prefetch {
    /// The object.
    pub object: ImagePrefetch,
    /// Where it is.
    pub key: ObjectKey,
    /// Its images, each a demand.
    pub parts: Vec<Part>,
    /// Which nodes may be chosen.
    pub requirements: Requirements,
    /// The nodes that must hold the images; `None` before the first choice of this process.
    pub selected: Option<BTreeSet<NodeName>>,
    /// Nodes that are not ready, since when.
    pub unready: HashMap<NodeName, Timestamp>,
    /// The nodes that have begun in this generation.
    pub begun: BTreeMap<NodeName, Begun>,
    /// Nodes that fail, since when.
    pub failing: HashMap<NodeName, Timestamp>,
    /// What was last heard of nodes that are not done.
    pub steady: HashMap<NodeName, Steady>,
    /// What has happened in this generation.
    pub past: Past,
    /// What each image stood for when the registry was asked first.
    pub digests: BTreeMap<Uid, Arc<str>>,
    /// NodeImageSets that are being made.
    pub creating: BTreeSet<NodeName>,
    /// How often NodeImageSets were made: whoever keeps deleting them is answered with pauses that grow.
    pub made: BTreeMap<NodeName, Attempts>,
    /// Writes of NodeImageSets that are made.
    pub set_attempts: Attempts,
    /// Writes to it.
    pub attempts: Attempts,
    /// What comes back of its status.
    pub echo: Echo<ImagePrefetchStatus>,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
}

/// A node that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What it asks.
    pub role: Role,
    /// The demands whose entries are not written yet, each with the version that the entry had when the role was decided.
    pub untold: BTreeMap<Uid, Option<i64>>,
}

impl Prefetch {
    /// Reads an object.
    pub fn new(object: ImagePrefetch) -> Self {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        Self {
            key: ObjectKey::of(&object.metadata),
            parts: parts::parts(&uid, &object.spec.images),
            requirements: requirements(&object),
            object,
            selected: None,
            unready: HashMap::new(),
            begun: BTreeMap::new(),
            failing: HashMap::new(),
            steady: HashMap::new(),
            past: Past::default(),
            digests: BTreeMap::new(),
            creating: BTreeSet::new(),
            made: BTreeMap::new(),
            set_attempts: Attempts::default(),
            attempts: Attempts::default(),
            echo: Echo::default(),
            written_at: None,
        }
    }

    /// It has another form. Returns whether it asks something else than before.
    pub fn renew(&mut self, mut object: ImagePrefetch) -> bool {
        object.status = self.echo.read(object.status.take());
        let has_changed =
            self.object.metadata.generation != object.metadata.generation || self.object.spec != object.spec;
        if has_changed {
            let uid = object.metadata.uid.clone().unwrap_or_default();
            self.parts = parts::parts(&uid, &object.spec.images);
            self.requirements = requirements(&object);
            // A generation begins anew: whoever has the images is done at once, after the registry was asked.
            self.begun.clear();
            self.failing.clear();
            self.digests.clear();
            self.steady.clear();
            self.past = Past::default();
        }
        self.object = object;
        has_changed
    }

    /// The generation that it is in.
    pub fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// How entries and events name it.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            ..reference::object(IMAGE_PREFETCH, &self.object.metadata)
        }
    }

    /// What it says of the demand for one of its images.
    pub fn statement(&self, uid: &Uid, part: &Part) -> Statement {
        let metadata = &self.object.metadata;
        Statement {
            target: Target::Prefetch(uid.clone()),
            key: self.key.clone(),
            made_at: metadata.creation_timestamp.as_ref().map(|Time(made)| *made),
            demand: Some(self.demand(part)),
            state: if self.is_terminating() { State::Abandoned } else { State::Active },
            is_edited: true,
        }
    }

    fn demand(&self, part: &Part) -> Demand {
        let spec = &self.object.spec;
        let secrets = spec.image_pull_secrets.iter().flatten();
        let selected = self.selected.iter().flatten();
        Demand {
            owner: parts::owner(&self.reference(), part),
            image: part.image.clone(),
            nodes: Selection::Names(selected.map(ToString::to_string).collect()),
            at_once: usize::MAX,
            secrets: secrets.map(|secret| secret.name.clone()).collect(),
            pull_policy: parts::PULL_POLICY,
            limits: Limits::of_kept(None),
            sandbox: None,
            source: Source::Roles(self.roles(part)),
            until: Until::Kept,
        }
    }

    /// Who asks what for an image.
    pub fn roles(&self, part: &Part) -> Roles {
        Roles {
            digest: self.digests.get(&part.uid).cloned(),
            of_nodes: self.begun.iter().map(|(node, begun)| (node.clone(), begun.role)).collect(),
        }
    }

    /// For a write to the object itself.
    pub fn ticket(&self, uid: &Uid) -> Ticket {
        Ticket {
            asker: Target::Prefetch(uid.clone()),
            kind: Kind::ImagePrefetch,
            key: self.key.clone(),
            uid: Some(uid.clone()),
        }
    }
}

impl Entry for Prefetch {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> &str {
        version(&self.object.metadata)
    }
}

fn requirements(object: &ImagePrefetch) -> Requirements {
    object.spec.node_selector.as_ref().map(Requirements::of).unwrap_or_default()
}

/// Where a node stands in line. Each object has an order of its own, so that not all begin at the same node.
pub fn place_of(salt: &str, node: &str) -> u32 {
    // Names that differ in their last digit alone would stand in line as they are.
    fnv1a(&format!("{salt}/{node}/{salt}"))
}
