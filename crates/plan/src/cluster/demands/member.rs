//! Which nodes belong to which demands, and where they are for them.

use super::record::DemandRecord;
use super::standing::standing;
use crate::cluster::node_image::node::Node;
use crate::cluster::{Kernel, Target};
use crate::demand::selection::Selection;
use crate::object::{ImageKey, NodeName, Uid};

/// Whether a demand selects a node (kruise R40). What the Node says counts before its NodeImage says so too, so that nothing
/// is begun on a node that has left (kruise W17).
pub fn is_member(record: &DemandRecord, name: &str, node: &Node) -> bool {
    let Some(image) = node.live_image().filter(|_| !node.is_agentless()) else { return false };
    let labels = node.model().map_or(&image.labels, |facts| &facts.labels);
    record.demand.nodes.takes_node(name, labels).unwrap_or_else(|| record.pods.contains_key(name))
}

impl Kernel {
    /// Something about a node has changed that may matter to any demand: its labels, its readiness, its being there.
    pub(in crate::cluster) fn node_changed(&mut self, name: &NodeName) {
        self.agenda.mark(Target::Node(name.clone()));
        for uid in self.demands.of_node(name) {
            if let Some(record) = self.demands.get_mut(&uid)
                && matches!(&record.demand.nodes, Selection::Names(names) if names.contains(&**name))
            {
                record.unknown_nodes = None;
                self.agenda.mark(record.target.clone());
            }
            self.update_standing(&uid, name);
        }
    }

    /// One entry of a node has changed.
    pub(in crate::cluster) fn entry_changed(&mut self, key: &ImageKey, name: &NodeName) {
        let concerned: Vec<Uid> = self.demands.by_image.get(key).into_iter().flatten().cloned().collect();
        for uid in concerned {
            self.update_standing(&uid, name);
        }
    }

    /// A demand has changed: every node is looked at that it may have to do with. It costs the nodes that it names, so that
    /// thousands of small ones are no more than one large one.
    pub(in crate::cluster) fn update_standings(&mut self, uid: &Uid) {
        let fixed = self.demands.get(uid).filter(|record| record.fixed_names().is_some());
        let names: Vec<NodeName> = match fixed {
            Some(record) => record.filed_under.clone(),
            None => self.nodes.all.keys().cloned().collect(),
        };
        for name in names {
            if let Some(node) = self.nodes.all.get_mut(&name) {
                node.crowded.remove(uid);
            }
            self.update_standing(uid, &name);
        }
    }

    /// Settles where one node is for one demand, and marks who makes the demand if that is somewhere else.
    pub(in crate::cluster) fn update_standing(&mut self, uid: &Uid, name: &NodeName) {
        let Some(record) = self.demands.get_mut(uid) else { return };
        let standing = self.nodes.all.get(name).and_then(|node| {
            let claim = record.claim(is_member(record, name, node))?;
            standing(&claim, node)
        });
        if record.roll.as_mut().is_some_and(|roll| roll.put(name, standing)) {
            self.agenda.mark(record.target.clone());
        }
    }
}
