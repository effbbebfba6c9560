//! What an ImagePrefetch wants of its nodes' entries, and the NodeImageSets that show it.

use jiff::Timestamp;
use prewarm_api::ofen::RegistryPolicy;
use serde_json::json;

use super::LONGEST_SEED_PATIENCE;
use super::record::Prefetch;
use super::wave::patience;
use crate::cluster::command::{Command, Ticket, Verb, Write};
use crate::cluster::demands::parts;
use crate::cluster::demands::standing::Stage;
use crate::cluster::node_image::node::Want;
use crate::cluster::node_image_set::spec;
use crate::cluster::{Kernel, Kind, Target};
use crate::demand::Role;
use crate::object::{NodeName, ObjectKey, Uid};
use crate::time::{after, earliest};

/// What demands want of nodes.
type Wanted = Vec<(Uid, Vec<(NodeName, Want)>)>;

/// At most this many NodeImageSets of one object are created at once.
const MOST_CREATING: usize = 64;
/// Stands for the creation of a node's NodeImageSet, which is always the same write.
const MADE: u64 = 0;

impl Kernel {
    /// Notes what it wants of its nodes. They write it in their own pass.
    pub(super) fn want_images(&mut self, uid: &Uid, is_held: bool, now: Timestamp) -> Option<Timestamp> {
        let prefetch = self.prefetches.all.get(uid)?;
        let mut wake_at = None;
        let mut wanted = Wanted::new();
        for (demand, _) in parts::demands(&prefetch.parts) {
            let Some(roll) = self.demands.get(demand).and_then(|record| record.roll.as_ref()) else {
                continue;
            };
            let mut wants = Vec::new();
            wants.extend(roll.to_withdraw().into_iter().map(|node| (node, Want::Withdraw)));
            wants.extend(roll.to_attach().into_iter().map(|node| (node, Want::Attach)));
            if !is_held {
                // A node that has not begun in this generation would be sent to mirrors for what the last one was given.
                let has_begun = |node: &NodeName| prefetch.begun.contains_key(node);
                let retries = roll.to_retry(usize::MAX).into_iter().filter(has_begun);
                wants.extend(retries.map(|node| (node, Want::Retry)));
                let renewals = roll.to_renew(usize::MAX, now).into_iter().filter(has_begun);
                wants.extend(renewals.map(|node| (node, Want::Renew)));
                wake_at = earliest(wake_at, roll.next_renewal(now));
            }
            wanted.push((demand.clone(), wants));
        }
        if !is_held {
            let (wants, again_at) = self.first_wants(prefetch, now);
            wanted.extend(wants);
            wake_at = earliest(wake_at, again_at);
        }
        for (demand, wants) in wanted {
            self.note_wants(&demand, wants, now);
        }
        wake_at
    }

    /// Grants that are still due on nodes that have begun, and those to be repeated; and when the next of them is due.
    fn first_wants(&self, prefetch: &Prefetch, now: Timestamp) -> (Wanted, Option<Timestamp>) {
        let (mut wanted, mut wake_at) = (Vec::new(), None);
        for part in parts::demands(&prefetch.parts).into_values() {
            let Some(image) = &part.image else { continue };
            let mut wants = Vec::new();
            for (name, begun) in &prefetch.begun {
                let Some(node) =
                    self.nodes.all.get(name).filter(|node| node.intent(image, &part.uid).is_none())
                else {
                    continue;
                };
                let is_owner = node.image.as_ref().and_then(|record| record.tag(image));
                let is_owner = is_owner.is_some_and(|(_, tag)| tag.is_owned_by(&part.uid));
                let is_crowded = node.crowded.get(image, &part.uid).is_some();
                let is_untold =
                    begun.untold.get(&part.uid).is_some_and(|version| !self.is_told(part, name, *version));
                let again_at = self.asked_again_at(prefetch, &part.uid, name);
                wake_at = earliest(wake_at, again_at.filter(|at| *at > now));
                // It was pulled for others alone: this object has not been let in.
                let is_of_others =
                    self.standing_of(&part.uid, name).is_some_and(|one| one.stage == Stage::Waiting);
                match (is_owner && !is_of_others, is_untold || again_at.is_some_and(|at| at <= now)) {
                    (false, _)
                        if !is_crowded && node.live_image().is_some() && node.refusal(image).is_none() =>
                    {
                        wants.push((name.clone(), Want::Grant));
                    }
                    (true, true) => wants.push((name.clone(), Want::Ask)),
                    _ => {}
                }
            }
            wanted.push((part.uid.clone(), wants));
        }
        (wanted, wake_at)
    }

    /// When a node that has given up is asked once more. If the registry refused it although others have the image, its Secret may
    /// have been corrected by then; any other node may have room by then. An ImagePrefetch never gives up.
    fn asked_again_at(&self, prefetch: &Prefetch, demand: &Uid, node: &NodeName) -> Option<Timestamp> {
        let has_failed = self.standing_of(demand, node).is_some_and(|one| one.stage == Stage::Failed);
        let since = prefetch.failing.get(node).filter(|_| has_failed)?;
        let is_refused = self.is_refused_there(demand, node);
        if !is_refused && prefetch.is_seed(node) && prefetch.next_seed() != Some(node) {
            return None;
        }
        let pause = if is_refused { patience(prefetch.failing.len()) } else { LONGEST_SEED_PATIENCE };
        Some(after(*since, pause))
    }

    /// Creates the NodeImageSets of nodes whose entries are written, or cannot be.
    pub(super) fn make_sets(
        &mut self,
        uid: &Uid,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        let prefetch = self.prefetches.all.get(uid)?;
        let mut missing = Vec::new();
        for (node, begun) in &prefetch.begun {
            let has_one = self.sets.of(&prefetch.key, node).is_some() || prefetch.creating.contains(node);
            if !has_one && self.is_shown(prefetch, node, begun) {
                missing.push((node.clone(), begun.role));
            }
        }
        let prefetch = self.prefetches.all.get_mut(uid)?;
        prefetch.made.retain(|node, _| prefetch.begun.contains_key(node));
        if prefetch.set_attempts.is_blocked(now) {
            return prefetch.set_attempts.pause_ends();
        }
        let (mut free, mut wake_at) = (MOST_CREATING.saturating_sub(prefetch.creating.len()), None);
        for (node, role) in missing {
            let attempts = prefetch.made.entry(node.clone()).or_default();
            if let Some(at) = attempts.repeats_at(MADE, now) {
                wake_at = earliest(wake_at, Some(at));
                continue;
            }
            if free == 0 {
                break;
            }
            free -= 1;
            attempts.begin(MADE);
            let object = spec::new(prefetch, &node, role);
            prefetch.creating.insert(node);
            let key = ObjectKey::of(&object.metadata);
            let ticket =
                Ticket { asker: Target::Prefetch(uid.clone()), kind: Kind::NodeImageSet, key, uid: None };
            commands.push(Command::Write(Write { ticket, verb: Verb::Create(Box::new(json!(object))) }));
        }
        wake_at
    }
}

impl Prefetch {
    fn is_seed(&self, node: &NodeName) -> bool {
        self.begun.get(node).is_some_and(|begun| begun.role == Role::Seed)
    }

    /// If all nodes that ask the registry fail, the one that has failed for the longest time. Only that one is asked again, so that
    /// the limit holds.
    fn next_seed(&self) -> Option<&NodeName> {
        let mut failing = Vec::new();
        for node in self.begun.keys().filter(|node| self.is_seed(node)) {
            failing.push((self.failing.get(node)?, node));
        }
        failing.into_iter().min().map(|(_, node)| node)
    }
}

/// What a NodeImageSet says of a role.
pub fn policy(role: Role) -> RegistryPolicy {
    match role {
        Role::Seed => RegistryPolicy::Default,
        Role::Mirror => RegistryPolicy::MirrorOnly,
    }
}
