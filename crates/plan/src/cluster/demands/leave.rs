//! Demands that are over or gone, and their entries.

use super::record::State;
use crate::cluster::{Kernel, Target};
use crate::object::Uid;

impl Kernel {
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
        let wanted = self.sources_of(&record.key);
        self.unclaim_sources(&record.key, &wanted);
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

    /// A demand is over: its nodes look whether they still need what it wanted.
    pub(super) fn dismiss(&mut self, uid: &Uid) {
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
