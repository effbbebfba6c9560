//! What a demand wants of its nodes at this moment: whom it grants, as far as its limit allows, and what it takes back.

use jiff::Timestamp;
use prewarm_api::names::event::PULL_IMAGE_FAILED;

use super::roll::Roll;
use crate::cluster::command::Notice;
use crate::cluster::node_image::node::Want;
use crate::cluster::node_image::room::Crowd;
use crate::cluster::{Kernel, Target};
use crate::demand::Demand;
use crate::demand::selection::Selection;
use crate::object::{ImageKey, NodeName, Uid};
use crate::time::earliest;

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
        let about = record.demand.owner.clone();
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
