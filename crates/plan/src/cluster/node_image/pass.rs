//! The pass over a node: all that is pending for its NodeImage leaves as one patch.

use jiff::Timestamp;

use super::node::Want;
use super::world::World;
use super::{Action, Nodes, Observed, decide};
use crate::cluster::command::{Command, Settled, Target};
use crate::cluster::demands::is_member;
use crate::cluster::demands::standing::{Need, may_be_granted, needed};
use crate::cluster::interface::Pass;
use crate::cluster::kind::Subject;
use crate::cluster::{Kernel, Kind, reference};
use crate::object::NodeName;
use crate::time::earliest;

impl Pass for Nodes {
    type Id = NodeName;

    fn pass(kernel: &mut Kernel, name: &NodeName, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.node_pass(name, now, commands);
    }

    fn settle(kernel: &mut Kernel, name: &NodeName, settled: Settled) {
        kernel.settle_node_image(name, settled);
    }
}

impl Kernel {
    fn node_pass(&mut self, name: &NodeName, now: Timestamp, commands: &mut Vec<Command>) {
        self.passes.count(Subject::Node);
        self.settle_intents(name);
        self.let_in(name);
        if self.drop_stale_pulls(name, now) {
            // The jobs come first; they come back to this node, or not.
            return self.agenda.mark(Target::Node(name.clone()));
        }
        let world = World::new(&self.demands, &self.secrets, &self.quarantine, &self.known, &self.settings);
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        let mut wake_at = None;
        let mut sent = Vec::new();
        let mut answer = None;
        if node.attempts.is_blocked(now) {
            wake_at = node.attempts.pause_ends();
        } else {
            let always_ttl = self.settings.always_ttl;
            let observed = Observed { name, node, demands: &world, now, always_ttl };
            let decision = decide(&observed);
            wake_at = earliest(wake_at, decision.wake_at);
            let (operations, grants) = decision.action.as_ref().map_or((&[][..], 0), Action::patch);
            answer = node.kept_fields(operations).filter(|_| grants == 0);
            let is_dropped = answer.as_ref().is_some_and(|answer| !answer.lost().is_empty());
            if let Some(action) = decision.action {
                let write = action.write(name);
                let uid = node.image.as_ref().map(|image| image.uid.clone());
                let fingerprint = write.verb.fingerprint_for(uid.as_ref());
                if is_dropped {
                    node.attempts.note_dropped(fingerprint);
                }
                if let Some(at) = node.attempts.repeats_at(fingerprint, now) {
                    wake_at = earliest(wake_at, Some(at));
                } else {
                    node.attempts.begin(fingerprint);
                    node.addressed = uid;
                    match &action {
                        Action::Judge { verdicts, .. } => node.judging.clone_from(verdicts),
                        Action::Patch { operations, .. } => {
                            node.begin_fields(operations);
                            sent = node.send();
                        }
                        Action::Create { .. } | Action::Delete { .. } => {}
                    }
                    commands.push(Command::Write(write));
                }
            }
        }
        if node.is_empty() {
            self.nodes.all.remove(name);
        }
        self.agenda.wake(Target::Node(name.clone()), wake_at);
        if let Some(answer) = answer {
            let about = reference::node_image(name, self.nodes.all.get(name));
            self.note_answer(Kind::NodeImage, about, Some(&answer));
        }
        for uid in sent {
            // It is as active as before and holds the same place, so whoever makes the demand need not look.
            let Some(target) = self.demands.get(&uid).map(|record| record.target.clone()) else { continue };
            let is_dirty = self.agenda.is_marked(&target);
            self.update_standing(&uid, name);
            if !is_dirty {
                self.agenda.unmark(&target);
            }
        }
    }

    /// Drops what is no longer wanted of a node: what was taken back while it waited to be written is not written.
    fn settle_intents(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name).filter(|node| node.has_intents()) else { return };
        let demands = &self.demands;
        let dropped = node.settle_intents(|node, key, uid, intent| {
            let record = demands.get(uid);
            let record =
                record.filter(|record| record.is_active() && record.demand.image.as_ref() == Some(key));
            let claim = record.and_then(|record| record.claim(name, is_member(record, name, node)));
            claim.is_some_and(|claim| match intent.want {
                Want::Grant => claim.is_member && may_be_granted(&claim, node),
                Want::Ask => claim.is_member,
                want => needed(&claim, node).map(Need::want) == Some(want),
            })
        });
        if !dropped.is_empty() {
            node.crowded.room_changed();
        }
        for uid in dropped {
            self.update_standing(&uid, name);
        }
    }

    /// Pulls that had to wait were decided on an older view, and limits are counted on a fresh one (design 6). Returns
    /// whether there were any.
    fn drop_stale_pulls(&mut self, name: &NodeName, now: Timestamp) -> bool {
        let node = self.nodes.all.get_mut(name).filter(|node| !node.attempts.is_blocked(now));
        let dropped = node.map(|node| node.drop_stale_pulls(now)).unwrap_or_default();
        for uid in &dropped {
            self.update_standing(uid, name);
        }
        !dropped.is_empty()
    }
}
