//! A job's nodes and pods, counted by difference: a change costs the same with ten nodes and with ten thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fitness::Misfit;
use super::pod::{Pod, Standing};
use crate::object::{NodeName, Uid};

/// The nodes and pods of one job.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    restart_limit: i32,
    places: BTreeMap<NodeName, Place>,
    tally: Tally,
    empty: BTreeSet<NodeName>,
    unwanted: BTreeMap<Arc<str>, Uid>,
    unfinished: BTreeMap<Arc<str>, Uid>,
    unscheduled: BTreeMap<Arc<str>, Arc<str>>,
    misfits: BTreeMap<Misfit, usize>,
    visits: u64,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nodes that should have run the pod in the end (kruise R115).
    pub desired: usize,
    /// Those of them whose pod is not over, or not there yet.
    pub open: usize,
    /// Pods that wait or run, on nodes that fit.
    pub active: usize,
    /// Pods that ended well.
    pub succeeded: usize,
    /// Pods that failed, or were started again too often.
    pub failed: usize,
    /// Pods that wait or run where they should not.
    pub unwanted: usize,
}

/// What is known of one node.
#[derive(Clone, Debug, Default)]
struct Place {
    node: NodeStanding,
    pods: BTreeMap<Arc<str>, Pod>,
}

/// Whether the job's pods fit a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeStanding {
    /// There is no such node.
    #[default]
    Absent,
    /// They do.
    Fits,
    /// They do not, for this reason.
    Misfit(Misfit),
}

impl Roll {
    /// An empty roll of a job whose pods may be started again so often.
    pub fn new(restart_limit: i32) -> Self {
        Self { restart_limit, ..Self::default() }
    }

    /// How many there are.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Fitting nodes without a pod, in the order of their names.
    pub fn empty(&self) -> impl Iterator<Item = &NodeName> {
        self.empty.iter()
    }

    /// Names and UIDs of pods that have to go, because their node does not fit (any more) or has another one.
    pub fn unwanted(&self) -> impl Iterator<Item = (&Arc<str>, &Uid)> {
        self.unwanted.iter()
    }

    /// Names and UIDs of pods that are not over.
    pub fn unfinished(&self) -> impl Iterator<Item = (&Arc<str>, &Uid)> {
        self.unfinished.iter()
    }

    /// Names of pods that the scheduler finds no place for, and its words.
    pub fn unscheduled(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<str>)> {
        self.unscheduled.iter()
    }

    /// How many nodes do not fit, by reason.
    pub fn misfits(&self) -> &BTreeMap<Misfit, usize> {
        &self.misfits
    }

    /// The pod of this name on a node.
    pub fn pod(&self, node: &str, name: &str) -> Option<&Pod> {
        self.places.get(node)?.pods.get(name)
    }

    /// All pods.
    pub fn into_pods(self) -> impl Iterator<Item = Pod> {
        self.places.into_values().flat_map(|place| place.pods.into_values())
    }

    /// How often a node was looked at.
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// A node is like this now. Returns whether that is news.
    pub fn set_node(&mut self, name: &NodeName, standing: NodeStanding) -> bool {
        self.visits += 1;
        if self.places.get(name).map_or(&NodeStanding::Absent, |place| &place.node) == &standing {
            return false;
        }
        self.change(name, |place| place.node = standing);
        true
    }

    /// A pod is like this now.
    pub fn put(&mut self, pod: Pod) {
        self.change(&pod.node.clone(), |place| drop(place.pods.insert(pod.name.clone(), pod)));
    }

    /// A pod is gone from a node.
    pub fn remove(&mut self, node: &NodeName, name: &str) {
        self.change(node, |place| drop(place.pods.remove(name)));
    }

    fn change(&mut self, name: &NodeName, change: impl FnOnce(&mut Place)) {
        let mut place = self.places.remove(name).unwrap_or_default();
        self.count(name, &place, Sign::Minus);
        change(&mut place);
        self.count(name, &place, Sign::Plus);
        if place.node != NodeStanding::Absent || !place.pods.is_empty() {
            self.places.insert(name.clone(), place);
        }
    }

    fn count(&mut self, name: &NodeName, place: &Place, sign: Sign) {
        let mut has_active = false;
        let mut has_other = false;
        for pod in place.pods.values() {
            let standing = pod.standing(self.restart_limit);
            let is_first = !has_active;
            match standing {
                Standing::Active if place.node == NodeStanding::Fits && is_first => has_active = true,
                Standing::Active => {}
                _ => has_other = true,
            }
            self.count_pod(pod, standing, place.node == NodeStanding::Fits && is_first, sign);
        }
        let fits = place.node == NodeStanding::Fits;
        // What has ended stays counted, also when its node does not fit any more.
        let is_desired = fits || has_other;
        let is_empty = fits && place.pods.is_empty();
        sign.add(&mut self.tally.desired, is_desired);
        sign.add(&mut self.tally.open, is_empty || has_active);
        sign.keep(&mut self.empty, name, is_empty);
        if let NodeStanding::Misfit(misfit) = &place.node {
            let count = self.misfits.entry(misfit.clone()).or_default();
            sign.add(count, true);
            if *count == 0 {
                self.misfits.remove(misfit);
            }
        }
    }

    fn count_pod(&mut self, pod: &Pod, standing: Standing, is_wanted: bool, sign: Sign) {
        let is_active = standing == Standing::Active;
        let is_unwanted = is_active && !is_wanted;
        sign.add(&mut self.tally.active, is_active && is_wanted);
        sign.add(&mut self.tally.unwanted, is_unwanted);
        sign.add(&mut self.tally.succeeded, standing == Standing::Succeeded);
        sign.add(&mut self.tally.failed, matches!(standing, Standing::Failed | Standing::Exhausted));
        sign.note(&mut self.unwanted, &pod.name, is_unwanted.then_some(&pod.uid));
        let is_unfinished = matches!(standing, Standing::Active | Standing::Exhausted);
        sign.note(&mut self.unfinished, &pod.name, is_unfinished.then_some(&pod.uid));
        let words = pod.unschedulable.as_ref().filter(|_| is_active && is_wanted);
        sign.note(&mut self.unscheduled, &pod.name, words);
    }
}

/// Whether something is counted or no longer counted.
#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

impl Sign {
    fn add(self, count: &mut usize, holds: bool) {
        match self {
            Self::Plus => *count += usize::from(holds),
            Self::Minus => *count -= usize::from(holds),
        }
    }

    fn keep(self, set: &mut BTreeSet<NodeName>, name: &NodeName, holds: bool) {
        match self {
            Self::Plus if holds => drop(set.insert(name.clone())),
            Self::Minus if holds => drop(set.remove(name)),
            _ => {}
        }
    }

    fn note<V: Clone>(self, map: &mut BTreeMap<Arc<str>, V>, name: &Arc<str>, value: Option<&V>) {
        match (self, value) {
            (Self::Plus, Some(value)) => drop(map.insert(name.clone(), value.clone())),
            (Self::Minus, Some(_)) => drop(map.remove(name)),
            (_, None) => {}
        }
    }
}
