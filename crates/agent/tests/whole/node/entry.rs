//! Entries of a NodeImage's spec. Each starts valid and is changed by what the test is about.

use serde_json::{Value, json};

/// An entry for one tag, as a person writes it.
pub fn tag(tag: &str) -> Value {
    json!({ "tag": tag, "pullPolicy": { "ttlSecondsAfterFinished": 600 } })
}

/// The entry with these fields, too.
pub fn with(mut entry: Value, fields: &Value) -> Value {
    json_patch::merge(&mut entry, fields);
    entry
}

/// The entry with these limits.
pub fn policy(entry: Value, policy: &Value) -> Value {
    with(entry, &json!({ "pullPolicy": policy }))
}

/// The entry in this round.
pub fn version(entry: Value, version: i64) -> Value {
    with(entry, &json!({ "version": version }))
}

/// The entry, pulled even if the node has the image.
pub fn always(entry: Value) -> Value {
    with(entry, &json!({ "imagePullPolicy": "Always" }))
}

/// The entry as the controller writes it for a job in the namespace `default`.
pub fn owned(entry: Value, job: &str) -> Value {
    let owner = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "namespace": "default", "name": job, "uid": format!("uid-of-{job}"),
    });
    with(entry, &json!({ "ownerReferences": [owner] }))
}

/// One image with tags by hand.
pub fn image(tags: &[&str]) -> Value {
    image_of(tags.iter().map(|name| tag(name)).collect())
}

/// One image with these entries.
pub fn image_of(entries: Vec<Value>) -> Value {
    json!({ "tags": Value::Array(entries) })
}
