//! From a difference to a JSON patch. It is guarded by tests on UID and generation, so that it collides with other
//! writers of the spec but never with an agent's report (design 4).

use serde_json::{Map, Value, json};

use super::Changes;
use crate::cluster::node_image::node::Node;
use crate::cluster::node_image::record::NodeImageRecord;

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

/// The Node as owner of its NodeImage.
pub fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid})
}

/// The changed entries.
pub fn entries(image: &NodeImageRecord, changes: &Changes) -> Vec<Value> {
    if image.images.is_empty() {
        let new: Map<String, Value> = changes
            .iter()
            .filter_map(|(name, new)| Some((name.to_string(), json!(new.as_ref()?.to_spec()))))
            .collect();
        let is_needed = !new.is_empty();
        // There may be no `images` to add to, and nothing else is in a spec.
        return is_needed
            .then(|| json!({"op": "add", "path": "/spec", "value": {"images": new}}))
            .into_iter()
            .collect();
    }
    let operation =
        |(name, new): (&std::sync::Arc<str>, &Option<crate::cluster::node_image::record::ImageRecord>)| {
            let path = format!("/spec/images/{}", name.replace('~', "~0").replace('/', "~1"));
            match new {
                Some(new) => json!({"op": "add", "path": path, "value": new.to_spec()}),
                None => json!({"op": "remove", "path": path}),
            }
        };
    changes.iter().map(operation).collect()
}
