//! What a node's entries have to know about everything else, and who is let in where there is room.

use std::collections::BTreeSet;

use prewarm_api::kruise::SecretReference;
use prewarm_api::reference_object::ObjectReference;

use super::node::Want;
use super::room::{self, Crowd, Room};
use super::{Demands, Wanted};
use crate::cluster::demands::{self, State};
use crate::cluster::quarantine::Quarantine;
use crate::cluster::secret::Secrets;
use crate::cluster::{Kernel, Kind, Settings};
use crate::object::{NodeName, Uid};

impl Kernel {
    /// Admits waiting demands that fit into the NodeImage by now.
    pub(super) fn let_in(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        if !node.crowded.take_change() {
            return;
        }
        let world = World::new(&self.demands, &self.secrets, &self.quarantine, &self.known, &self.settings);
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
        let world = World::new(&self.demands, &self.secrets, &self.quarantine, &self.known, &self.settings);
        let Some((node, wanted)) = self.nodes.all.get(name).zip(world.demand(uid)) else { return Ok(0) };
        let Some(key) = &wanted.demand.image else { return Ok(0) };
        room::admit(node, key, want, &wanted, &world)
    }
}

/// Demands and Secrets, as entries of NodeImages know them.
pub(super) struct World<'a> {
    demands: &'a demands::Demands,
    secrets: &'a Secrets,
    quarantine: &'a Quarantine,
    known: &'a BTreeSet<Kind>,
    config_namespace: &'a str,
}

impl<'a> World<'a> {
    pub(super) fn new(
        demands: &'a demands::Demands,
        secrets: &'a Secrets,
        quarantine: &'a Quarantine,
        known: &'a BTreeSet<Kind>,
        settings: &'a Settings,
    ) -> Self {
        Self { demands, secrets, quarantine, known, config_namespace: &settings.config_namespace }
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
        self.quarantine.has_uid(demands::parts::object(uid))
    }

    fn knows(&self, owner: &ObjectReference) -> bool {
        demands::kind_of(owner).is_none_or(|kind| self.known.contains(&kind))
    }

    fn has_secret(&self, reference: &SecretReference) -> Option<bool> {
        let is_ours = reference.namespace.as_deref() == Some(self.config_namespace);
        is_ours.then(|| reference.name.as_deref().is_some_and(|name| self.secrets.has_copy(name)))
    }
}
