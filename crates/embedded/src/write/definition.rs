//! CustomResourceDefinitions: storing one changes which kinds the server has.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::refusal::{Cause, Refusal};
use crate::resource::{self, Resource};
use crate::state::{ResourceId, State};
use crate::store::Stored;

/// The finalizer of a definition: its objects are deleted before it.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn id() -> ResourceId {
    ("apiextensions.k8s.io".to_owned(), "customresourcedefinitions".to_owned())
}

fn is_definition(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

/// If the object is a definition, refuses it unless it can be read as one, so that the rest can rely on its form.
pub(super) fn read(resource: &Resource, object: &Value) -> Result<(), Refusal> {
    if !is_definition(resource) {
        return Ok(());
    }
    CustomResourceDefinition::deserialize(object).map(drop).map_err(|error| {
        Refusal::bad_request(format!(
            "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition: {error}"
        ))
    })
}

/// If the object is a definition, completes it and returns the kind it describes.
pub(super) fn prepare(
    resource: &Resource,
    object: &mut Value,
    now: &Value,
) -> Result<Option<Resource>, Refusal> {
    if !is_definition(resource) {
        return Ok(None);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let fault = |field: &str, message: String| {
        let cause = Cause { reason: "FieldValueInvalid".to_owned(), message, field: field.to_owned() };
        Refusal::invalid(resource, &name, &[cause])
    };
    complete(object);
    check_versions(resource, &name, &object["spec"]["versions"])?;
    let kind = resource::from_definition(object)
        .map_err(|error| fault("spec.versions", format!("Invalid value: \"object\": {error}")))?;
    let expected = format!("{}.{}", kind.plural, kind.group);
    if name != expected {
        return Err(fault(
            "metadata.name",
            format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group"),
        ));
    }
    accept(object, now);
    Ok(Some(kind))
}

/// If the object is a definition, the kind that is served because of it.
pub(super) fn kind_of(state: &State, resource: &Resource, stored: &Stored) -> Option<Arc<Resource>> {
    let (plural, group) = stored.key.name.split_once('.').filter(|_| is_definition(resource))?;
    state.resources.find(group, plural).cloned()
}

/// Checks that exactly one version is stored and every version has a schema.
fn check_versions(resource: &Resource, name: &str, versions: &Value) -> Result<(), Refusal> {
    let versions = versions.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut causes = Vec::new();
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        causes.push(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: "Invalid value: must have exactly one version marked as storage version".to_owned(),
            field: "spec.versions".to_owned(),
        });
    }
    for (index, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            causes.push(Cause {
                reason: "FieldValueRequired".to_owned(),
                message: "Required value: schemas are required".to_owned(),
                field: format!("spec.versions[{index}].schema.openAPIV3Schema"),
            });
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(resource, name, &causes)) }
}

/// If the object was a definition, removes its kind and all objects of it.
pub(super) fn forget(state: &mut State, resource: &Resource, last: &Stored) {
    if is_definition(resource) {
        let spec = &last.value()["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        state.remove_resource(&text(&spec["group"]), &text(&spec["names"]["plural"]));
    }
}

fn complete(object: &mut Value) {
    if !super::is_terminating(object) {
        let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if finalizers.iter().all(|finalizer| finalizer != CLEANUP) {
            finalizers.push(CLEANUP.into());
        }
        object["metadata"]["finalizers"] = finalizers.into();
    }
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let names = &mut object["spec"]["names"];
    if names["singular"].is_null() {
        names["singular"] = kind.to_lowercase().into();
    }
    if names["listKind"].is_null() {
        names["listKind"] = format!("{kind}List").into();
    }
    if object["spec"]["conversion"].is_null() {
        object["spec"]["conversion"] = json!({ "strategy": "None" });
    }
}

fn accept(object: &mut Value, now: &Value) {
    let stored = object["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<Value> =
        stored.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect();
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now });
    if object["status"]["conditions"].is_null() {
        object["status"]["conditions"] = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ]);
    }
    object["status"]["acceptedNames"] = object["spec"]["names"].clone();
    // Objects that were stored in an earlier version may still exist in it.
    let mut versions = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    versions.extend(stored.into_iter().filter(|version| !versions.contains(version)).collect::<Vec<_>>());
    object["status"]["storedVersions"] = versions.into();
}
