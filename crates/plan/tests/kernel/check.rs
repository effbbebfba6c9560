//! What holds at every write, counted on the world itself and not on what the kernel believes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::{
    CompletionType, ImagePullJob, ImagePullJobStatus, ImageSpec, ImageTagSpec, ImageTagStatus, NodeImage,
};
use prewarm_api::reference::ImageRef;
use prewarm_plan::cluster::{Command, Verb, Write};
use prewarm_plan::demand::selection::{Selection, parallelism};
use prewarm_plan::object::ImageKey;
use serde_json::Value;

use super::draft::BY_HAND;
use super::support::build::key;
use super::support::store::Store;
use super::support::world::{is_over, status_of, tag_of};

/// A tag of a NodeImage that existed once: the object's UID and the entry.
type Place = (String, ImageKey);

/// What was seen so far.
#[derive(Default)]
pub struct Check {
    /// The round in which a job got a place, by the job's UID.
    granted: BTreeMap<(Place, String), i64>,
    /// How often a job got a place.
    grants: BTreeMap<(Place, String), usize>,
    /// How often a node's labels or readiness were written, by name.
    flips: BTreeMap<String, usize>,
    /// How often a job was told to pull something else, by name.
    edits: BTreeMap<String, usize>,
    /// The most nodes that a job could ever pull on, by UID.
    most: BTreeMap<String, usize>,
    /// Entries by hand, by the UID of their NodeImage.
    by_hand: BTreeMap<String, ImageSpec>,
    /// Rounds whose node answered after its place was given up.
    late: BTreeSet<(Place, i64)>,
}

impl Check {
    pub fn flipped(&mut self, node: &str) {
        *self.flips.entry(node.to_owned()).or_default() += 1;
    }

    pub fn edited(&mut self, job: &str) {
        *self.edits.entry(job.to_owned()).or_default() += 1;
    }

    pub fn wrote_by_hand(&mut self, object: &NodeImage) {
        let entry = object.spec.images[&key(BY_HAND).name].clone();
        self.by_hand.insert(object.metadata.uid.clone().expect("it has one"), entry);
    }

    /// A step is over.
    pub fn stepped(&mut self, store: &Store) {
        for job in store.jobs.values() {
            let most = self.most.entry(uid(job).to_owned()).or_default();
            *most = (*most).max(parallelism(job.spec.parallelism.as_ref()));
        }
    }

    /// An agent has reported.
    pub fn reported(&mut self, before: &NodeImage, after: &NodeImage, now: Timestamp) {
        for (name, image) in &after.spec.images {
            for tag in &image.tags {
                let key = ImageKey { name: name.clone(), tag: tag.tag.clone() };
                let has_answered = |object| answer_to(object, &key, tag).is_some();
                if !has_answered(before) && has_answered(after) && !is_young(tag, now) {
                    self.late.insert(((after.metadata.uid.clone().unwrap_or_default(), key), tag.version));
                }
            }
        }
    }

    /// Something was written.
    pub fn written(&mut self, before: &Store, after: &Store, now: Timestamp) {
        for (name, new) in &after.images {
            let old = before.images.get(name).filter(|old| old.metadata.uid == new.metadata.uid);
            if let Some(old) = old.filter(|old| old.spec != new.spec) {
                self.rewritten(name, old, new, after, now);
            }
        }
    }

    fn rewritten(&mut self, name: &str, old: &NodeImage, new: &NodeImage, store: &Store, now: Timestamp) {
        let image_uid = new.metadata.uid.clone().expect("it has one");
        for (image, spec) in &new.spec.images {
            for tag in &spec.tags {
                let key = ImageKey { name: image.clone(), tag: tag.tag.clone() };
                let place = (image_uid.clone(), key.clone());
                let was = tag_of(old, &key);
                let joined: Vec<&str> =
                    owners(tag).filter(|uid| !was.is_some_and(|was| owns(was, uid))).collect();
                if was.is_none_or(|was| was.version != tag.version) {
                    check_reason(&place, (old, was), &joined, store);
                }
                for uid in &joined {
                    self.check_ownership(name, &place, uid, store);
                    self.granted.insert((place.clone(), (*uid).to_owned()), tag.version);
                }
                let asked_again = was.filter(|was| was.version < tag.version);
                let alone = owners(tag).next().filter(|_| asked_again.is_some() && owners(tag).count() == 1);
                if let Some(uid) = alone {
                    self.granted.insert((place.clone(), uid.to_owned()), tag.version);
                }
                let pulls = !status_of(new, &key).is_some_and(|status| is_end(status, tag));
                for uid in joined.into_iter().chain(alone).filter(|_| pulls) {
                    self.check_places(uid, store, now);
                }
            }
        }
    }

    /// A job gets a place once, and once more for each time that the node or the job became another.
    fn check_ownership(&mut self, node: &str, place: &Place, uid: &str, store: &Store) {
        let grants = self.grants.entry((place.clone(), uid.to_owned())).or_default();
        *grants += 1;
        let job = store.jobs.values().find(|job| self::uid(job) == uid);
        let name = job.and_then(|job| job.metadata.name.clone()).unwrap_or_default();
        let count = |of: &BTreeMap<String, usize>, name: &str| of.get(name).copied().unwrap_or_default();
        let reasons = 1 + count(&self.flips, node) + count(&self.edits, &name);
        assert!(*grants <= reasons, "{place:?} was granted to {name} {grants} times for {reasons} reasons");
    }

    /// design 7: acknowledged unfinished grants plus grants younger than 30 s do not exceed parallelism.
    fn check_places(&self, job: &str, store: &Store, now: Timestamp) {
        let Some(object) = store.jobs.values().find(|object| uid(object) == job) else { return };
        let Ok(image) = ImageRef::parse(&object.spec.image) else { return };
        let key = ImageKey { name: image.name().to_owned(), tag: image.tag().to_owned() };
        let holds_place = |image: &&NodeImage| {
            let Some(tag) = tag_of(image, &key).filter(|tag| owns(tag, job)) else { return false };
            let place = (image.metadata.uid.clone().unwrap_or_default(), key.clone());
            // A round that another job began is no grant of this one, and whoever answers late may not be heard yet.
            let is_grant = self.granted.get(&(place.clone(), job.to_owned())) == Some(&tag.version);
            if !is_grant || self.late.contains(&(place, tag.version)) {
                return false;
            }
            answer_to(image, &key, tag).map_or_else(|| is_young(tag, now), |status| !is_over(status.phase))
        };
        let held = store.images.values().filter(holds_place).count();
        let most = self.most[job];
        assert!(held <= most, "{job} holds {held} places of {most}");
    }

    /// What is true when everything is at rest.
    pub fn rest(&self, store: &Store) {
        for job in store.jobs.values() {
            let status = job.status.clone().unwrap_or_default();
            let name = job.metadata.name.clone().unwrap_or_default();
            let is_paused = parallelism(job.spec.parallelism.as_ref()) == 0;
            let ends = job.spec.completion_policy.type_ == CompletionType::Always;
            if is_paused || status.completion_time.is_some() {
                continue;
            }
            assert!(!ends, "{name} has not ended: {status:?}");
            let selection = Selection::of(job.spec.selector.as_ref(), None);
            let takes = |(node, image): &(&String, &NodeImage)| {
                selection.takes_node(node, &image.metadata.labels.clone().unwrap_or_default()) == Some(true)
            };
            let desired = store.images.iter().filter(takes).count();
            assert_eq!(usize::try_from(status.desired).ok(), Some(desired), "{name}: {status:?}");
            assert_eq!(status.succeeded + status.failed, status.desired, "{name}: {status:?}");
        }
        for (name, node) in &store.nodes {
            let image = store.images.get(name);
            let labels = |metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
                metadata.labels.clone().unwrap_or_default()
            };
            if let Some(image) = image {
                assert_eq!(labels(&image.metadata), labels(&node.metadata));
            }
        }
        assert!(store.images.keys().all(|name| store.nodes.contains_key(name)), "an orphan is left");
        for image in store.images.values() {
            let by_hand = image.metadata.uid.as_ref().and_then(|uid| self.by_hand.get(uid));
            assert_eq!(image.spec.images.get(&key(BY_HAND).name), by_hand, "entries by hand are left alone");
        }
        check_owners(store);
    }
}

/// Nobody pulls again without a reason: a job that gets the place, or an image that was lost. A pull that goes on
/// for a living job is never disturbed.
fn check_reason(
    place: &Place,
    (old, was): (&NodeImage, Option<&ImageTagSpec>),
    joined: &[&str],
    store: &Store,
) {
    let status = status_of(old, &place.1);
    let is_lost = status.is_some_and(|status| status.lost_at.is_some());
    assert!(!joined.is_empty() || is_lost, "{place:?} is pulled again without a reason");
    let is_alive = |uid: &str| store.jobs.values().any(|job| self::uid(job) == uid);
    if let Some(was) = was.filter(|was| owners(was).any(is_alive)) {
        assert!(status.is_some_and(|status| is_end(status, was)), "{place:?} is disturbed while it goes on");
    }
}

/// A command was decided: totals add up in every status.
pub fn decided(command: &Command) {
    if let Command::Write(Write { verb: Verb::PatchStatus(operations), .. }) = command {
        let status = operations.last().map(|operation| operation["value"].clone());
        check_totals(status.expect("a status is written"));
    }
}

/// Entries name living jobs only.
fn check_owners(store: &Store) {
    let alive: Vec<&str> = store.jobs.values().map(uid).collect();
    for image in store.images.values() {
        let of_jobs = image.spec.images.iter().filter(|(name, _)| **name != key(BY_HAND).name);
        for tag in of_jobs.flat_map(|(_, image)| &image.tags) {
            assert!(owners(tag).count() > 0 && owners(tag).all(|uid| alive.contains(&uid)), "{tag:?}");
        }
    }
}

fn check_totals(status: Value) {
    let status: ImagePullJobStatus = serde_json::from_value(status).expect("it is a status");
    let ImagePullJobStatus { desired, active, succeeded, failed, .. } = status;
    assert!([desired, active, succeeded, failed].iter().all(|count| *count >= 0), "{status:?}");
    let waiting = desired - active - succeeded - failed;
    assert!(waiting >= 0, "{status:?}");
    if status.completion_time.is_some() {
        assert_eq!((waiting, active), (0, 0), "{status:?}");
    }
    let named = status.failed_nodes.map_or(0, |names| names.len());
    assert_eq!(usize::try_from(failed).ok(), Some(named));
}

fn answer_to<'a>(object: &'a NodeImage, key: &ImageKey, tag: &ImageTagSpec) -> Option<&'a ImageTagStatus> {
    status_of(object, key).filter(|status| status.version == tag.version)
}

fn is_young(tag: &ImageTagSpec, now: Timestamp) -> bool {
    tag.created_at.as_ref().is_some_and(|at| now < at.0 + Duration::from_secs(30))
}

fn is_end(status: &ImageTagStatus, tag: &ImageTagSpec) -> bool {
    status.version == tag.version && is_over(status.phase)
}

fn owners(tag: &ImageTagSpec) -> impl Iterator<Item = &str> {
    tag.owner_references.iter().flatten().filter_map(|owner| owner.uid.as_deref())
}

fn owns(tag: &ImageTagSpec, uid: &str) -> bool {
    owners(tag).any(|owner| owner == uid)
}

fn uid(job: &ImagePullJob) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}
