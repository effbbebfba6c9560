//! Metadata: it is the same for every kind, and the server knows its fields and rules whatever a kind's schema says.

use serde_json::{Map, Value};

use crate::refusal::{Cause, Refusal};
use crate::resource::Resource;

/// How many bytes all annotations of an object may have together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;
/// The longest name that has to be a single label of a host name.
const MAX_LABEL_LENGTH: usize = 63;

const TEXTS: [&str; 8] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
];
const NUMBERS: [&str; 2] = ["generation", "deletionGracePeriodSeconds"];
const OWNER_TEXTS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
const OWNER_FLAGS: [&str; 2] = ["controller", "blockOwnerDeletion"];

/// Brings metadata into one form, as a real server does by decoding it: nulls become empty, unknown fields are dropped.
/// Returns the paths of the unknown fields.
pub(super) fn read(object: &mut Value) -> Result<Vec<String>, Refusal> {
    let metadata = &mut object["metadata"];
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let fields = metadata.as_object_mut().ok_or_else(|| mistyped("", "an object"))?;
    fields.retain(|_, value| !value.is_null());
    for (name, value) in fields.iter_mut() {
        read_field(name, value)?;
    }
    let mut unknown = Vec::new();
    let is_known = |name: &str| {
        let others = ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"];
        TEXTS.contains(&name) || NUMBERS.contains(&name) || others.contains(&name)
    };
    fields.retain(|name, _| {
        let keep = is_known(name);
        if !keep {
            unknown.push(format!("metadata.{name}"));
        }
        keep
    });
    if let Some(owners) = fields.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        read_owners(owners, &mut unknown)?;
    }
    Ok(unknown)
}

fn read_field(name: &str, value: &mut Value) -> Result<(), Refusal> {
    let fits = match name {
        _ if TEXTS.contains(&name) => value.is_string(),
        _ if NUMBERS.contains(&name) => value.is_i64(),
        "labels" | "annotations" => match value.as_object_mut() {
            Some(map) => map.values_mut().all(is_text_or_empty),
            None => false,
        },
        "finalizers" => match value.as_array_mut() {
            Some(list) => list.iter_mut().all(is_text_or_empty),
            None => false,
        },
        "ownerReferences" => value.as_array().is_some_and(|list| list.iter().all(Value::is_object)),
        _ => true,
    };
    if fits { Ok(()) } else { Err(mistyped(name, "of its own type")) }
}

/// A null among strings becomes an empty string.
fn is_text_or_empty(value: &mut Value) -> bool {
    if value.is_null() {
        *value = Value::String(String::new());
    }
    value.is_string()
}

fn read_owners(owners: &mut [Value], unknown: &mut Vec<String>) -> Result<(), Refusal> {
    for (index, owner) in owners.iter_mut().enumerate() {
        for (name, value) in owner.as_object_mut().into_iter().flatten() {
            let fits = match name.as_str() {
                name if OWNER_TEXTS.contains(&name) => value.is_string(),
                name if OWNER_FLAGS.contains(&name) => value.is_boolean() || value.is_null(),
                _ => true,
            };
            if !fits {
                return Err(mistyped(&format!("ownerReferences[{index}].{name}"), "of its own type"));
            }
        }
        if let Some(fields) = owner.as_object_mut() {
            fields.retain(|name, value| {
                let keep = OWNER_TEXTS.contains(&name.as_str()) || OWNER_FLAGS.contains(&name.as_str());
                if !keep {
                    unknown.push(format!("metadata.ownerReferences[{index}].{name}"));
                }
                keep && !value.is_null()
            });
        }
    }
    Ok(())
}

fn mistyped(field: &str, wanted: &str) -> Refusal {
    let dot = if field.is_empty() { "" } else { "." };
    Refusal::bad_request(format!(
        "the body of the request cannot be read: metadata{dot}{field} must be {wanted}"
    ))
}

/// What is wrong with the metadata, besides what our own validation says of names and labels.
pub(super) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    check_name(resource, metadata, &mut causes);
    let annotations = || metadata["annotations"].as_object().into_iter().flatten();
    for (key, _) in annotations().filter(|(key, _)| !is_qualified(&key.to_lowercase())) {
        causes.push(invalid(
            "metadata.annotations",
            key,
            "name part must consist of letters, digits, '-', '_' or '.'",
        ));
    }
    let bytes: usize = annotations().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > MAX_ANNOTATION_BYTES {
        causes.push(Cause {
            reason: "FieldValueTooLong".to_owned(),
            message: format!("Too long: may not be more than {MAX_ANNOTATION_BYTES} bytes"),
            field: "metadata.annotations".to_owned(),
        });
    }
    check_owners(metadata, &mut causes);
    for name in metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !is_qualified(name) {
            causes.push(invalid(
                "metadata.finalizers",
                name,
                "name part must consist of letters, digits, '-', '_' or '.'",
            ));
        }
    }
    causes
}

/// Checks names and name prefixes that our own validation does not look at.
fn check_name(resource: &Resource, metadata: &Value, causes: &mut Vec<Cause>) {
    let name = metadata["name"].as_str().unwrap_or_default();
    let is_role = resource.group == "rbac.authorization.k8s.io";
    if is_role && (matches!(name, "." | "..") || name.contains(['/', '%'])) {
        causes.push(invalid("metadata.name", name, "may not contain '/' or '%'"));
    }
    let is_label = !name.contains('.') && name.len() <= MAX_LABEL_LENGTH;
    if resource.group.is_empty() && matches!(resource.kind.as_str(), "Namespace" | "Service") && !is_label {
        causes.push(invalid("metadata.name", name, "must be no more than 63 characters, without dots"));
    }
    let base = metadata["generateName"].as_str().unwrap_or_default();
    let is_beginning = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if !is_role && (!base.chars().all(is_beginning) || base.starts_with(['-', '.'])) {
        // A real server reports the prefix before the name that was generated from it.
        causes.insert(0, invalid("metadata.generateName", base, "must be the beginning of a name"));
    }
}

fn check_owners(metadata: &Value, causes: &mut Vec<Cause>) {
    let owners = || metadata["ownerReferences"].as_array().into_iter().flatten();
    for owner in owners() {
        for field in OWNER_TEXTS.iter().filter(|field| owner[**field].as_str().unwrap_or_default().is_empty())
        {
            causes.push(invalid(&format!("metadata.ownerReferences.{field}"), "", "must not be empty"));
        }
    }
    if owners().filter(|owner| owner["controller"] == true).count() > 1 {
        let words = "Only one reference can have Controller set to true";
        causes.push(invalid("metadata.ownerReferences", "", words));
    }
}

/// Whether our own validation of names applies. The names of roles may have colons and capital letters.
pub(super) fn has_usual_name(resource: &Resource) -> bool {
    resource.group != "rbac.authorization.k8s.io"
}

/// The fields that a client tried to change although only the server may.
pub(super) fn check_unchanged(before: &Value, new: &Value) -> Vec<Cause> {
    let fields = ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"];
    let changed = fields.iter().filter(|field| {
        let (old, new) = (&before["metadata"][**field], &new["metadata"][**field]);
        !new.is_null() && *new != "" && new != old
    });
    changed.map(|field| immutable(&format!("metadata.{field}"), &new["metadata"][*field])).collect()
}

pub(super) fn immutable(field: &str, value: &Value) -> Cause {
    Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: {value}: field is immutable"),
        field: field.to_owned(),
    }
}

fn invalid(field: &str, value: &str, why: &str) -> Cause {
    Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: {value:?}: {why}"),
        field: field.to_owned(),
    }
}

/// A name with an optional domain before a slash, as the keys of labels have.
fn is_qualified(name: &str) -> bool {
    prewarm_api::schema::matches(prewarm_api::selector::LABEL_KEY_PATTERN, name)
}

/// Warnings about finalizers that a write adds to an object of a custom kind.
pub(super) fn warnings(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if !resource.is_custom {
        return Vec::new();
    }
    let finalizers =
        |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let had = old.map(finalizers).unwrap_or_default();
    let has = finalizers(object);
    let doubtful = has.iter().filter(|one| !had.contains(one)).filter_map(Value::as_str);
    let doubtful =
        doubtful.filter(|name| !name.contains('/') && !matches!(*name, "orphan" | "foregroundDeletion"));
    let sentence = |name| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts \
             with other finalizer writers"
        )
    };
    doubtful.map(sentence).collect()
}
