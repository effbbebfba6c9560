//! Starts nodes in waves and assigns their roles: places are gathered, `wave` decides, and the demands get the roles.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::wave::{Place, Progress, next};
use crate::cluster::demands::standing::Stage;
use crate::cluster::node_image::node::Node;
use crate::cluster::{Kernel, Target};
use crate::demand::{Role, Source};
use crate::object::{NodeName, Uid};
use crate::time::earliest;

impl Kernel {
    /// Gives nodes their roles, as far as the waves have come. Says when to look again.
    pub(super) fn begin_nodes(&mut self, uid: &Uid, is_held: bool, now: Timestamp) -> Option<Timestamp> {
        self.note_told(uid);
        let moves_until = self.note_steps(uid, now);
        let places = self.places(uid, now)?;
        let prefetch = self.prefetches.all.get_mut(uid)?;
        prefetch.failing.retain(|node, _| {
            places.iter().any(|place| place.node == *node && matches!(place.progress, Progress::Failing(_)))
        });
        for place in &places {
            if let Progress::Failing(since) = place.progress {
                prefetch.failing.insert(place.node.clone(), since);
            }
        }
        if is_held {
            return None;
        }
        let next = next(&places, prefetch.past, self.settings.waves, uid, now);
        prefetch.past.is_verified = next.is_verified;
        if next.is_verified {
            self.pin_digests(uid);
        }
        self.assign(uid, next.roles);
        // Nodes that do not answer give up their places without any doing of theirs.
        let overdue = self
            .prefetches
            .all
            .get(uid)?
            .parts
            .iter()
            .filter_map(|part| self.demands.get(&part.uid)?.roll.as_ref()?.next_grant_overdue(now));
        overdue.fold(earliest(next.wake_at, moves_until), |wake_at, at| earliest(wake_at, Some(at)))
    }

    /// Removes demands from `untold` once the node's entry has been written.
    fn note_told(&mut self, uid: &Uid) {
        let Some(prefetch) = self.prefetches.all.get(uid) else { return };
        let mut told = Vec::new();
        for (node, begun) in prefetch.begun.iter().filter(|(_, begun)| !begun.untold.is_empty()) {
            let open = self.still_untold(prefetch, node, begun);
            if open.len() != begun.untold.len() {
                told.push((
                    node.clone(),
                    open.into_iter().map(|(demand, _)| demand).collect::<BTreeSet<_>>(),
                ));
            }
        }
        let Some(prefetch) = self.prefetches.all.get_mut(uid) else { return };
        for (node, open) in told {
            if let Some(begun) = prefetch.begun.get_mut(&node) {
                begun.untold.retain(|demand, _| open.contains(demand));
                if begun.untold.is_empty() {
                    self.agenda
                        .mark_all(self.sets.of(&prefetch.key, &node).cloned().map(Target::NodeImageSet));
                }
            }
        }
    }

    fn places(&self, uid: &Uid, now: Timestamp) -> Option<Vec<Place>> {
        let prefetch = self.prefetches.all.get(uid)?;
        let place = |name: &NodeName| {
            let node = self.nodes.all.get(name);
            Place {
                node: name.clone(),
                zone: node.map(Node::zone).unwrap_or_default(),
                holds: self.holds(prefetch, name, now),
                is_able: self.is_able(name),
                is_doubtful: node.is_some_and(|node| node.attempts.is_failing()),
                role: prefetch.begun.get(name).map(|begun| begun.role),
                progress: self.progress(prefetch, name, now),
                is_refused: self.is_refused_by_registry(prefetch, name),
                is_resting: self.is_resting(prefetch, name, now),
            }
        };
        Some(prefetch.selected.iter().flatten().map(place).collect())
    }

    /// Keeps what each image stood for when the registry was asked first: nodes that ask mirrors get that and nothing else.
    fn pin_digests(&mut self, uid: &Uid) {
        let Some(prefetch) = self.prefetches.all.get(uid) else { return };
        let mut pins = Vec::new();
        for part in prefetch.parts.iter().filter(|part| !prefetch.digests.contains_key(&part.uid)) {
            let of = |role| {
                prefetch.begun.iter().filter(move |(_, begun)| begun.role == role).map(|(node, _)| node)
            };
            let has_it = |node: &&NodeName| {
                self.standing_of(&part.uid, node).is_some_and(|one| one.stage == Stage::Succeeded)
            };
            let seeds = of(Role::Seed).filter(has_it);
            let resolved = seeds.filter_map(|node| self.resolved(part, node)).min();
            let pinned = of(Role::Mirror).find_map(|node| self.pinned(part, node));
            pins.extend(
                pinned.or(resolved.map(|(_, digest)| digest)).map(|digest| (part.uid.clone(), digest)),
            );
        }
        for (demand, digest) in pins {
            if let Some(record) = self.demands.get_mut(&demand)
                && let Source::Roles(roles) = &mut record.demand.source
            {
                roles.digest = Some(digest.clone());
            }
            if let Some(prefetch) = self.prefetches.all.get_mut(uid) {
                prefetch.digests.insert(demand, digest);
            }
        }
    }

    fn assign(&mut self, uid: &Uid, roles: BTreeMap<NodeName, Role>) {
        for (node, role) in roles {
            let Some(prefetch) = self.prefetches.all.get(uid) else { return };
            let is_demoted = prefetch.begun.get(&node).is_some_and(|begun| begun.role == Role::Seed);
            let mut begun = self.untold(prefetch, &node, role);
            if is_demoted {
                // Whoever asked the registry goes on with the same attempt, elsewhere, unless it has ended.
                let has_ended = |demand: &Uid| {
                    self.standing_of(demand, &node).is_some_and(|one| one.stage == Stage::Failed)
                };
                begun.untold.retain(|demand, _| has_ended(demand));
            }
            let demands: Vec<Uid> = prefetch.parts.iter().map(|part| part.uid.clone()).collect();
            for demand in demands {
                if let Some(record) = self.demands.get_mut(&demand)
                    && let Source::Roles(roles) = &mut record.demand.source
                {
                    roles.of_nodes.insert(node.clone(), role);
                }
                self.update_standing(&demand, &node);
            }
            if let Some(prefetch) = self.prefetches.all.get_mut(uid) {
                prefetch.begun.insert(node.clone(), begun);
                prefetch.past.demoted += usize::from(is_demoted);
                self.agenda.mark_all(self.sets.of(&prefetch.key, &node).cloned().map(Target::NodeImageSet));
            }
            self.agenda.mark(Target::Node(node));
        }
    }
}
