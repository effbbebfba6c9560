//! What a kind does with the demand of an object: it places it, and notes whom it grants, as far as its limit allows, and what it
//! takes back.

use std::collections::HashMap;

use jiff::Timestamp;
use prewarm_api::names::event::PULL_IMAGE_FAILED;

use super::record::{DemandRecord, State};
use super::roll::Roll;
use crate::cluster::command::Notice;
use crate::cluster::node_image::node::Want;
use crate::cluster::node_image::room::Crowd;
use crate::cluster::{Kernel, Target};
use crate::demand::Demand;
use crate::demand::selection::Selection;
use crate::object::{ImageKey, NodeName, ObjectKey, Uid};
use crate::time::earliest;

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
        self.look_up_allowed(uid);
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

    /// Looks where its nodes are for a demand.
    fn enroll(&mut self, uid: &Uid) {
        if let Some(record) = self.demands.get_mut(uid) {
            record.roll = Some(Roll::default());
        }
        self.demands.file(uid, &mut self.shared);
        self.update_standings(uid);
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
            refusal: None,
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

/// What is wanted of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wants {
    /// What is wanted of which nodes.
    pub of_nodes: Vec<(NodeName, Want)>,
    /// When to look again although nothing has changed.
    pub wake_at: Option<Timestamp>,
}

/// Names in a selector that stand for no node that can pull.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownNodes {
    /// No NodeImage has these.
    pub absent: Vec<String>,
    /// No agent runs on these, by what their labels say.
    pub agentless: Vec<String>,
}

/// Decides what an active demand wants of its nodes. One that is held begins nothing.
pub fn wants(demand: &Demand, is_held: bool, roll: &mut Roll, now: Timestamp) -> Wants {
    let mut wants = Wants::default();
    let of_nodes = &mut wants.of_nodes;
    of_nodes.extend(roll.to_withdraw().into_iter().map(|node| (node, Want::Withdraw)));
    of_nodes.extend(roll.to_attach().into_iter().map(|node| (node, Want::Attach)));
    if is_held {
        return wants;
    }
    let mut slots = demand.at_once.saturating_sub(roll.taken(now));
    for want in [Want::Retry, Want::Renew, Want::Grant] {
        let chosen = match want {
            Want::Retry => roll.to_retry(slots),
            Want::Renew => roll.to_renew(slots, now),
            _ => roll.waiting().first(slots),
        };
        slots -= chosen.len();
        of_nodes.extend(chosen.into_iter().map(|node| (node, want)));
    }
    // With no place left, whoever is in line gets the first that a silent node gives up.
    wants.wake_at = earliest(roll.next_renewal(now), roll.next_overdue().filter(|_| slots == 0));
    wants
}

impl Kernel {
    /// Notes what a demand wants of nodes. They write it in their own pass. Says whether all of them have room for it.
    pub(in crate::cluster) fn note_wants(
        &mut self,
        uid: &Uid,
        of_nodes: Vec<(NodeName, Want)>,
        now: Timestamp,
    ) -> bool {
        let Some(record) = self.demands.get(uid) else { return true };
        let (target, image) = (record.target.clone(), record.demand.image.clone());
        let Some(image) = image else { return true };
        let mut have_room = true;
        for (name, want) in of_nodes {
            have_room &= self.intend(uid, &image, &name, want, now);
        }
        // What was just noted needs no further pass.
        self.agenda.unmark(&target);
        have_room
    }

    /// Notes what a demand wants of a node, or that there is no room for it. Says which.
    fn intend(&mut self, uid: &Uid, image: &ImageKey, name: &NodeName, want: Want, now: Timestamp) -> bool {
        let admitted = self.admit(uid, name, want);
        let Some(node) = self.nodes.all.get_mut(name) else { return true };
        match admitted {
            Ok(weight) => node.intend(image, uid.clone(), want, now, weight),
            Err(crowd) => {
                node.crowded.insert(image, uid.clone(), crowd);
                self.record_size(uid, image, name, crowd);
            }
        }
        self.update_standing(uid, name);
        self.agenda.mark(Target::Node(name.clone()));
        admitted.is_ok()
    }

    /// An entry that fits nowhere fails with its reason. Others wait, and a condition of whoever wants them says so.
    fn record_size(&mut self, uid: &Uid, image: &ImageKey, name: &NodeName, crowd: Crowd) {
        let Some(record) = self.demands.get(uid).filter(|_| crowd == Crowd::TooLarge) else { return };
        let note = format!(
            "{}:{} cannot be written to node {name}: its entry is larger than a NodeImage may be; shorten \
             sandboxConfig or pullSecrets",
            image.name, image.tag
        );
        let about = record.about();
        self.events.push(Notice::warning(PULL_IMAGE_FAILED, note).about(about));
    }

    /// Whether a demand selects by pods of which not all are known. It would look as if it had no node.
    pub(in crate::cluster) fn awaits_pods(&self, uid: &Uid) -> bool {
        let record = self.demands.get(uid).filter(|record| record.is_by_pods());
        record.is_some_and(|record| !self.demands.pods.is_known(&record.key.namespace))
    }

    /// Looks up which names of a selector stand for no node that can pull, unless that is known.
    pub(in crate::cluster) fn find_unknown_nodes(&mut self, uid: &Uid) {
        let Some(record) = self.demands.get_mut(uid) else { return };
        let Selection::Names(names) = &record.demand.nodes else { return };
        if record.unknown_nodes.is_none() {
            let mut unknown = UnknownNodes::default();
            for name in names {
                match self.nodes.all.get(name.as_str()) {
                    Some(node) if node.is_agentless() => unknown.agentless.push(name.clone()),
                    Some(node) if node.live_image().is_some() => {}
                    _ => unknown.absent.push(name.clone()),
                }
            }
            record.unknown_nodes = Some(unknown);
        }
    }
}
