//! The nodes of an ImagePrefetch (ofen R3, R4): who may be chosen, and since when somebody is not ready.

use std::collections::BTreeSet;

use jiff::Timestamp;
use prewarm_api::ofen::NodeImageSetStatus;

use super::NOT_READY_GRACE;
use super::record::{Begun, Prefetch};
use super::select::{Candidate, HowMany, select};
use crate::cluster::Kernel;
use crate::cluster::demands::parts::Part;
use crate::cluster::demands::standing::{Need, Stage};
use crate::demand::Role;
use crate::object::{NodeName, Uid};
use crate::time::{after, earliest};

impl Kernel {
    /// Chooses the nodes that must hold the images. Says when a node that is not ready loses its place.
    pub(super) fn choose_nodes(&mut self, uid: &Uid, now: Timestamp) -> Option<Timestamp> {
        if self.prefetches.all.get(uid)?.selected.is_none() {
            self.adopt_sets(uid);
        }
        let (candidates, wake_at) = self.candidates(uid, now)?;
        let prefetch = self.prefetches.all.get_mut(uid)?;
        let selected = select(prefetch.how_many(), &candidates, &prefetch.chosen(), uid);
        prefetch.begun.retain(|node, _| selected.contains(node));
        prefetch.failing.retain(|node, _| selected.contains(node));
        if prefetch.selected.as_ref() != Some(&selected) {
            prefetch.selected = Some(selected);
            let key = prefetch.key.clone();
            self.place_prefetch(uid);
            self.mark_sets_of(&key);
        }
        wake_at
    }

    /// The nodes that may be chosen, and when one of them may be no more. One that is not ready keeps its place for a while.
    fn candidates(&mut self, uid: &Uid, now: Timestamp) -> Option<(Vec<Candidate>, Option<Timestamp>)> {
        let prefetch = self.prefetches.all.get(uid)?;
        let chosen = prefetch.chosen();
        let mut unready = prefetch.unready.clone();
        let (mut candidates, mut wake_at) = (Vec::new(), None);
        for (name, node) in &self.nodes.all {
            let facts =
                node.model().filter(|facts| facts.has_agent && prefetch.requirements.matches(&facts.labels));
            let Some(facts) = facts else {
                unready.remove(name);
                continue;
            };
            if facts.is_ready {
                unready.remove(name);
            } else if chosen.contains(name) {
                let ends_at = after(*unready.entry(name.clone()).or_insert(now), NOT_READY_GRACE);
                if ends_at <= now {
                    continue;
                }
                wake_at = earliest(wake_at, Some(ends_at));
            } else {
                continue;
            }
            // A node that has begun in this generation was selected, even if the status does not list it yet.
            let merit = match (prefetch.begun.get(name), self.has_images(prefetch, name)) {
                (Some(Begun { role: Role::Seed, .. }), true) => 4,
                (Some(_), true) => 3,
                (Some(_), false) => 2,
                (None, true) => 1,
                (None, false) => 0,
            };
            let (node, zone, is_ready) = (name.clone(), facts.zone.clone(), facts.is_ready);
            candidates.push(Candidate { node, zone, is_ready, merit });
        }
        unready.retain(|name, _| self.nodes.all.contains_key(name));
        self.prefetches.all.get_mut(uid)?.unready = unready;
        Some((candidates, wake_at))
    }

    /// Whether a node has all images, whoever asked for them. It keeps an image while a new pull of it is under way.
    pub(super) fn has_images(&self, prefetch: &Prefetch, node: &str) -> bool {
        let has = |part: &Part| {
            let standing = self.standing_of(&part.uid, node);
            standing
                .is_some_and(|one| one.stage == Stage::Succeeded && !matches!(one.need, Some(Need::Renew(_))))
        };
        prefetch.parts.iter().all(has) || self.had_images(prefetch, node)
    }

    /// Whether the node's NodeImageSet says that it had all of them. A restarted controller knows this only from the set; without
    /// it, it would select other nodes.
    fn had_images(&self, prefetch: &Prefetch, node: &str) -> bool {
        let set = self.sets.of(&prefetch.key, node).and_then(|uid| self.sets.all.get(uid));
        let is_full = |status: &NodeImageSetStatus| {
            status.available_images > 0 && status.available_images == status.desired_images
        };
        set.is_some_and(|set| {
            set.object.spec.images == prefetch.object.spec.images
                && set.object.status.as_ref().is_some_and(is_full)
        })
    }
}

impl Prefetch {
    /// How many nodes it asks for.
    pub(super) fn how_many(&self) -> HowMany {
        match (self.object.spec.all_nodes, self.object.spec.replicas) {
            (true, _) => HowMany::All,
            (false, replicas) => HowMany::Some(usize::try_from(replicas.unwrap_or(0)).unwrap_or(0)),
        }
    }

    /// The nodes that were selected before; a restarted controller reads them from the status.
    pub(super) fn chosen(&self) -> BTreeSet<NodeName> {
        let reported = || {
            let names = self.object.status.as_ref().and_then(|status| status.selected_nodes.as_ref());
            names.into_iter().flatten().map(|name| name.as_str().into()).collect()
        };
        self.selected.clone().unwrap_or_else(reported)
    }
}
