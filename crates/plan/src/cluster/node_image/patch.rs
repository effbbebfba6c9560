//! From a difference to a JSON patch. It is guarded by tests on UID and generation, so that it collides with other
//! writers of the spec but never with an agent's report (design 4).

use std::sync::Arc;

use prewarm_api::names::NODE_RUNTIME_ANNOTATION;
use serde_json::{Map, Value, json};

use super::Changes;
use super::difference::{difference, escaped};
use crate::cluster::node_image::node::Node;
use crate::cluster::node_image::record::{ImageRecord, NodeImageRecord};

/// Puts the tests in front.
pub fn guarded(image: &NodeImageRecord, operations: Vec<Value>) -> Vec<Value> {
    let tests = [
        json!({"op": "test", "path": "/metadata/uid", "value": *image.uid}),
        json!({"op": "test", "path": "/metadata/generation", "value": image.generation}),
    ];
    tests.into_iter().chain(operations).collect()
}

/// Labels equal to the node's, and the Node as owner, so that the two end together (kruise R10).
pub fn metadata(name: &str, node: &Node, image: &NodeImageRecord) -> Vec<Value> {
    let Some(facts) = node.model() else { return Vec::new() };
    let mut operations = Vec::new();
    if facts.labels != image.labels {
        operations.push(json!({"op": "add", "path": "/metadata/labels", "value": *facts.labels}));
    }
    if image.node_uid.is_none() {
        let owner = owner(name, &facts.uid);
        operations.push(if image.has_owners {
            json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": owner})
        } else {
            json!({"op": "add", "path": "/metadata/ownerReferences", "value": [owner]})
        });
    }
    operations
}

/// The container runtime that the node's kubelet reports, by which the agent finds it. An agent without the annotation detects the
/// runtime itself, so the annotation comes with the next entry instead of by a write to every node; a wrong one is corrected.
pub fn runtime(node: &Node, image: &NodeImageRecord, is_alone: bool) -> Vec<Value> {
    let reported = node.model().and_then(|facts| facts.runtime.as_ref());
    let is_due = !is_alone || image.runtime.is_some();
    let Some(reported) = reported.filter(|text| is_due && image.runtime.as_ref() != Some(text)) else {
        return Vec::new();
    };
    let operation = if image.has_annotations {
        let path = format!("/metadata/annotations/{}", escaped(NODE_RUNTIME_ANNOTATION));
        json!({"op": "add", "path": path, "value": **reported})
    } else {
        json!({"op": "add", "path": "/metadata/annotations", "value": {NODE_RUNTIME_ANNOTATION: **reported}})
    };
    // The generation says nothing of annotations, and others' must not be lost.
    let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": image.resource_version});
    vec![test, operation]
}

/// The Node as owner of its NodeImage.
pub fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid})
}

/// The changed entries. Of an entry that stays only what differs is written, so that it keeps what a newer version wrote into it.
pub fn entries(image: &NodeImageRecord, changes: &Changes) -> Vec<Value> {
    if image.images.is_empty() {
        let new: Map<String, Value> = changes
            .iter()
            .filter_map(|(name, new)| Some((name.to_string(), json!(new.as_ref()?.to_spec()))))
            .collect();
        // There may be no `images` to add to.
        let operation = || json!({"op": "add", "path": "/spec/images", "value": new});
        return (!new.is_empty()).then(operation).into_iter().collect();
    }
    let operations = |(name, new): (&Arc<str>, &Option<ImageRecord>)| {
        let path = format!("/spec/images/{}", escaped(name));
        match (image.images.get(name), new) {
            (Some(old), Some(new)) => difference(&path, &json!(old.to_spec()), &json!(new.to_spec())),
            (None, Some(new)) => vec![json!({"op": "add", "path": path, "value": new.to_spec()})],
            (_, None) => vec![json!({"op": "remove", "path": path})],
        }
    };
    changes.iter().flat_map(operations).collect()
}
