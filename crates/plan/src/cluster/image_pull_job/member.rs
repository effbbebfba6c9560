//! Which nodes belong to which jobs, and where they are for them.

use super::record::Job;
use super::standing::standing;
use crate::cluster::node_image::node::Node;
use crate::cluster::{Kernel, Target};
use crate::demand::selection::Selection;
use crate::object::{ImageKey, NodeName, Uid};

/// Whether a job selects a node (kruise R40). What the Node says counts before its NodeImage says so too, so that nothing
/// is begun on a node that has left (kruise W17).
pub fn is_member(job: &Job, name: &str, node: &Node) -> bool {
    let Some(image) = node.live_image().filter(|_| !node.is_agentless()) else { return false };
    let labels = node.model().map_or(&image.labels, |facts| &facts.labels);
    job.demand.nodes.takes_node(name, labels).unwrap_or_else(|| job.pods.contains_key(name))
}

impl Kernel {
    /// Something about a node has changed that may matter to any job: its labels, its readiness, its being there.
    pub(in crate::cluster) fn node_changed(&mut self, name: &NodeName) {
        self.agenda.mark(Target::Node(name.clone()));
        for uid in self.jobs.active() {
            if let Some(job) = self.jobs.all.get_mut(&uid)
                && matches!(&job.demand.nodes, Selection::Names(names) if names.contains(&**name))
            {
                job.unknown_nodes = None;
                self.agenda.mark(Target::Job(uid.clone()));
            }
            self.update_standing(&uid, name);
        }
    }

    /// One entry of a node has changed.
    pub(in crate::cluster) fn entry_changed(&mut self, key: &ImageKey, name: &NodeName) {
        let jobs: Vec<Uid> = self.jobs.by_image.get(key).into_iter().flatten().cloned().collect();
        for uid in jobs {
            self.update_standing(&uid, name);
        }
    }

    /// A job has changed: every node is looked at.
    pub(in crate::cluster) fn update_standings(&mut self, uid: &Uid) {
        let names: Vec<NodeName> = self.nodes.all.keys().cloned().collect();
        for name in names {
            self.update_standing(uid, &name);
        }
    }

    /// Settles where one node is for one job, and marks the job if that is somewhere else.
    pub(in crate::cluster) fn update_standing(&mut self, uid: &Uid, name: &NodeName) {
        let Some(job) = self.jobs.all.get_mut(uid) else { return };
        let standing = self.nodes.all.get(name).and_then(|node| {
            let claim = job.claim(is_member(job, name, node))?;
            standing(&claim, node)
        });
        if job.roll.as_mut().is_some_and(|roll| roll.put(name, standing)) {
            self.agenda.mark(Target::Job(uid.clone()));
        }
    }
}
