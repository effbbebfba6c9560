//! Demands come, change and go, as the kinds that make them say.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::record::{DemandRecord, State};
use super::roll::Roll;
use crate::cluster::{Kernel, Target};
use crate::demand::Demand;
use crate::object::{ObjectKey, Uid};

/// What a kind says of the demand of one object.
pub struct Statement {
    /// Who makes it, and looks again when something about it has changed.
    pub target: Target,
    /// Where the object is.
    pub key: ObjectKey,
    /// When the object was made.
    pub made_at: Option<Timestamp>,
    /// What is wanted; `None` if that is as before.
    pub demand: Option<Demand>,
    /// How it stands with the object.
    pub state: State,
    /// Whether it may have wanted something else before.
    pub is_edited: bool,
}

impl Kernel {
    /// Brings everything that depends on a demand in line with it.
    pub(in crate::cluster) fn place_demand(&mut self, uid: &Uid, statement: Statement) {
        let (target, state) = (statement.target.clone(), statement.state);
        let had_roll = self.demands.get(uid).is_some_and(|record| record.roll.is_some());
        let is_new = statement.demand.is_some();
        self.demands.unlist(uid);
        if let Some(record) = self.demands.get_mut(uid) {
            statement.apply(record);
        } else if let Some(record) = statement.record() {
            self.demands.insert(uid.clone(), record);
        }
        if state == State::Active {
            self.demands.list(uid);
            if !had_roll || is_new {
                self.claim_sources(uid);
                self.count_pods(uid);
                self.enroll(uid);
            }
        } else if had_roll || is_new {
            self.dismiss(uid);
            self.claim_sources(uid);
        }
        self.agenda.mark(target);
    }

    /// The owner of the object behind a demand is gone, and the garbage collector is about to take the object. Its entries leave
    /// all nodes at once.
    pub(in crate::cluster) fn abandon_demand(&mut self, uid: &Uid) {
        self.demands.unlist(uid);
        let Some(record) = self.demands.get_mut(uid) else { return };
        record.state = State::Abandoned;
        let target = record.target.clone();
        self.dismiss(uid);
        self.claim_sources(uid);
        // One that is over has entries, too.
        self.demands.left.insert(uid.clone());
        self.agenda.mark(target);
    }

    /// The object behind a demand is gone.
    pub(in crate::cluster) fn forget_demand(&mut self, uid: &Uid) {
        self.dismiss(uid);
        self.demands.unlist(uid);
        let Some(record) = self.demands.remove(uid) else { return };
        self.unclaim_sources(&record.key, &BTreeSet::new());
        self.demands.left.insert(uid.clone());
    }

    /// Finds the entries of demands that are gone or over (kruise R58): one look at all nodes for all of them.
    pub(in crate::cluster) fn find_left_entries(&mut self) {
        if self.demands.left.is_empty() {
            return;
        }
        let left = std::mem::take(&mut self.demands.left);
        for (name, node) in &self.nodes.all {
            let tags =
                node.image.iter().flat_map(|image| image.images.values()).flat_map(|image| &image.tags);
            let mut owners = tags.flat_map(|tag| tag.owners.iter()).filter_map(|owner| owner.uid.as_deref());
            if owners.any(|uid| left.contains(uid)) {
                self.agenda.mark(Target::Node(name.clone()));
            }
        }
    }

    /// Looks where its nodes are for a demand.
    fn enroll(&mut self, uid: &Uid) {
        if let Some(record) = self.demands.get_mut(uid) {
            record.roll = Some(Roll::default());
        }
        self.demands.file(uid, &mut self.shared);
        self.update_standings(uid);
    }

    /// A demand is over: its nodes look whether they still need what it wanted.
    fn dismiss(&mut self, uid: &Uid) {
        let Some(record) = self.demands.get_mut(uid) else { return };
        let Some(roll) = record.roll.take() else { return };
        // One that was edited may have entries of another image on nodes that it no longer selects.
        if record.is_edited {
            self.demands.left.insert(uid.clone());
        }
        self.demands.unfile(uid);
        for name in roll.nodes() {
            if let Some(node) = self.nodes.all.get_mut(name) {
                node.crowded.remove(uid);
            }
        }
        self.agenda.mark_all(roll.nodes().cloned().map(Target::Node));
    }
}

impl Statement {
    /// A demand that was not there before; none if nothing is wanted.
    fn record(self) -> Option<DemandRecord> {
        let Self { target, key, made_at, demand, state, is_edited } = self;
        Some(DemandRecord {
            target,
            key,
            made_at,
            demand: demand?,
            state,
            is_edited,
            roll: None,
            pods: HashMap::new(),
            filed_under: Vec::new(),
            secrets: Vec::new(),
            missing_secrets: Vec::new(),
            unusable_secrets: Vec::new(),
            secrets_wait: None,
            unknown_nodes: None,
        })
    }

    /// A demand that has changed.
    fn apply(self, record: &mut DemandRecord) {
        (record.state, record.is_edited) = (self.state, self.is_edited);
        if let Some(demand) = self.demand {
            record.demand = demand;
            record.unknown_nodes = None;
        }
    }
}
