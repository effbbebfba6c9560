//! The pass over a node: all that is pending for its NodeImage leaves as one patch.

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;

use super::node::Want;
use super::room::{self, Crowd, Room};
use super::{Action, Demands, Nodes, Observed, Wanted, decide};
use crate::cluster::command::{Command, Outcome, Target, Ticket};
use crate::cluster::demands::standing::{Need, may_be_granted, needed};
use crate::cluster::demands::{self, State, is_member};
use crate::cluster::interface::Pass;
use crate::cluster::kind::Subject;
use crate::cluster::quarantine::Quarantine;
use crate::cluster::secret::Secrets;
use crate::cluster::{Kernel, Object, Settings};
use crate::object::{NodeName, Uid};
use crate::time::earliest;

impl Pass for Nodes {
    type Id = NodeName;

    fn pass(kernel: &mut Kernel, name: &NodeName, now: Timestamp, commands: &mut Vec<Command>) {
        kernel.node_pass(name, now, commands);
    }

    fn settle(
        kernel: &mut Kernel,
        name: &NodeName,
        _ticket: &Ticket,
        outcome: Outcome<Object>,
        now: Timestamp,
        jitter: f64,
    ) {
        kernel.settle_node_image(name, outcome, now, jitter);
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
        let world = World::new(&self.demands, &self.secrets, &self.quarantine, &self.settings);
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        let mut wake_at = None;
        let mut sent = Vec::new();
        if node.attempts.is_blocked(now) {
            wake_at = node.attempts.pause_ends();
        } else {
            let always_ttl = self.settings.always_ttl;
            let observed = Observed { name, node, demands: &world, now, always_ttl };
            let decision = decide(&observed);
            wake_at = earliest(wake_at, decision.wake_at);
            if let Some(action) = decision.action {
                let write = action.write(name);
                let uid = node.image.as_ref().map(|image| image.uid.clone());
                let fingerprint = write.verb.fingerprint_for(uid.as_ref());
                if let Some(at) = node.attempts.repeats_at(fingerprint, now) {
                    wake_at = earliest(wake_at, Some(at));
                } else {
                    node.attempts.begin(fingerprint);
                    node.addressed = uid;
                    match &action {
                        Action::Judge { verdicts, .. } => node.judging.clone_from(verdicts),
                        Action::Patch { .. } => sent = node.send(),
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

    /// Whoever was turned away is let in as far as there is room by now.
    fn let_in(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        if !node.crowded.take_change() {
            return;
        }
        let world = World::new(&self.demands, &self.secrets, &self.quarantine, &self.settings);
        let mut room = Room::of(node, &world);
        let mut fitting: Vec<Uid> = Vec::new();
        for (key, uid) in node.crowded.all() {
            let wanted = world.demand(uid).filter(|wanted| wanted.demand.image.as_ref() == Some(key));
            // Who wants something else by now does not wait here.
            if wanted.is_none_or(|wanted| room.admit(key, Want::Grant, &wanted).is_ok()) {
                fitting.push(uid.clone());
            }
        }
        for uid in fitting {
            if let Some(node) = self.nodes.all.get_mut(name) {
                node.crowded.remove(&uid);
            }
            self.update_standing(&uid, name);
        }
    }

    /// Whether there is room on a node for what a job wants, and how much it takes at most.
    pub(in crate::cluster) fn admit(&self, uid: &Uid, name: &NodeName, want: Want) -> Result<usize, Crowd> {
        let world = World::new(&self.demands, &self.secrets, &self.quarantine, &self.settings);
        let Some((node, wanted)) = self.nodes.all.get(name).zip(world.demand(uid)) else { return Ok(0) };
        let Some(key) = &wanted.demand.image else { return Ok(0) };
        room::admit(node, key, want, &wanted, &world)
    }

    /// Drops what is no longer wanted of a node: what was taken back while it waited to be written is not written.
    fn settle_intents(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name).filter(|node| node.has_intents()) else { return };
        let demands = &self.demands;
        let dropped = node.settle_intents(|node, key, uid, intent| {
            let record = demands.get(uid);
            let record =
                record.filter(|record| record.is_active() && record.demand.image.as_ref() == Some(key));
            let claim = record.and_then(|record| record.claim(is_member(record, name, node)));
            claim.is_some_and(|claim| match intent.want {
                Want::Grant => claim.is_member && may_be_granted(&claim, node),
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

/// Demands and Secrets, as entries of NodeImages know them.
struct World<'a> {
    demands: &'a demands::Demands,
    secrets: &'a Secrets,
    quarantine: &'a Quarantine,
    config_namespace: &'a str,
}

impl<'a> World<'a> {
    fn new(
        demands: &'a demands::Demands,
        secrets: &'a Secrets,
        quarantine: &'a Quarantine,
        settings: &'a Settings,
    ) -> Self {
        Self { demands, secrets, quarantine, config_namespace: &settings.config_namespace }
    }
}

impl Demands for World<'_> {
    fn demand(&self, uid: &str) -> Option<Wanted<'_>> {
        let record = self.demands.get(uid).filter(|record| record.state != State::Abandoned)?;
        Some(Wanted {
            demand: &record.demand,
            is_unfinished: record.is_active(),
            secrets: &record.secrets,
            lacks_secret: record.lacks_secret(),
        })
    }

    fn is_unreadable(&self, uid: &str) -> bool {
        self.quarantine.has_uid(uid)
    }

    fn has_secret(&self, reference: &SecretReference) -> Option<bool> {
        let is_ours = reference.namespace.as_deref() == Some(self.config_namespace);
        is_ours.then(|| reference.name.as_deref().is_some_and(|name| self.secrets.has_copy(name)))
    }
}
