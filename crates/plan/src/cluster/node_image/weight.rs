//! What entries cost in a NodeImage, in bytes of JSON: never less than the API server stores, and without making the text.
//!
//! The name of an image costs three times, because the managed fields of spec and status repeat it, and the keys of
//! a sandbox twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use prewarm_api::kruise::{SandboxConfig, SecretReference};
use prewarm_api::reference_object::ObjectReference;

use super::Wanted;
use super::record::ImageRecord;
use crate::object::ImageKey;

/// The most bytes of a NodeImage's spec, with what its names cost elsewhere. With a status of at most 600,000 bytes and
/// the labels of a node, the whole object has less than 1 MiB, which is two thirds of what etcd takes.
pub const MOST_BYTES: usize = 384 * 1024;
/// An image's keys and brackets, in the spec and in the managed fields of spec and status.
const IMAGE: usize = 96;
/// The same of its Secrets and of its sandbox, where it has any.
const SECRETS: usize = 40;
const SANDBOX: usize = 160;
/// A tag with the longest numbers and every field, without its name and its owners.
const TAG: usize = 384;
/// Where a tag comes from, and its digest, if it comes from mirrors alone.
const MIRRORS: usize = 320;
/// The keys of an owner and of a Secret, all of them.
const OWNER: usize = 96;
const SECRET: usize = 40;

/// All images of a NodeImage.
pub fn of_images(images: &BTreeMap<Arc<str>, ImageRecord>) -> usize {
    images.iter().map(|(name, image)| of_image(name, image)).sum()
}

/// One image with everything in it.
pub fn of_image(name: &str, image: &ImageRecord) -> usize {
    let tags = image.tags.iter().map(|tag| {
        let mirrors = tag.mirrors.as_ref().map_or(0, |_| MIRRORS);
        of_tag(&tag.tag) + mirrors + tag.owners.iter().map(of_owner).sum::<usize>()
    });
    let secrets = image.secrets.iter().map(of_secret).sum::<usize>();
    of_name(name) + image.sandbox.as_deref().map_or(0, of_sandbox) + secrets + tags.sum::<usize>()
}

/// All that a job can add to a NodeImage.
pub fn of_demand(key: &ImageKey, wanted: &Wanted) -> usize {
    let sandbox = wanted.demand.sandbox.as_ref().map_or(0, of_sandbox);
    let secrets = wanted.secrets.iter().map(of_secret).sum::<usize>();
    of_name(&key.name) + sandbox + secrets + of_tag(&key.tag) + of_owner(&wanted.demand.owner)
}

/// An image without its tags, Secrets and sandbox.
pub fn of_name(name: &str) -> usize {
    IMAGE + SECRETS + 3 * text(name)
}

/// A tag without its owners.
pub fn of_tag(tag: &str) -> usize {
    TAG + text(tag)
}

/// One owner of a tag. Names of objects need no escapes.
pub fn of_owner(owner: &ObjectReference) -> usize {
    let ObjectReference { api_version, kind, namespace, name, uid, resource_version, field_path } = owner;
    let fields = [api_version, kind, namespace, name, uid, resource_version, field_path];
    OWNER + fields.into_iter().flatten().map(String::len).sum::<usize>()
}

/// One reference to a Secret.
pub fn of_secret(secret: &SecretReference) -> usize {
    let fields = [&secret.namespace, &secret.name, &secret.mode];
    SECRET + fields.into_iter().flatten().map(String::len).sum::<usize>()
}

/// Labels and annotations for the runtime.
pub fn of_sandbox(sandbox: &SandboxConfig) -> usize {
    let entries = sandbox.labels.iter().chain(&sandbox.annotations).flatten();
    SANDBOX + entries.map(|(key, value)| 8 + 2 * text(key) + text(value)).sum::<usize>()
}

/// A text with quotes and a comma or colon, as the API server writes it: it escapes what HTML would read otherwise, too.
fn text(text: &str) -> usize {
    let characters = text.chars().map(|character| match character {
        '"' | '\\' => 2,
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    });
    3 + characters.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::node_image::record::Shared;

    /// What a writer's managed fields have of a value: the keys of its maps, and a list as a whole.
    fn managed(value: &Value) -> Value {
        let Value::Object(map) = value else { return json!({}) };
        let inner = map.iter().map(|(key, value)| (format!("f:{key}"), managed(value)));
        Value::Object(inner.chain([(".".to_owned(), json!({}))]).collect())
    }

    fn bytes(value: &Value) -> usize {
        let text = value.to_string();
        let escaped = text.chars().filter(|character| "<>&".contains(*character)).count();
        text.len() + 5 * escaped
    }

    fn longest() -> Value {
        let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "n".repeat(63),
            "name": "j".repeat(253), "uid": "u".repeat(36), "resourceVersion": "9".repeat(20), "fieldPath": "f".repeat(99)});
        let policy = json!({"timeoutSeconds": i32::MAX, "backoffLimit": i32::MAX, "ttlSecondsAfterFinished": i32::MAX,
            "activeDeadlineSeconds": i64::MAX});
        let secret = json!({"namespace": "n".repeat(63), "name": "s".repeat(253), "mode": "batch"});
        json!({
            "pullSecrets": [secret, secret],
            "tags": [{"tag": "t".repeat(128), "createdAt": "2026-11-18T00:00:00Z", "pullPolicy": policy,
                "ownerReferences": [owner, owner], "version": i64::MAX, "imagePullPolicy": "IfNotPresent",
                "manual": true, "renewedAt": "2026-11-18T00:00:00Z", "secretMissing": true}],
            "sandboxConfig": {"labels": {"<a>": "&\"\u{1}ü"}, "annotations": {"key": "v".repeat(999)}},
        })
    }

    fn shortest() -> Value {
        json!({"tags": [{"tag": "1", "pullPolicy": {"ttlSecondsAfterFinished": 0}}]})
    }

    #[test]
    fn an_entry_never_costs_more_than_it_is_counted_with() {
        for (name, spec) in [("a", longest()), ("a", shortest()), (&"n".repeat(500)[..], longest())] {
            let object = json!({"metadata": {"name": "n1"}, "spec": {"images": {name: spec}}});
            let record = Shared::default().record(serde_json::from_value(object).unwrap());
            let stored = record.images[name].to_spec();
            let spec = json!({name: stored});
            let status = json!({name: {"tags": []}});
            let size = bytes(&spec) + bytes(&managed(&spec)) + bytes(&managed(&status));
            let counted = of_images(&record.images);
            assert!((size..size + 600).contains(&counted), "{counted} for {size}");
        }
    }
}
