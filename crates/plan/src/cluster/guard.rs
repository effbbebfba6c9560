//! Operations of JSON patches that every kind needs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::names::DELETION_PROTECTION_FINALIZER;
use serde_json::{Value, json};

/// Puts tests on UID and version in front, so that a write that was decided on an older state does nothing.
pub fn guarded(metadata: &ObjectMeta, operations: Vec<Value>) -> Vec<Value> {
    let tests = [
        json!({"op": "test", "path": "/metadata/uid", "value": metadata.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": metadata.resource_version}),
    ];
    tests.into_iter().chain(operations).collect()
}

/// Replaces the whole status.
pub fn replace_status(status: Value) -> Vec<Value> {
    let mut operation = json!({"op": "add", "path": "/status"});
    operation["value"] = status;
    vec![operation]
}

/// Whether an object has our finalizer.
pub fn has_finalizer(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().flatten().any(|finalizer| finalizer == DELETION_PROTECTION_FINALIZER)
}

/// Adds our finalizer to those that an object has.
pub fn add_finalizer(metadata: &ObjectMeta) -> Vec<Value> {
    let has_others = metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    vec![if has_others {
        json!({"op": "add", "path": "/metadata/finalizers/-", "value": DELETION_PROTECTION_FINALIZER})
    } else {
        json!({"op": "add", "path": "/metadata/finalizers", "value": [DELETION_PROTECTION_FINALIZER]})
    }]
}

/// Takes our finalizer off, and leaves those of others.
pub fn remove_finalizer(metadata: &ObjectMeta) -> Vec<Value> {
    remove_finalizer_named(metadata, DELETION_PROTECTION_FINALIZER).unwrap_or_default()
}

/// Takes a finalizer off, if there is one of this name.
pub fn remove_finalizer_named(metadata: &ObjectMeta, name: &str) -> Option<Vec<Value>> {
    let index = metadata.finalizers.as_ref()?.iter().position(|finalizer| finalizer == name)?;
    Some(vec![json!({"op": "remove", "path": format!("/metadata/finalizers/{index}")})])
}
