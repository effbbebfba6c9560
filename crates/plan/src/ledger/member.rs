//! Which nodes belong to which jobs, and where they are for them.

use super::job::Job;
use super::node::Node;
use super::{Ledger, Target};
use crate::image_pull_job::standing::standing;
use crate::object::{ImageKey, NodeName, Uid};
use crate::selection::Selection;

/// Whether a job selects a node (kruise R40). What the Node says counts before its NodeImage says so too, so that nothing
/// is begun on a node that has left (kruise W17).
pub fn is_member(job: &Job, name: &str, node: &Node) -> bool {
    let Some(image) = node.live_image().filter(|_| !node.is_agentless()) else { return false };
    let labels = node.model().map_or(&image.labels, |facts| &facts.labels);
    job.selection.takes_node(name, labels).unwrap_or_else(|| job.pods.contains_key(name))
}

impl Ledger {
    /// Something about a node has changed that may matter to any job: its labels, its readiness, its being there.
    pub(super) fn regard(&mut self, name: &NodeName) {
        self.soil(Target::Node(name.clone()));
        let active: Vec<Uid> = self.by_image.values().flatten().cloned().collect();
        for uid in active {
            if let Some(job) = self.jobs.get_mut(&uid)
                && matches!(&job.selection, Selection::Names(names) if names.contains(&**name))
            {
                job.unknown_nodes = None;
                self.dirty.insert(Target::Job(uid.clone()));
            }
            self.restand(&uid, name);
        }
    }

    /// One entry of a node has changed.
    pub(super) fn restand_image(&mut self, key: &ImageKey, name: &NodeName) {
        let jobs: Vec<Uid> = self.by_image.get(key).into_iter().flatten().cloned().collect();
        for uid in jobs {
            self.restand(&uid, name);
        }
    }

    /// A job has changed: every node is looked at.
    pub(super) fn restand_nodes(&mut self, uid: &Uid) {
        let names: Vec<NodeName> = self.nodes.keys().cloned().collect();
        for name in names {
            self.restand(uid, &name);
        }
    }

    /// Settles where one node is for one job, and wakes the job if that is somewhere else.
    pub(super) fn restand(&mut self, uid: &Uid, name: &NodeName) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let standing = self.nodes.get(name).and_then(|node| {
            let claim = job.claim(is_member(job, name, node))?;
            standing(&claim, node)
        });
        if job.roll.as_mut().is_some_and(|roll| roll.put(name, standing)) {
            self.soil(Target::Job(uid.clone()));
        }
    }
}
