//! What the controller knows of the cluster, kept by difference, and what it does next.
//!
//! Whatever a watch or an answer of the API server says is *heard*; a *turn* looks at everything that has changed since
//! and returns commands. Nothing that matters lives only here: grants are in the NodeImages, results in their statuses,
//! and a ledger that is filled anew decides the same.
//!
//! ```text
//! hear ─▶ records ─▶ turn: secrets ▸ jobs ▸ lists ▸ nodes ▸ broadcasts ▸ crons ─▶ commands ─▶ API server
//!            ▲                                                              │
//!            └──────────────────────────── outcome ◀────────────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;

use crate::image_pull_job::explain::{Why, explain, told_hold};
use crate::object::ObjectKey;
use crate::object::SourceKey;
use crate::object::{ImageKey, NodeName, Uid};
use crate::secret::Copy;
use crate::selection::Requirements;
use crate::time::earliest;

pub mod attempts;
pub mod broadcast;
pub mod command;
pub mod cron;
mod gone;
mod hear;
mod hear_run;
mod intern;
pub mod job;
pub mod list;
pub mod measure;
mod member;
pub mod node;
mod outcome;
pub mod pod;
pub mod record;
mod reference;
pub mod secrets;
pub mod size;
mod timers;
mod turn;
mod turn_list;

pub use command::{Command, Outcome, Telling, Write};
pub use measure::Measured;
pub use size::Size;

use broadcast::Broadcasts;
use cron::Crons;
use job::Job;
use list::List;
use node::Node;
use pod::Pods;
use record::Shared;
use secrets::Source;
use timers::Timers;

/// What a ledger is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the copied Secrets.
    pub config_namespace: String,
    /// What is added to the TTL of a job that ends.
    pub always_ttl: i32,
    /// Whether the scheduler places the pods of BroadcastJobs; otherwise they are bound to their nodes directly.
    pub assigns_by_scheduler: bool,
    /// What the nodes have in common that agents run on, besides Linux. Others get no NodeImage and count for no job.
    pub agent_nodes: Requirements,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config_namespace: DEFAULT_CONFIG_NAMESPACE.to_owned(),
            always_ttl: 300,
            assigns_by_scheduler: true,
            agent_nodes: Requirements::default(),
        }
    }
}

/// What the controller knows.
#[derive(Debug, Default)]
pub struct Ledger {
    settings: Settings,
    /// BroadcastJobs.
    pub broadcasts: Broadcasts,
    /// AdvancedCronJobs.
    pub crons: Crons,
    shared: Shared,
    nodes: BTreeMap<NodeName, Node>,
    jobs: BTreeMap<Uid, Job>,
    job_uids: HashMap<ObjectKey, Uid>,
    /// The unfinished jobs of each image.
    by_image: BTreeMap<ImageKey, BTreeSet<Uid>>,
    lists: BTreeMap<Uid, List>,
    list_uids: HashMap<ObjectKey, Uid>,
    /// The children of each list.
    children: HashMap<Uid, BTreeSet<Uid>>,
    pods: Pods,
    copies: BTreeMap<String, Copy>,
    sources: BTreeMap<SourceKey, Source>,
    dirty: BTreeSet<Target>,
    timers: Timers<Target>,
    /// Jobs that are gone or over and whose entries have to be found.
    left: BTreeSet<Uid>,
    /// Jobs that are gone, until their watch says so. UIDs do not come back, but what a watch says may be late.
    ended: BTreeSet<Uid>,
    tellings: Vec<Telling>,
    measured: Vec<Measured>,
    passes: Passes,
}

/// Something that a turn looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    // In the order of a turn: each may change what the later ones see.
    Source(SourceKey),
    Job(Uid),
    List(Uid),
    Node(NodeName),
}

/// How many passes there were, by what they looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Over Secrets that jobs name.
    pub sources: u64,
    /// Over ImagePullJobs.
    pub jobs: u64,
    /// Over ImageListPullJobs.
    pub lists: u64,
    /// Over NodeImages.
    pub nodes: u64,
    /// Over BroadcastJobs.
    pub broadcasts: u64,
    /// Over AdvancedCronJobs.
    pub crons: u64,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(settings: Settings) -> Self {
        let broadcasts = Broadcasts::new(settings.assigns_by_scheduler);
        Self { settings, broadcasts, ..Self::default() }
    }

    /// When the next turn is due although nothing is heard.
    pub fn wake_at(&self) -> Option<Timestamp> {
        earliest(earliest(self.timers.next(), self.broadcasts.wake_at()), self.crons.wake_at())
    }

    /// The namespace of the copied Secrets.
    pub fn config_namespace(&self) -> &str {
        &self.settings.config_namespace
    }

    /// All jobs with their UIDs.
    pub fn held_jobs(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.job_uids.iter().map(|(key, uid)| (key, &**uid))
    }

    /// All lists with their UIDs.
    pub fn held_lists(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.list_uids.iter().map(|(key, uid)| (key, &**uid))
    }

    /// All NodeImages with their UIDs.
    pub fn held_node_images(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nodes.iter().filter_map(|(name, node)| Some((&**name, &*node.image.as_ref()?.uid)))
    }

    /// All Secrets of the config namespace with their UIDs.
    pub fn held_copies(&self) -> impl Iterator<Item = (&str, &str)> {
        self.copies.iter().map(|(name, copy)| (name.as_str(), copy.uid.as_str()))
    }

    /// Whether something has changed since the last turn.
    pub fn has_news(&self) -> bool {
        !self.dirty.is_empty() || !self.left.is_empty() || self.broadcasts.has_news() || self.crons.has_news()
    }

    /// The namespaces whose pods have to be watched.
    pub fn pod_namespaces(&self) -> BTreeSet<String> {
        let jobs = self.jobs.values().filter(|job| job.is_active() && job.object.spec.pod_selector.is_some());
        jobs.map(|job| job.key.namespace.clone()).collect()
    }

    /// How many passes there were.
    pub fn passes(&self) -> Passes {
        Passes { broadcasts: self.broadcasts.passes(), crons: self.crons.passes(), ..self.passes }
    }

    /// How many nodes the passes over a job have looked at so far.
    pub fn visits(&self, key: &ObjectKey) -> Option<u64> {
        Some(self.jobs.get(self.job_uids.get(key)?)?.roll.as_ref()?.visits())
    }

    /// Why each node of an unfinished job is where it is. `None` if the job is over or not known.
    pub fn explain(&self, key: &ObjectKey, now: Timestamp) -> Option<BTreeMap<NodeName, Why>> {
        let job = self.jobs.get(self.job_uids.get(key)?)?;
        let mut roll = job.roll.clone()?;
        Some(explain(&job.object, told_hold(&job.object).as_ref(), &mut roll, now))
    }

    fn soil(&mut self, target: Target) {
        self.dirty.insert(target);
    }

    fn tell(&mut self, telling: Telling) {
        self.tellings.push(telling);
    }
}

#[cfg(test)]
mod tests;
