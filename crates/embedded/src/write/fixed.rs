//! Which fields of built-in kinds are immutable: only the rules that our programs can meet.

use serde_json::Value;

use super::metadata::immutable;
use crate::refusal::Cause;
use crate::resource::Resource;

/// The immutable fields that a write changes.
pub(super) fn check(resource: &Resource, object: &Value, old: &Value) -> Vec<Cause> {
    let is_secret = resource.kind == "Secret";
    if resource.is_custom || !resource.group.is_empty() || !(is_secret || resource.kind == "ConfigMap") {
        return Vec::new();
    }
    let mut causes = Vec::new();
    if is_secret && object["type"] != old["type"] {
        causes.push(immutable("type", &object["type"]));
    }
    if old["immutable"] != true {
        return causes;
    }
    if object["immutable"] != true {
        causes.push(forbidden("immutable"));
    }
    let changed = ["data", "binaryData"].into_iter().filter(|field| object[*field] != old[*field]);
    causes.extend(changed.map(forbidden));
    causes
}

fn forbidden(field: &str) -> Cause {
    Cause {
        reason: "FieldValueForbidden".to_owned(),
        message: "Forbidden: field is immutable when `immutable` is set".to_owned(),
        field: field.to_owned(),
    }
}
