//! The pass over a node: all that is pending for its NodeImage leaves as one patch.

use jiff::Timestamp;
use prewarm_api::kruise::SecretReference;

use super::node::Want;
use super::{Action, Demands, Observed, Wanted, decide};
use crate::cluster::Kernel;
use crate::cluster::command::{Command, Target};
use crate::cluster::image_pull_job::member::is_member;
use crate::cluster::image_pull_job::record;
use crate::cluster::image_pull_job::standing::{Need, needed};
use crate::cluster::secret::Secrets;
use crate::object::NodeName;
use crate::object::store::Store;
use crate::time::earliest;

impl Kernel {
    pub(in crate::cluster) fn node_pass(
        &mut self,
        name: &NodeName,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.passes.nodes += 1;
        self.settle_intents(name);
        if self.drop_stale_pulls(name, now) {
            // The jobs come first; they come back to this node, or not.
            return self.agenda.mark(Target::Node(name.clone()));
        }
        let world = World {
            jobs: &self.jobs.all,
            secrets: &self.secrets,
            config_namespace: &self.settings.config_namespace,
        };
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
                node.attempts.begin();
                node.addressed = node.image.as_ref().map(|image| image.uid.clone());
                match &action {
                    Action::Judge { verdicts, .. } => node.judging.clone_from(verdicts),
                    Action::Patch { .. } => sent = node.send(),
                    Action::Create { .. } | Action::Delete { .. } => {}
                }
                commands.push(Command::Write(action.write(name)));
            }
        }
        if node.is_empty() {
            self.nodes.all.remove(name);
        }
        self.agenda.wake(Target::Node(name.clone()), wake_at);
        for uid in sent {
            // It is as active as before and holds the same place, so the job need not look.
            let is_dirty = self.agenda.is_marked(&Target::Job(uid.clone()));
            self.update_standing(&uid, name);
            if !is_dirty {
                self.agenda.unmark(&Target::Job(uid));
            }
        }
    }

    /// Drops what is no longer wanted of a node: what was taken back while it waited to be written is not written.
    fn settle_intents(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name).filter(|node| node.has_intents()) else { return };
        let jobs = &self.jobs.all;
        let dropped = node.settle_intents(|node, key, uid, intent| {
            let job = jobs.get(uid).filter(|job| job.is_active() && job.demand.image.as_ref() == Some(key));
            let claim = job.and_then(|job| job.claim(is_member(job, name, node)));
            claim.is_some_and(|claim| match intent.want {
                Want::Grant => claim.is_member,
                want => needed(&claim, node).map(Need::want) == Some(want),
            })
        });
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

/// Jobs and Secrets, as entries of NodeImages know them.
struct World<'a> {
    jobs: &'a Store<record::Job>,
    secrets: &'a Secrets,
    config_namespace: &'a str,
}

impl Demands for World<'_> {
    fn demand(&self, uid: &str) -> Option<Wanted<'_>> {
        let job = self.jobs.get(uid).filter(|job| !job.is_abandoned)?;
        Some(Wanted {
            demand: &job.demand,
            is_unfinished: job.is_active(),
            secrets: &job.secrets,
            lacks_secret: job.lacks_secret(),
        })
    }

    fn has_secret(&self, reference: &SecretReference) -> Option<bool> {
        let is_ours = reference.namespace.as_deref() == Some(self.config_namespace);
        is_ours.then(|| reference.name.as_deref().is_some_and(|name| self.secrets.has_copy(name)))
    }
}
