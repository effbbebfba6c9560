//! What somebody wants of nodes, whatever kind of object says so. Granting, joining, sharing, explaining and counting work
//! on this alone; a kind is read into it at the edge (`cluster/image_pull_job/demand.rs`).

use std::collections::BTreeSet;

use prewarm_api::kruise::{ImagePullPolicy, SandboxConfig};
use prewarm_api::reference_object::ObjectReference;

use crate::object::ImageKey;
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

/// From where a node may fetch an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// From wherever its runtime is configured to: the registry, or mirrors of it.
    #[default]
    Anywhere,
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
    /// Until its owner goes: nodes that join are served too, and images that get lost are brought back.
    Withdrawn,
}

impl Demand {
    /// Whether it holds until its owner goes.
    pub fn is_lasting(&self) -> bool {
        self.until == Until::Withdrawn
    }
}
