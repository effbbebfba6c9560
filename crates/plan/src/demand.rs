//! What somebody wants of nodes, whatever kind of object says so. Granting, joining, sharing, explaining and counting work
//! on this alone; a kind is read into it at the edge (`cluster/image_pull_job/record.rs`, `cluster/image_prefetch/record.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prewarm_api::kruise::{ImagePullPolicy, SandboxConfig};
use prewarm_api::reference_object::ObjectReference;

use crate::object::{ImageKey, NodeName};
use selection::Selection;

pub mod pull_policy;
pub mod selection;

/// What somebody wants of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// On whose behalf, as the entries of NodeImages name it.
    pub owner: ObjectReference,
    /// Which image; `None` if what was written cannot be read.
    pub image: Option<ImageKey>,
    /// On which nodes.
    pub nodes: Selection,
    /// On how many nodes at once.
    pub at_once: usize,
    /// The names of the Secrets with credentials, in the owner's namespace.
    pub secrets: BTreeSet<String>,
    /// Whether a present image is asked for again.
    pub pull_policy: ImagePullPolicy,
    /// How long and how often a node may try.
    pub limits: Limits,
    /// Labels and annotations for the runtime.
    pub sandbox: Option<SandboxConfig>,
    /// From where a node may fetch the image.
    pub source: Source,
    /// Until when it holds.
    pub until: Until,
}

/// How long and how often a node may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many seconds one attempt may take.
    pub timeout_seconds: i32,
    /// How many attempts may fail.
    pub backoff_limit: i32,
}

impl Limits {
    /// Of images that are brought in advance and kept: there is time, a pull that stands still is cut off much earlier, and what
    /// fails is tried for ever unless there is a limit.
    pub fn of_kept(backoff_limit: Option<i32>) -> Self {
        Self { timeout_seconds: 6 * 60 * 60, backoff_limit: backoff_limit.unwrap_or(i32::MAX) }
    }
}

/// From where nodes may fetch an image.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Source {
    /// From wherever the runtime of each is configured to: the registry, or mirrors of it.
    #[default]
    Anywhere,
    /// From mirrors alone.
    Mirrors,
    /// Some nodes ask the registry, and the others ask mirrors for what those were given.
    Roles(Roles),
}

/// Who asks the registry, and who asks mirrors alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// What the tag stood for when the registry was asked first.
    pub digest: Option<Arc<str>>,
    /// The nodes that have a role by now.
    pub of_nodes: BTreeMap<NodeName, Role>,
}

/// What one node asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The registry, whether or not it has the image: its answer says that the credentials are good.
    Seed,
    /// Mirrors alone.
    Mirror,
}

/// From where one node may fetch an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From wherever its runtime is configured to.
    Anywhere,
    /// From mirrors alone; with a digest, that and nothing else.
    Mirrors(Option<Arc<str>>),
    /// As it was said before.
    AsBefore,
}

/// Until when a demand holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until every node has the image or could not get it.
    Done {
        /// How many seconds that may take in all.
        deadline_seconds: Option<i64>,
        /// How many seconds later its owner goes.
        ttl_seconds: Option<i32>,
    },
    /// Until its owner goes: nodes that join are served too, and images that get lost are brought back. Once a day all is pulled
    /// anew.
    Withdrawn,
    /// Until its owner goes, or no longer selects the node: nothing is asked for anew that is there.
    Kept,
}

impl Demand {
    /// Whether it holds until its owner goes.
    pub fn is_lasting(&self) -> bool {
        matches!(self.until, Until::Withdrawn | Until::Kept)
    }

    /// From where a node may fetch the image.
    pub fn origin(&self, node: &str) -> Origin {
        match &self.source {
            Source::Anywhere => Origin::Anywhere,
            Source::Mirrors => Origin::Mirrors(None),
            Source::Roles(roles) => match roles.of_nodes.get(node) {
                Some(Role::Seed) => Origin::Anywhere,
                Some(Role::Mirror) => Origin::Mirrors(roles.digest.clone()),
                None => Origin::AsBefore,
            },
        }
    }

    /// Whether a node asks the registry even if it has the image.
    pub fn asks_always(&self, node: &str) -> bool {
        match &self.source {
            Source::Roles(roles) => roles.of_nodes.get(node) == Some(&Role::Seed),
            Source::Anywhere => self.pull_policy == ImagePullPolicy::Always,
            Source::Mirrors => false,
        }
    }
}
