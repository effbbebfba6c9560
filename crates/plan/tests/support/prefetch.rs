//! ImagePrefetches and NodeImageSets in the small world.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_api::ofen::{
    ImagePrefetch, ImagePrefetchStatus, NodeImageSet, NodeImageSetStatus, RegistryPolicy,
};
use prewarm_plan::cluster::Input;
use prewarm_plan::cluster::Kind;
use prewarm_plan::cluster::command::{Outcome, Verb};
use prewarm_plan::object::ObjectKey;
use serde_json::{Value, json};

use super::build::{NAMESPACE, at, job_key, uid};
use super::store::{Store, cluster_key, gone, patched};
use super::world::World;

/// An ImagePrefetch of `nginx:1` for all nodes, with these fields of its spec.
pub fn prefetch(name: &str, fields: &Value) -> ImagePrefetch {
    let mut object = json!({
        "apiVersion": "ofen.cybozu.io/v1",
        "kind": "ImagePrefetch",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid(name),
            "generation": 1,
            "creationTimestamp": Time(at(0)),
        },
        "spec": {"images": ["nginx:1"]},
    });
    json_patch::merge(&mut object["spec"], fields);
    if object["spec"]["replicas"].is_null() {
        object["spec"]["allNodes"] = json!(true);
    }
    serde_json::from_value(object).unwrap()
}

/// A NodeImageSet for a node that a person makes, with these fields of its spec.
pub fn node_image_set(name: &str, node: &str, fields: &Value) -> NodeImageSet {
    let mut object = json!({
        "apiVersion": "ofen.cybozu.io/v1",
        "kind": "NodeImageSet",
        "metadata": {"name": name, "creationTimestamp": Time(at(0))},
        "spec": {"images": ["nginx:1"], "registryPolicy": "Default", "nodeName": node},
    });
    json_patch::merge(&mut object["spec"], fields);
    serde_json::from_value(object).unwrap()
}

impl Store {
    /// An ImagePrefetch is made, or made anew after its namesake.
    pub fn create_prefetch(&mut self, mut object: ImagePrefetch) {
        self.touch(&mut object.metadata);
        self.prefetches.insert(ObjectKey::of(&object.metadata), object.clone());
        self.emit(Input::seen(object));
    }

    /// A person changes an ImagePrefetch.
    pub fn edit_prefetch(&mut self, name: &str, fields: &Value) {
        let key = job_key(name);
        let Some(old) = self.prefetches.get(&key).cloned() else { return };
        let mut spec = json!(old.spec);
        json_patch::merge(&mut spec, fields);
        let new = ImagePrefetch { spec: serde_json::from_value(spec).unwrap(), ..old.clone() };
        self.keep_prefetch(&old, new);
    }

    /// A person deletes an ImagePrefetch.
    pub fn delete_prefetch(&mut self, name: &str, now: Timestamp) {
        let Some(old) = self.prefetches.get(&job_key(name)).cloned() else { return };
        let mut new = old.clone();
        new.metadata.deletion_timestamp.get_or_insert(Time(now));
        self.keep_prefetch(&old, new);
    }

    fn keep_prefetch(&mut self, old: &ImagePrefetch, mut new: ImagePrefetch) -> ImagePrefetch {
        if new == *old && new.metadata.deletion_timestamp.is_none() {
            return new;
        }
        if new.spec != old.spec {
            new.metadata.generation = new.metadata.generation.map(|generation| generation + 1);
        }
        self.touch(&mut new.metadata);
        let key = ObjectKey::of(&new.metadata);
        let is_held = new.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
        if new.metadata.deletion_timestamp.is_some() && !is_held {
            self.prefetches.remove(&key);
            self.emit(gone(Kind::ImagePrefetch, key, new.metadata.uid.clone()));
        } else {
            self.prefetches.insert(key, new.clone());
            self.emit(Input::seen(new.clone()));
        }
        new
    }

    pub(super) fn write_prefetch(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        verb: Verb,
    ) -> Outcome<ImagePrefetch> {
        let Some(old) = self.prefetches.get(key).cloned() else { return Outcome::Gone };
        if old.metadata.uid.as_deref() != Some(uid) {
            return Outcome::Collided(old);
        }
        let new = match verb {
            Verb::Patch(operations, _) => {
                patched(&old, operations).map(|new| ImagePrefetch { status: old.status.clone(), ..new })
            }
            Verb::PatchStatus(operations) => {
                patched(&old, operations).map(|new| ImagePrefetch { status: new.status, ..old.clone() })
            }
            verb => panic!("no ImagePrefetch is written like this: {verb:?}"),
        };
        match new {
            Some(new) => Outcome::Written(self.keep_prefetch(&old, new)),
            None => Outcome::Collided(old),
        }
    }

    /// A person makes a NodeImageSet.
    pub fn create_set(&mut self, mut set: NodeImageSet) {
        let name = set.metadata.name.clone().unwrap();
        set.metadata.uid = Some(self.uid(&name));
        set.metadata.generation = Some(1);
        self.touch(&mut set.metadata);
        self.sets.insert(name, set.clone());
        self.emit(Input::seen(set));
    }

    /// A person, or a program of before, changes a NodeImageSet.
    pub fn edit_set(&mut self, name: &str, change: impl FnOnce(&mut NodeImageSet)) {
        let Some(old) = self.sets.get(name).cloned() else { return };
        let mut new = old.clone();
        change(&mut new);
        self.keep_set(&old, new);
    }

    /// A NodeImageSet is deleted.
    pub fn delete_set(&mut self, name: &str, now: Timestamp) {
        self.edit_set(name, |set| {
            set.metadata.deletion_timestamp.get_or_insert(Time(now));
        });
    }

    fn keep_set(&mut self, old: &NodeImageSet, mut new: NodeImageSet) -> NodeImageSet {
        if new == *old && new.metadata.deletion_timestamp.is_none() {
            return new;
        }
        let is_new = new.spec != old.spec
            || new.metadata.deletion_timestamp.is_some() != old.metadata.deletion_timestamp.is_some();
        new.metadata.generation = new.metadata.generation.map(|generation| generation + i64::from(is_new));
        self.touch(&mut new.metadata);
        let name = new.metadata.name.clone().unwrap();
        let is_held = new.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
        if new.metadata.deletion_timestamp.is_some() && !is_held {
            self.sets.remove(&name);
            self.emit(gone(Kind::NodeImageSet, cluster_key(&name), new.metadata.uid.clone()));
        } else {
            self.sets.insert(name, new.clone());
            self.emit(Input::seen(new.clone()));
        }
        new
    }

    pub(super) fn write_set(
        &mut self,
        name: &str,
        uid: &str,
        verb: Verb,
        now: Timestamp,
    ) -> Outcome<NodeImageSet> {
        if let Verb::Create(object) = verb {
            if let Some(set) = self.sets.get(name) {
                return Outcome::Collided(set.clone());
            }
            self.create_set(serde_json::from_value(*object).unwrap());
            return Outcome::Written(self.sets[name].clone());
        }
        let Some(old) = self.sets.get(name).cloned() else { return Outcome::Gone };
        if old.metadata.uid.as_deref() != Some(uid) {
            return Outcome::Collided(old);
        }
        let new = match verb {
            Verb::Patch(operations, _) => {
                patched(&old, operations).map(|new| NodeImageSet { status: old.status.clone(), ..new })
            }
            Verb::PatchStatus(operations) => {
                patched(&old, operations).map(|new| NodeImageSet { status: new.status, ..old.clone() })
            }
            Verb::Delete => {
                self.delete_set(name, now);
                return self.sets.get(name).cloned().map_or(Outcome::Gone, Outcome::Written);
            }
            verb => panic!("no NodeImageSet is written like this: {verb:?}"),
        };
        match new {
            Some(new) => Outcome::Written(self.keep_set(&old, new)),
            None => Outcome::Collided(old),
        }
    }
}

impl World {
    /// The status of an ImagePrefetch.
    pub fn prefetch_status(&self, name: &str) -> ImagePrefetchStatus {
        self.store.prefetches[&job_key(name)].status.clone().unwrap_or_default()
    }

    /// Desired, pulled, pulling and failed nodes of an ImagePrefetch.
    pub fn prefetch_counts(&self, name: &str) -> [i32; 4] {
        let status = self.prefetch_status(name);
        let ImagePrefetchStatus { desired_nodes, image_pulled_nodes, .. } = status;
        [desired_nodes, image_pulled_nodes, status.image_pulling_nodes, status.image_pull_failed_nodes]
    }

    /// A condition of an ImagePrefetch: its status, reason and message.
    pub fn prefetch_condition(&self, name: &str, type_: &str) -> Option<(String, String, String)> {
        let conditions = self.prefetch_status(name).conditions.unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition.type_ == type_)?;
        Some((found.status, found.reason, found.message))
    }

    /// The nodes that an ImagePrefetch has chosen.
    pub fn selected(&self, name: &str) -> Vec<String> {
        self.prefetch_status(name).selected_nodes.unwrap_or_default()
    }

    /// The NodeImageSets of an ImagePrefetch by node, with policy and generation.
    pub fn sets(&self, name: &str) -> BTreeMap<String, (RegistryPolicy, i64)> {
        let is_of = |set: &&NodeImageSet| {
            let labels = set.metadata.labels.as_ref();
            labels
                .and_then(|labels| labels.get("image-prefetch.ofen.cybozu.io/owner-name"))
                .is_some_and(|of| of == name)
        };
        let said = |set: &NodeImageSet| {
            let spec = &set.spec;
            (
                spec.node_name.clone(),
                (spec.registry_policy, spec.image_prefetch_generation.unwrap_or_default()),
            )
        };
        self.store.sets.values().filter(is_of).map(said).collect()
    }

    /// The nodes whose NodeImageSet of this generation has this policy.
    pub fn nodes_with(&self, name: &str, policy: RegistryPolicy) -> Vec<String> {
        let generation = self.store.prefetches[&job_key(name)].metadata.generation.unwrap_or_default();
        let sets = self.sets(name).into_iter();
        sets.filter(|(_, said)| *said == (policy, generation)).map(|(node, _)| node).collect()
    }

    /// The status of the NodeImageSet of an ImagePrefetch on a node.
    pub fn set_status(&self, name: &str, node: &str) -> NodeImageSetStatus {
        let set = prewarm_plan::cluster::node_image_set::spec::name(name, NAMESPACE, node);
        self.store.sets[&set].status.clone().unwrap_or_default()
    }

    /// The words for the images of a NodeImageSet, in the order of its spec.
    pub fn states(&self, name: &str, node: &str) -> Vec<String> {
        words(&self.set_status(name, node))
    }

    /// Whether an agent may ask the registry for an image, or mirrors alone; with the digest that it is held to.
    pub fn origin(&self, node: &str, image: &str) -> Option<(RegistryPolicy, Option<String>)> {
        let tag = self.tag(node, image)?;
        Some((tag.registry_policy.unwrap_or_default(), tag.digest))
    }

    /// An agent tries on and fails, for this reason.
    pub fn struggle(&mut self, node: &str, image: &str, class: FailureClass, message: &str) {
        self.report_as(node, image, PullPhase::Waiting, |status| {
            status.failure_class = Some(class);
            status.message = Some(message.to_owned());
        });
    }

    /// Every agent that was told to does all that it is told, wave after wave. Says how many waves that took.
    pub fn finish_prefetch(&mut self, name: &str) -> usize {
        for wave in 0..100 {
            let status = self.prefetch_status(name);
            if wave > 0 && status.desired_nodes > 0 && status.desired_nodes == status.image_pulled_nodes {
                return wave;
            }
            self.pass(std::time::Duration::from_secs(1));
            self.pull_all();
            self.pass(std::time::Duration::from_secs(1));
        }
        panic!("it does not end: {:?}", self.prefetch_status(name))
    }
}

/// The words for the images of a NodeImageSet.
pub fn words(status: &NodeImageSetStatus) -> Vec<String> {
    let images = status.container_image_statuses.iter().flatten();
    images.map(|image| image.last_state.clone().unwrap_or_default()).collect()
}
