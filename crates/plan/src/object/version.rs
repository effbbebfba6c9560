//! Versions of objects, which decide whether what is held or what was observed is the later state.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The resourceVersion of an object; empty if it has none.
pub fn version(metadata: &ObjectMeta) -> &str {
    metadata.resource_version.as_deref().unwrap_or_default()
}

/// Whether what is held is newer than what was observed, so that a late echo does not bring back an old state. Versions
/// of one object are numbers that grow; a version that is no number never counts as newer.
pub fn is_newer(held: &str, observed: &str) -> bool {
    match (held.parse::<u64>(), observed.parse::<u64>()) {
        (Ok(held), Ok(observed)) => held > observed,
        _ => false,
    }
}

/// Whether an object that is being deleted has nothing left to wait for: with its last finalizer goes the object, although
/// the answer to that write still shows it.
pub fn has_ended(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
}

/// Whether an object is being deleted together with everything that it owns (`--cascade=foreground`).
pub fn takes_dependents(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && has_finalizer(metadata, "foregroundDeletion")
}

/// Whether an object is being deleted and what it owns stays (`--cascade=orphan`).
pub fn leaves_dependents(metadata: &ObjectMeta) -> bool {
    has_finalizer(metadata, "orphan")
}

fn has_finalizer(metadata: &ObjectMeta, name: &str) -> bool {
    metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}
