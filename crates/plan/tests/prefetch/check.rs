//! What holds at every write, counted on the world itself and not on what the kernel believes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::{ImageTagSpec, PullPhase};
use prewarm_api::ofen::{ImagePrefetch, RegistryPolicy};

use super::play::IMAGES;
use super::support::build::key;
use super::support::store::Store;
use super::support::world::{is_over, status_of, tag_of};

/// So long a node has to answer; a second of which is because times in an object have no fractions.
const MAY_BE_SILENT: Duration = Duration::from_secs(31);

/// A pull of which nothing new is heard for so long holds no place.
const MAY_STAND_STILL: Duration = Duration::from_mins(12);

/// An entry of a node in one round: its NodeImage's UID, the image, and the version.
type Round = (String, &'static str, i64);

/// What was seen so far.
pub struct Check {
    limit: usize,
    /// The generation of each ImagePrefetch, by its UID, in which a round was asked of the registry for it.
    asked: BTreeMap<Round, BTreeSet<(String, i64)>>,
    /// Generations for which the registry has given an image.
    verified: BTreeSet<(String, i64, &'static str)>,
    /// Rounds in which an agent has ever failed or been late: they hold no place.
    troubled: BTreeSet<Round>,
    /// Since when agents say of rounds that they pull, and nothing more.
    pulling: BTreeMap<Round, Timestamp>,
    /// Nodes to which a write was lost: they are passed over for a while, and may be told in the same moment as whoever is next.
    missed: BTreeSet<String>,
}

impl Check {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            asked: BTreeMap::new(),
            verified: BTreeSet::new(),
            troubled: BTreeSet::new(),
            pulling: BTreeMap::new(),
            missed: BTreeSet::new(),
        }
    }

    /// An agent has reported.
    pub fn reported(
        &mut self,
        before: &Store,
        store: &Store,
        node: &str,
        image: &'static str,
        now: Timestamp,
    ) {
        let (Some(object), Some(old)) = (store.images.get(node), before.images.get(node)) else { return };
        let Some(tag) = tag_of(object, &key(image)) else { return };
        let Some(status) = status_of(object, &key(image)).filter(|status| status.version == tag.version)
        else {
            return;
        };
        let round: Round = (object.metadata.uid.clone().unwrap_or_default(), image, tag.version);
        // A verdict on a node that is silent is no answer of its agent.
        let had_answered = status_of(old, &key(image))
            .is_some_and(|status| status.version == tag.version && status.phase != PullPhase::Failed);
        // Whoever answers late has given up its place.
        if status.failure_class.is_some() || status.lost_at.is_some() || !(had_answered || is_young(tag, now))
        {
            self.troubled.insert(round.clone());
        }
        if status.phase == PullPhase::Pulling {
            self.pulling.entry(round.clone()).or_insert(now);
        }
        if status.phase == PullPhase::Succeeded
            && tag.registry_policy.unwrap_or_default() == RegistryPolicy::Default
        {
            for (uid, generation) in self.asked.get(&round).into_iter().flatten() {
                self.verified.insert((uid.clone(), *generation, image));
            }
        }
    }

    /// A node is not ready, or cannot be written to: what it does holds no place until it is told anew.
    pub fn is_troubled(&mut self, store: &Store, node: &str) {
        let Some(object) = store.images.get(node) else { return };
        for image in IMAGES {
            if let Some(tag) = tag_of(object, &key(image)) {
                self.troubled.insert((object.metadata.uid.clone().unwrap_or_default(), image, tag.version));
            }
        }
    }

    /// A write to a node did not arrive, or nobody knows.
    pub fn missed(&mut self, store: &Store, node: &str) {
        self.is_troubled(store, node);
        self.missed.insert(node.to_owned());
    }

    /// Something was written.
    pub fn written(&mut self, before: &Store, after: &Store) {
        for (name, new) in &after.images {
            let old = before.images.get(name).filter(|old| old.metadata.uid == new.metadata.uid);
            if old.is_some_and(|old| old.spec == new.spec) {
                continue;
            }
            for image in IMAGES {
                let Some(tag) = tag_of(new, &key(image)) else { continue };
                let was = old.and_then(|old| tag_of(old, &key(image)));
                let is_new = was.is_none_or(|was| was.version != tag.version);
                let policy = tag.registry_policy.unwrap_or_default();
                let was_mirror =
                    was.is_some_and(|was| was.registry_policy == Some(RegistryPolicy::MirrorOnly));
                if policy == RegistryPolicy::MirrorOnly && (is_new || !was_mirror) {
                    self.check_verified(after, tag, image);
                }
                // Whoever joins what is not done takes part in its round: each owner's own credentials are tried.
                let has_joined = was.is_some_and(|was| was.owner_references != tag.owner_references);
                let is_joined = has_joined && !self.is_done(after, name, image);
                if policy == RegistryPolicy::Default && (is_new || is_joined) {
                    self.note_asked(after, new.metadata.uid.clone().unwrap_or_default(), tag, image);
                    if self.missed.contains(name) {
                        self.is_troubled(after, name);
                    }
                }
            }
        }
    }

    fn note_asked(&mut self, store: &Store, uid: String, tag: &ImageTagSpec, image: &'static str) {
        let owners = owners(store, tag).map(|owner| (uid_of(owner), generation(owner)));
        self.asked.entry((uid, image, tag.version)).or_default().extend(owners);
    }

    /// All who want an entry of mirrors alone have been given the image by the registry in this generation.
    fn check_verified(&self, store: &Store, tag: &ImageTagSpec, image: &'static str) {
        for owner in owners(store, tag) {
            let proof = (uid_of(owner), generation(owner), image);
            assert!(self.verified.contains(&proof), "{proof:?} is sent to mirrors and was never asked for");
        }
    }

    /// Those that ask the registry for one object, are not done and do not fail are no more than may.
    pub fn check_places(&self, store: &Store, now: Timestamp) {
        for prefetch in store.prefetches.values() {
            let uid = (uid_of(prefetch), generation(prefetch));
            // Whoever fails with one image holds no place, whatever it does about the others.
            let asks = |name: &&String| {
                let of_all = IMAGES.map(|image| self.asks(store, name, image, &uid, now));
                of_all.contains(&Some(true)) && !of_all.contains(&Some(false))
            };
            let asking: Vec<&String> = store.images.keys().filter(asks).collect();
            assert!(asking.len() <= self.limit, "{asking:?} ask the registry for {uid:?}");
        }
    }

    /// Whether a node is asking the registry for an image on behalf of an object alone, or fails to; nothing if it is not told to.
    fn asks(
        &self,
        store: &Store,
        node: &str,
        image: &'static str,
        owner: &(String, i64),
        now: Timestamp,
    ) -> Option<bool> {
        let object = &store.images[node];
        let tag =
            tag_of(object, &key(image)).filter(|tag| owners(store, tag).any(|one| uid_of(one) == owner.0))?;
        if tag.registry_policy.unwrap_or_default() != RegistryPolicy::Default {
            return None;
        }
        let round = (object.metadata.uid.clone().unwrap_or_default(), image, tag.version);
        // Another node may have begun in its stead, also if it has got on since, or does so for others, too.
        if self.troubled.contains(&round) {
            return Some(false);
        }
        if self.is_done(store, node, image) {
            return None;
        }
        let status = status_of(object, &key(image)).filter(|status| status.version == tag.version);
        let is_open = status.map_or_else(|| is_young(tag, now), |status| !is_over(status.phase));
        let stands_still = self.pulling.get(&round).is_some_and(|since| *since + MAY_STAND_STILL <= now);
        if !is_open || stands_still || !is_ready(store, node) {
            return Some(false);
        }
        // What others ask for, too, is asked for on their behalf, whatever this one may.
        self.asked.get(&round).filter(|owners| owners.iter().all(|one| one == owner)).map(|_| true)
    }

    /// Whether a node has an image that it is told to have.
    #[expect(clippy::unused_self, reason = "it is asked like the others")]
    pub fn is_done(&self, store: &Store, node: &str, image: &str) -> bool {
        let Some(object) = store.images.get(node) else { return false };
        let Some(tag) = tag_of(object, &key(image)) else { return false };
        let status = status_of(object, &key(image)).filter(|status| status.version == tag.version);
        status.is_some_and(|status| status.phase == PullPhase::Succeeded && status.lost_at.is_none())
    }

    /// Whether an agent that works has something to do about an image.
    pub fn is_open(&self, store: &Store, node: &str, image: &str) -> bool {
        let is_told = store.images.get(node).is_some_and(|object| tag_of(object, &key(image)).is_some());
        let is_lost = store
            .images
            .get(node)
            .and_then(|object| status_of(object, &key(image)))
            .is_some_and(|status| status.lost_at.is_some());
        is_told && is_ready(store, node) && !is_lost && !self.is_done(store, node, image)
    }

    /// What is true when everything is at rest.
    pub fn rest(&self, store: &Store) {
        let sets: usize = store.prefetches.values().map(|prefetch| self.check_end(store, prefetch)).sum();
        assert_eq!(store.sets.len(), sets, "{:?}", store.sets.keys());
        if store.prefetches.is_empty() {
            assert!(store.images.values().all(|object| object.spec.images.is_empty()), "an entry is left");
        }
    }

    /// All chosen nodes have the images, and a set each. Returns how many there are.
    fn check_end(&self, store: &Store, prefetch: &ImagePrefetch) -> usize {
        let status = prefetch.status.clone().unwrap_or_default();
        let selected = status.selected_nodes.clone().unwrap_or_default();
        let ready = store.nodes.keys().filter(|name| is_ready(store, name)).count();
        let wanted = prefetch
            .spec
            .replicas
            .map_or(ready, |replicas| ready.min(usize::try_from(replicas).unwrap_or(0)));
        if prefetch.spec.node_selector.is_none() {
            assert_eq!(selected.len(), wanted, "{status:?}");
        }
        for node in &selected {
            for image in
                IMAGES.into_iter().filter(|image| prefetch.spec.images.iter().any(|one| one == image))
            {
                let is_lost = store.images[node].status.is_some() && !self.is_done(store, node, image);
                assert!(self.is_done(store, node, image) || is_lost, "{node} lacks {image}: {status:?}");
            }
        }
        let pulled = usize::try_from(status.image_pulled_nodes).unwrap_or_default();
        let done = |node: &&String| prefetch.spec.images.iter().all(|image| self.is_done(store, node, image));
        assert_eq!(pulled, selected.iter().filter(done).count(), "{status:?}");
        assert_eq!(status.observed_generation, prefetch.metadata.generation);
        selected.len()
    }
}

fn is_young(tag: &ImageTagSpec, now: Timestamp) -> bool {
    tag.created_at.as_ref().is_some_and(|at| now < at.0 + MAY_BE_SILENT)
}

fn is_ready(store: &Store, node: &str) -> bool {
    let conditions = store.nodes.get(node).and_then(|node| node.status.as_ref()?.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// The living ImagePrefetches among the owners of an entry.
fn owners<'a>(store: &'a Store, tag: &'a ImageTagSpec) -> impl Iterator<Item = &'a ImagePrefetch> {
    let uids = tag.owner_references.iter().flatten().filter_map(|owner| owner.uid.as_deref());
    let objects = uids.filter_map(|uid| uid.split_once('/')).map(|(object, _)| object);
    objects.filter_map(|uid| store.prefetches.values().find(|one| one.metadata.uid.as_deref() == Some(uid)))
}

fn uid_of(prefetch: &ImagePrefetch) -> String {
    prefetch.metadata.uid.clone().unwrap_or_default()
}

fn generation(prefetch: &ImagePrefetch) -> i64 {
    prefetch.metadata.generation.unwrap_or_default()
}
