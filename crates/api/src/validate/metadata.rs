//! What Kubernetes itself requires of an object's metadata, as far as a person who writes a manifest can get it wrong.

use serde_json::Value;

use super::{Class, Violation};
use crate::path::FieldPath;
use crate::schema::matches;
use crate::selector::{LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN};

const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const MAX_NAME_LENGTH: usize = 253;
const FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Everything that is wrong with the metadata's values.
pub(super) fn check(object: &Value) -> Vec<Violation> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let path = FieldPath::root().field("metadata");
    let mut violations: Vec<Violation> = name(metadata, &path).into_iter().collect();
    for (key, value) in metadata.get("labels").and_then(Value::as_object).into_iter().flatten() {
        let is_label = value.as_str().is_some_and(|value| matches(LABEL_VALUE_PATTERN, value));
        if !is_label || !matches(LABEL_KEY_PATTERN, key) {
            violations.push(Violation {
                path: path.field("labels"),
                class: Class::Invalid,
                message: format!(
                    "{key}: {value} is not a label: names and values are texts of up to 63 letters, digits, '-', '_' and '.'"
                ),
            });
        }
    }
    violations
}

/// The fields of the metadata that Kubernetes does not know.
pub(super) fn unknown_fields(object: &Value) -> Vec<Violation> {
    let fields = object.get("metadata").and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
    fields
        .filter(|name| !FIELDS.contains(&name.as_str()))
        .map(|name| Violation {
            path: FieldPath::root().field("metadata").field(name),
            class: Class::UnknownField,
            message: format!(
                "unknown field {name:?}; labels and annotations are the places for data of your own"
            ),
        })
        .collect()
}

fn name(metadata: &Value, path: &FieldPath) -> Option<Violation> {
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (class, message) = match text("name") {
        Some(name) if name.len() > MAX_NAME_LENGTH => {
            (Class::TooLong, format!("has {} characters; at most {MAX_NAME_LENGTH} may be given", name.len()))
        }
        Some(name) if !matches(NAME_PATTERN, name) => (
            Class::Invalid,
            format!(
                "{name:?} is not a name: use lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
            ),
        ),
        None if text("generateName").is_none() => {
            (Class::Required, "must be given: name the object".to_owned())
        }
        _ => return None,
    };
    Some(Violation { path: path.field("name"), class, message })
}
