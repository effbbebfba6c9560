//! What watches and answers say about the cluster becomes records. Nothing is decided here; what has changed is marked.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{ImagePullJob, NodeImage};

use super::job::Job;
use super::node::Facts;
use super::pod::PodFacts;
use super::record::{ImageRecord, NodeImageRecord};
use super::{Ledger, Target, measure};
use crate::broadcast_job::fitness::NodeFacts;
use crate::image_pull_job::roll::Roll;
use crate::object::ObjectKey;
use crate::object::{ImageKey, NodeName, Uid};
use crate::selection::Selection;

/// So many jobs are remembered that are gone before their watch has said so. Beyond that, a late word of the watch may
/// bring one back until the next one.
const MOST_ENDED: usize = 10_000;

impl Ledger {
    /// A Node is like this.
    pub fn hear_node(&mut self, object: NodeObject) {
        let Some(name) = object.metadata.name.as_deref().map(|name| self.shared.text::<NodeName>(name))
        else {
            return;
        };
        let mut fitness = NodeFacts::read(&object, Arc::default());
        let facts = Facts::read(object, &self.settings.agent_nodes, &mut self.shared);
        fitness.labels = facts.labels.clone();
        fitness.allocatable = self.shared.amounts(fitness.allocatable);
        self.broadcasts.hear_node(&name, fitness);
        let node = self.nodes.entry(name.clone()).or_default();
        // A Node's status changes every few seconds without any difference for us.
        if node.facts.as_ref() != Some(&facts) {
            node.facts = Some(facts);
            self.regard(&name);
        }
    }

    /// A Node is gone.
    pub fn lose_node(&mut self, name: &str) {
        let name: NodeName = self.shared.text(name);
        self.broadcasts.lose_node(&name);
        if self.nodes.get_mut(&name).and_then(|node| node.facts.take()).is_some() {
            self.regard(&name);
        }
    }

    /// A NodeImage is like this.
    pub fn hear_node_image(&mut self, mut object: NodeImage, now: Timestamp) {
        object.metadata.managed_fields = None;
        let Some(name) = object.metadata.name.as_deref().map(|name| self.shared.text::<NodeName>(name))
        else {
            return;
        };
        let new = self.shared.record(object);
        let node = self.nodes.entry(name.clone()).or_default();
        // An earlier object of this name has an earlier version, too.
        if node.image.as_ref().is_some_and(|old| is_newer(&old.resource_version, &new.resource_version)) {
            return;
        }
        let Some(old) = node.image.as_ref().filter(|old| old.uid == new.uid).cloned() else {
            node.lose_image();
            (node.image, node.heard_at) = (Some(new), Some(now));
            return self.regard(&name);
        };
        if is_report(&old, &new) && node.judging.is_empty() {
            node.heard_at = Some(now);
        }
        let mut changed = changed_keys(&old, &new);
        if has_more_room(&old, &new) {
            changed.extend(node.forget_refusals());
        }
        let moves = old.labels != new.labels || old.is_terminating != new.is_terminating;
        let measured = measure::measure(&old, &new, &changed, &self.jobs, now);
        node.image = Some(new);
        self.keep_measured(measured);
        if moves {
            return self.regard(&name);
        }
        self.soil(Target::Node(name.clone()));
        for key in changed {
            self.restand_image(&key, &name);
        }
    }

    /// A NodeImage is gone. With a UID, only if it is still that one.
    pub fn lose_node_image(&mut self, name: &str, uid: Option<&str>) {
        let name: NodeName = self.shared.text(name);
        let Some(node) = self.nodes.get_mut(&name) else { return };
        let is_that = |held: &str| uid.is_none_or(|uid| uid == held);
        if node.image.as_ref().is_some_and(|image| is_that(&image.uid)) {
            node.lose_image();
            self.regard(&name);
        }
    }

    /// An ImagePullJob is like this.
    pub fn hear_job(&mut self, mut object: ImagePullJob) {
        object.metadata.managed_fields = None;
        let Some(uid) = object.metadata.uid.as_deref().map(|uid| self.shared.text::<Uid>(uid)) else {
            return;
        };
        if self.ended.contains(&uid) {
            return;
        }
        let key = ObjectKey::of(&object.metadata);
        if let Some(other) = self.job_uids.get(&key).filter(|other| **other != uid).cloned() {
            if is_older_job(&self.jobs[&other].object, &object) {
                self.lose_job(&key, None);
            } else {
                return;
            }
        }
        let (had_roll, is_new_spec) = match self.jobs.get_mut(&uid) {
            Some(job) if is_newer(version(&job.object.metadata), version(&object.metadata)) => return,
            Some(job) => {
                let (image, had_roll) = (job.image.clone(), job.roll.is_some());
                let is_new_spec = job.renew(object);
                self.unlist(image, &uid);
                (had_roll, is_new_spec)
            }
            None => {
                self.jobs.insert(uid.clone(), Job::new(object));
                self.job_uids.insert(key, uid.clone());
                (false, true)
            }
        };
        self.place_job(&uid, had_roll, is_new_spec);
    }

    /// Brings everything that depends on a job in line with it.
    fn place_job(&mut self, uid: &Uid, had_roll: bool, is_new_spec: bool) {
        let job = &self.jobs[uid];
        if let Some(list) = job.list_uid().map(|list| self.shared.text::<Uid>(list)) {
            self.children.entry(list.clone()).or_default().insert(uid.clone());
            self.soil(Target::List(list));
        }
        let job = &self.jobs[uid];
        if job.is_active() {
            let image = job.image.clone();
            self.by_image.entry(image.unwrap_or_else(no_image)).or_default().insert(uid.clone());
            if !had_roll || is_new_spec {
                self.claim_sources(uid);
                self.count_pods(uid);
                self.enroll(uid);
            }
        } else if had_roll || is_new_spec {
            self.dismiss(uid);
            self.claim_sources(uid);
        }
        self.soil(Target::Job(uid.clone()));
    }

    /// An ImagePullJob is gone. With a UID, only if it is still that one.
    pub fn lose_job(&mut self, key: &ObjectKey, uid: Option<&str>) {
        if let Some(uid) = uid {
            self.ended.remove(uid);
        }
        let Some(held) = self.job_uids.get(key).cloned() else { return };
        if uid.is_some_and(|uid| *uid != *held) {
            return;
        }
        self.job_uids.remove(key);
        self.dismiss(&held);
        let Some(job) = self.jobs.remove(&held) else { return };
        self.unlist(job.image.clone(), &held);
        self.unclaim_sources(&job.key, &BTreeSet::new());
        if let Some(list) = job.list_uid().map(|list| self.shared.text::<Uid>(list)) {
            self.forget_child(&list, &held);
        }
        self.timers.set(Target::Job(held.clone()), None);
        self.left.insert(held);
    }

    /// The answer to a write says that an ImagePullJob is gone. What the watch still has to say about it is older.
    pub(super) fn end_job(&mut self, key: &ObjectKey, uid: &str) {
        self.lose_job(key, Some(uid));
        if self.ended.len() < MOST_ENDED {
            let uid: Uid = self.shared.text(uid);
            self.ended.insert(uid);
        }
    }

    /// Takes a job out of the unfinished ones of its image.
    fn unlist(&mut self, image: Option<ImageKey>, uid: &Uid) {
        let image = image.unwrap_or_else(no_image);
        if let Some(uids) = self.by_image.get_mut(&image) {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_image.remove(&image);
            }
        }
    }

    fn forget_child(&mut self, list: &Uid, child: &Uid) {
        if let Some(children) = self.children.get_mut(list) {
            children.remove(child);
            if children.is_empty() {
                self.children.remove(list);
            }
        }
        self.soil(Target::List(list.clone()));
    }

    /// A job is over: its nodes look whether they still need what it wanted.
    fn dismiss(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        let Some(roll) = job.roll.take() else { return };
        // A job that was edited may have entries of another image on nodes that it no longer selects.
        if job.object.metadata.generation != Some(1) {
            self.left.insert(uid.clone());
        }
        self.dirty.extend(roll.nodes().cloned().map(Target::Node));
    }

    /// Fills a job's roll.
    fn enroll(&mut self, uid: &Uid) {
        if let Some(job) = self.jobs.get_mut(uid) {
            job.roll = Some(Roll::default());
        }
        self.restand_nodes(uid);
    }

    /// A pod is like this; `None` if it is gone.
    pub fn hear_pod(&mut self, namespace: &str, name: &str, facts: Option<PodFacts>) {
        let old = self.pods.put(namespace, name, None);
        let concerned = if old == facts { Vec::new() } else { self.jobs_by_pods(namespace) };
        for uid in concerned {
            let Some(job) = self.jobs.get_mut(&uid) else { continue };
            let Selection::Pods(requirements) = &job.selection else { continue };
            let place = |facts: &Option<PodFacts>| {
                let facts = facts.as_ref().filter(|facts| requirements.matches(&facts.labels));
                facts.and_then(PodFacts::place).cloned()
            };
            let (from, to) = (place(&old), place(&facts));
            if from == to {
                continue;
            }
            if let Some(node) = &from {
                uncount(&mut job.pods, node);
            }
            if let Some(node) = &to {
                *job.pods.entry(node.clone()).or_default() += 1;
            }
            for node in from.into_iter().chain(to) {
                self.restand(&uid, &node);
            }
        }
        self.pods.put(namespace, name, facts);
    }

    /// All pods of a namespace are known.
    pub fn sync_pods(&mut self, namespace: &str) {
        self.pods.sync(namespace);
        for uid in self.jobs_by_pods(namespace) {
            // Pods that were known before may be gone.
            self.restand_nodes(&uid);
            self.soil(Target::Job(uid));
        }
    }

    /// The pods of a namespace are not watched any more.
    pub fn forget_pods(&mut self, namespace: &str) {
        self.pods.forget(namespace);
        for uid in self.jobs_by_pods(namespace) {
            self.count_pods(&uid);
        }
    }

    fn jobs_by_pods(&self, namespace: &str) -> Vec<Uid> {
        let selects = |job: &Job| job.is_active() && matches!(job.selection, Selection::Pods(_));
        let jobs = self.jobs.iter().filter(|(_, job)| job.key.namespace == namespace && selects(job));
        jobs.map(|(uid, _)| uid.clone()).collect()
    }

    fn count_pods(&mut self, uid: &Uid) {
        let Some(job) = self.jobs.get_mut(uid) else { return };
        job.pods.clear();
        if let Selection::Pods(requirements) = &job.selection {
            for (_, facts) in self.pods.of(&job.key.namespace) {
                if let Some(node) = facts.place().filter(|_| requirements.matches(&facts.labels)) {
                    *job.pods.entry(node.clone()).or_default() += 1;
                }
            }
        }
    }
}

fn uncount(pods: &mut HashMap<NodeName, usize>, node: &NodeName) {
    if let Some(count) = pods.get_mut(node) {
        *count -= 1;
        if *count == 0 {
            pods.remove(node);
        }
    }
}

/// The place of jobs whose image cannot be read.
fn no_image() -> ImageKey {
    ImageKey { name: String::new(), tag: String::new() }
}

pub(super) fn version(metadata: &ObjectMeta) -> &str {
    metadata.resource_version.as_deref().unwrap_or_default()
}

/// Whether what is held is newer than what is heard, so that a late echo does not bring back an old state. Versions of
/// one object are numbers that grow; whatever is no number is taken as it comes.
pub(super) fn is_newer(held: &str, heard: &str) -> bool {
    match (held.parse::<u64>(), heard.parse::<u64>()) {
        (Ok(held), Ok(heard)) => held > heard,
        _ => false,
    }
}

/// Of two jobs with one name, whether the first is the one that is gone.
fn is_older_job(held: &ImagePullJob, heard: &ImagePullJob) -> bool {
    !is_newer(version(&held.metadata), version(&heard.metadata))
}

/// Whether nothing but the status has changed, which is the agent's.
fn is_report(old: &NodeImageRecord, new: &NodeImageRecord) -> bool {
    let has_same_spec = old.generation == new.generation && old.labels == new.labels;
    has_same_spec && old.resource_version != new.resource_version
}

/// Whether something has left the spec, so that what was too much may be taken.
fn has_more_room(old: &NodeImageRecord, new: &NodeImageRecord) -> bool {
    let is_smaller = |new: &ImageRecord, old: &ImageRecord| {
        new.tags.len() < old.tags.len() || new.secrets.len() < old.secrets.len()
    };
    old.images.iter().any(|(name, old)| new.images.get(name).is_none_or(|new| is_smaller(new, old)))
}

/// The entries that differ between two states of a NodeImage.
fn changed_keys(old: &NodeImageRecord, new: &NodeImageRecord) -> Vec<ImageKey> {
    let mut keys = Vec::new();
    let names: BTreeSet<&Arc<str>> = old.images.keys().chain(new.images.keys()).collect();
    for name in names {
        let (was, is) = (old.images.get(name), new.images.get(name));
        if was == is {
            continue;
        }
        let tags: BTreeSet<&Arc<str>> =
            [was, is].into_iter().flatten().flat_map(|image| &image.tags).map(|tag| &tag.tag).collect();
        let shares_secrets = was.map(|image| &image.secrets) == is.map(|image| &image.secrets);
        for tag in tags {
            let of = |image: Option<&ImageRecord>| image.and_then(|image| image.tag(tag)).cloned();
            if !shares_secrets || of(was) != of(is) {
                keys.push(ImageKey { name: name.to_string(), tag: tag.to_string() });
            }
        }
    }
    keys
}
