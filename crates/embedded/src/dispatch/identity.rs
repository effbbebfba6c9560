//! Checks that an object's kind, version, name and namespace agree with the path.

use serde_json::Value;

use crate::refusal::{Cause, Refusal};
use crate::resource::Resource;
use crate::store::Key;

/// Checks the kind and version of an object. A built-in one may leave them out, since its path has them.
pub(super) fn check_kind(resource: &Resource, version: &str, object: &mut Value) -> Result<(), Refusal> {
    let expected = resource.api_version(version);
    for (field, value) in [("apiVersion", &expected), ("kind", &resource.kind)] {
        let is_blank = object[field].is_null() || object[field] == "";
        if is_blank && resource.is_custom {
            return Err(Refusal::bad_request(format!("Object '{field}' is missing")));
        }
        if is_blank {
            object[field] = value.clone().into();
        }
    }
    let given = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    if given("apiVersion") != expected {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            given("apiVersion")
        )));
    }
    if given("kind") == resource.kind {
        return Ok(());
    }
    if resource.is_custom {
        return Err(posing(resource, object, "kind", &resource.kind));
    }
    Err(Refusal::bad_request(format!(
        "the kind in the data ({}) does not match the expected kind ({})",
        given("kind"),
        resource.kind
    )))
}

/// Checks that a patch did not change the kind and version of an object.
pub(super) fn check_patched(
    resource: &Resource,
    version: &str,
    object: &Value,
    patch: &str,
) -> Result<(), Refusal> {
    if !object["metadata"].is_object() && !object["metadata"].is_null() {
        return Err(Refusal::invalid_patch(patch, "metadata must be an object"));
    }
    for (field, expected) in [("kind", &resource.kind), ("apiVersion", &resource.api_version(version))] {
        if object[field] == **expected {
            continue;
        }
        if resource.is_custom {
            return Err(posing(resource, object, field, expected));
        }
        return Err(Refusal::invalid_patch(patch, &format!("{field} must be {expected}")));
    }
    Ok(())
}

pub(super) fn check_name(resource: &Resource, key: &Key, object: &Value) -> Result<(), Refusal> {
    let given = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    if given("name").is_empty() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            key.name
        )));
    }
    if given("name") != key.name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            given("name"),
            key.name
        )));
    }
    if resource.namespaced && !given("namespace").is_empty() && given("namespace") != key.namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// The refusal of a custom object with the wrong kind or version. A real server names it by what the object says.
fn posing(resource: &Resource, object: &Value, field: &str, expected: &str) -> Refusal {
    let cause = Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: {}: must be {expected}", object[field]),
        field: field.to_owned(),
    };
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let posing = Resource { kind, ..resource.clone() };
    Refusal::invalid(&posing, object["metadata"]["name"].as_str().unwrap_or_default(), &[cause])
}
