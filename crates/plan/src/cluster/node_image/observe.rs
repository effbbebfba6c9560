//! What is observed of Nodes and NodeImages, by a watch or as the outcome of a write, becomes records. Nothing is decided here; what
//! has changed is marked.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::{API_VERSION, NodeImage, PullPhase};
use prewarm_api::names::event::PULL_IMAGE_FAILED;

use super::intents::Refused;
use super::node::{Facts, Node};
use super::record::{ImageRecord, NodeImageRecord, TagRecord};
use super::silence::Verdict;
use crate::cluster::broadcast_job::fitness::NodeFacts;
use crate::cluster::command::{Notice, Outcome, Settled};
use crate::cluster::interface::{About, Observe, Writes};
use crate::cluster::{Kernel, Object, Target, measure, reference};
use crate::object::version::is_newer;
use crate::object::{ImageKey, NodeName, ObjectKey, Uid};

impl Observe for NodeObject {
    const ABOUT: About = About { is_needed: true, ..About::new("v1", "Node", Writes::Nothing) };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, _now: Timestamp) {
        kernel.observe_node(self);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, _uid: Option<&str>) {
        kernel.forget_node(&key.name);
    }

    fn released(kernel: &mut Kernel, key: &ObjectKey, _uid: Uid) {
        kernel.agenda.mark(Target::Node(key.name.as_str().into()));
    }
}

impl Observe for NodeImage {
    const ABOUT: About = About { is_needed: true, ..About::new(API_VERSION, "NodeImage", Writes::Both) };

    fn metadata(&self) -> Option<&ObjectMeta> {
        Some(&self.metadata)
    }

    fn observe(self, kernel: &mut Kernel, now: Timestamp) {
        kernel.observe_node_image(self, now);
    }

    fn forget(kernel: &mut Kernel, key: &ObjectKey, uid: Option<&str>) {
        kernel.forget_node_image(&key.name, uid);
    }

    fn held(kernel: &Kernel) -> Vec<(ObjectKey, Uid)> {
        kernel.nodes.held()
    }

    fn released(kernel: &mut Kernel, key: &ObjectKey, _uid: Uid) {
        kernel.agenda.mark(Target::Node(key.name.as_str().into()));
    }
}

impl Kernel {
    /// A Node is like this.
    fn observe_node(&mut self, object: NodeObject) {
        let Some(name) = object.metadata.name.as_deref().map(|name| self.shared.text::<NodeName>(name))
        else {
            return;
        };
        let mut fitness = NodeFacts::read(&object, Arc::default());
        let facts = Facts::read(object, &self.settings.agent_nodes, &mut self.shared);
        fitness.labels = facts.labels.clone();
        fitness.allocatable = self.shared.amounts(fitness.allocatable);
        self.observe_fitness(&name, fitness);
        let node = self.nodes.all.entry(name.clone()).or_default();
        // A Node's status changes every few seconds without any difference for us.
        if node.facts.as_ref() != Some(&facts) {
            node.facts = Some(facts);
            self.node_changed(&name);
        }
    }

    /// A Node is gone.
    fn forget_node(&mut self, name: &str) {
        let name: NodeName = self.shared.text(name);
        self.forget_fitness(&name);
        if self.nodes.all.get_mut(&name).and_then(|node| node.facts.take()).is_some() {
            self.node_changed(&name);
        }
    }

    /// A NodeImage is like this.
    pub(super) fn observe_node_image(&mut self, mut object: NodeImage, now: Timestamp) {
        object.metadata.managed_fields = None;
        let Some(name) = object.metadata.name.as_deref().map(|name| self.shared.text::<NodeName>(name))
        else {
            return;
        };
        let new = self.shared.record(object);
        let node = self.nodes.all.entry(name.clone()).or_default();
        // An earlier object of this name has an earlier version, too.
        if node.image.as_ref().is_some_and(|old| is_newer(&old.resource_version, &new.resource_version)) {
            return;
        }
        let Some(old) = node.image.as_ref().filter(|old| old.uid == new.uid).cloned() else {
            if let Some(other) = &node.image {
                self.nodes.holders.end(&name, other);
            }
            self.nodes.holders.begin(&name, &new);
            node.forget_image();
            node.begun.observe(&new, new.keys(), now);
            (node.image, node.reported_at) = (Some(new), Some(now));
            return self.node_changed(&name);
        };
        if is_report(&old, &new) && node.judging.is_empty() {
            node.reported_at = Some(now);
        }
        let mut changed = changed_keys(&old, &new);
        if has_more_room(&old, &new) {
            changed.extend(node.forget_refusals());
        }
        node.begun.observe(&new, changed.iter().cloned(), now);
        if old.generation != new.generation {
            node.crowded.room_changed();
        }
        let moves = old.labels != new.labels || old.is_terminating != new.is_terminating;
        self.nodes.holders.change(&name, &old, &new, &changed);
        let measured = measure::measure(&old, &new, &changed, &self.demands, now);
        node.image = Some(new);
        self.keep_measured(measured);
        if moves {
            return self.node_changed(&name);
        }
        self.agenda.mark(Target::Node(name.clone()));
        for key in changed {
            self.entry_changed(&key, &name);
        }
    }

    /// A NodeImage is gone. With a UID, only if it is still that one.
    pub(super) fn forget_node_image(&mut self, name: &str, uid: Option<&str>) {
        let name: NodeName = self.shared.text(name);
        let Some(node) = self.nodes.all.get_mut(&name) else { return };
        let is_that = |held: &str| uid.is_none_or(|uid| uid == held);
        if let Some(image) = node.image.as_ref().filter(|image| is_that(&image.uid)) {
            self.nodes.holders.end(&name, image);
            node.forget_image();
            self.node_changed(&name);
        }
    }
}

/// Whether nothing but the status has changed, which is the agent's.
fn is_report(old: &NodeImageRecord, new: &NodeImageRecord) -> bool {
    let has_same_metadata = old.labels == new.labels && old.runtime == new.runtime;
    let has_same_spec = old.generation == new.generation && has_same_metadata;
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

impl Kernel {
    /// A NodeImage was written, or not.
    pub(super) fn settle_node_image(&mut self, name: &NodeName, settled: Settled) {
        let Settled { outcome, now, jitter, .. } = settled;
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        let was_failing = node.attempts.is_failing();
        let (carried, concerned) = node.land();
        let addressed = node.addressed.take();
        match outcome {
            Outcome::Written(object) => {
                node.attempts.succeed(now);
                node.taken();
                if let Some(image) = held_image(object, node) {
                    node.answer_fields(image.metadata.resource_version.clone());
                    self.observe_node_image(image, now);
                    self.record_verdicts(name);
                }
            }
            Outcome::Gone => {
                node.attempts.succeed(now);
                if addressed.is_some() {
                    self.forget_node_image(name, addressed.as_deref());
                }
            }
            Outcome::Collided(object) => {
                node.attempts.collide(now, jitter);
                if let Some(image) = held_image(object, node) {
                    self.observe_node_image(image, now);
                }
            }
            Outcome::Refused(reason) => match node.refused(&carried, &reason) {
                Refused::Whole => node.attempts.fail(now, jitter),
                Refused::Split => node.attempts.succeed(now),
                Refused::Entry(key) => {
                    node.attempts.succeed(now);
                    node.crowded.room_changed();
                    self.entry_changed(&key, name);
                    self.record_refusal(name, &key, &reason);
                }
            },
            Outcome::Failed(_) => {
                outcome.pause(&mut node.attempts, now, jitter);
                let complaint = outcome.complaint(&mut node.attempts, now);
                let about = reference::node_image(name, Some(node));
                self.complain(about, complaint, now);
            }
        }
        let node = self.nodes.all.get_mut(name);
        let is_failing = node.is_some_and(|node| {
            node.judging.clear();
            node.attempts.is_failing()
        });
        if was_failing == is_failing {
            for uid in concerned {
                self.update_standing(&uid, name);
            }
            self.agenda.mark(Target::Node(name.clone()));
        } else {
            self.node_changed(name);
        }
    }

    fn record_refusal(&mut self, name: &NodeName, key: &ImageKey, reason: &str) {
        let note = format!("{}:{} cannot be written to this node: {reason}", key.name, key.tag);
        let about = reference::node_image(name, self.nodes.all.get(name));
        self.events.push(Notice::warning(PULL_IMAGE_FAILED, note).about(about));
    }

    /// Records the verdicts that were written (kruise R18). Those that did not hold any more were not.
    fn record_verdicts(&mut self, name: &NodeName) {
        let Some(node) = self.nodes.all.get_mut(name) else { return };
        let verdicts = std::mem::take(&mut node.judging);
        let holds = |verdict: &Verdict| {
            let tag = node.image.as_ref().and_then(|image| image.tag(&verdict.key)).map(|(_, tag)| tag);
            let status = tag.and_then(TagRecord::current).filter(|status| status.version == verdict.version);
            status.is_some_and(|status| status.phase == PullPhase::Failed)
        };
        let node_image = reference::node_image(name, Some(node));
        for Verdict { key, message, owners, .. } in verdicts.into_iter().filter(holds) {
            let sentence = format!("{}:{} on node {name}: {message}", key.name, key.tag);
            for about in owners.into_iter().chain([node_image.clone()]) {
                self.events.push(Notice::warning(PULL_IMAGE_FAILED, sentence.clone()).about(about));
            }
        }
    }
}

/// The NodeImage that an answer shows, unless it is known to be gone.
fn held_image(object: Object, node: &Node) -> Option<NodeImage> {
    let Object::NodeImage(image) = object else { return None };
    (!node.has_forgotten(&image)).then_some(*image)
}
