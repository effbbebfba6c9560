//! The verdict on an object: every rule of both APIs that needs only the object (and its old version).
//!
//! `prewarm lint` and the embedded API call it; one corpus proves that the generated CRDs give the same verdicts on a
//! real kube-apiserver. It returns all violations, not only the first.

mod metadata;
mod rules;

use serde_json::Value;

use crate::path::FieldPath;
use crate::rule::Rule;
use crate::schema::{Schema, Unknown};
use crate::served::{self, Served};

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the wrong value.
    pub path: FieldPath,
    /// The kind of mistake.
    pub class: Class,
    /// A sentence a person can act on, without the path.
    pub message: String,
}

/// The kind of mistake; the same classes that the API server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The field is not part of the kind. Only strict requests are refused for it; others drop the field.
    UnknownField,
    /// A required field is missing.
    Required,
    /// The value has another JSON type than the field, or another form, such as that of a time.
    Type,
    /// The value is a number that the wanted integer type cannot hold: a fraction, or one of too many bits.
    Number,
    /// The value breaks a bound, a pattern or a rule.
    Invalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The list has the value twice.
    Duplicate,
    /// The list, map or string is too long.
    TooLong,
}

/// The result of inspecting an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Inspection {
    /// A kind that Prewarm does not serve.
    Foreign,
    /// One of our groups, but not one of its versions or kinds.
    UnknownKind(Violation),
    /// One of our kinds, with everything that is wrong with it; an accepted object has no violations.
    Ours(Vec<Violation>),
}

/// Inspects an object as a strict create request would: unknown fields are violations too.
pub fn inspect(object: &Value) -> Inspection {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if !served::is_ours(group) {
        return Inspection::Foreign;
    }
    match served::find(group, kind) {
        Some(served) if served.versions.iter().any(|name| name == version) => {
            Inspection::Ours(strictly(served, object))
        }
        Some(served) => Inspection::UnknownKind(Violation {
            path: FieldPath::root().field("apiVersion"),
            class: Class::NotSupported,
            message: format!(
                "{kind} has no version {version:?}; use {group}/{}",
                served.versions.join(" or ")
            ),
        }),
        None => Inspection::UnknownKind(Violation {
            path: FieldPath::root().field("kind"),
            class: Class::NotSupported,
            message: format!(
                "{group} has no kind {kind:?} that Prewarm serves; it serves {}",
                kinds_of(group)
            ),
        }),
    }
}

/// Turns an object into what the server would store, and returns everything that is wrong with it.
///
/// Meaningless nulls and unknown fields are dropped, and defaults are filled in. What has not changed since `old` is
/// not checked again. Unknown fields are not violations here; see [`inspect`].
pub fn admit(served: &Served, object: &mut Value, old: Option<&Value>) -> Vec<Violation> {
    served.schema.prune(object);
    served.schema.fill(object);
    judge(&served.schema, &served.rules, object, old)
}

/// Everything that is wrong with an object of any kind, given its schema and rules.
pub fn judge(schema: &Schema, rules: &[Rule], object: &Value, old: Option<&Value>) -> Vec<Violation> {
    let mut violations = metadata::check(object);
    violations.extend(schema.check(object, old));
    rules::check(rules, object, old, &mut violations);
    violations
}

/// Everything that is wrong with an object's metadata.
pub fn judge_metadata(object: &Value) -> Vec<Violation> {
    metadata::check(object)
}

fn strictly(served: &Served, object: &Value) -> Vec<Violation> {
    let mut copy = object.clone();
    let unknown = served.schema.prune(&mut copy);
    let meant: Vec<FieldPath> = unknown.iter().filter_map(Unknown::meant_path).collect();
    let mut violations = metadata::unknown_fields(object);
    violations.extend(unknown.into_iter().map(|unknown| Violation {
        message: unknown.sentence(),
        path: unknown.path,
        class: Class::UnknownField,
    }));
    // A creation drops the status before it is checked; only its unknown fields are noticed.
    if let Some(fields) = copy.as_object_mut() {
        fields.remove("status");
    }
    let wrong = admit(served, &mut copy, None);
    // A misspelt field is one mistake, not also a missing one.
    violations
        .extend(wrong.into_iter().filter(|one| one.class != Class::Required || !meant.contains(&one.path)));
    violations
}

fn kinds_of(group: &str) -> String {
    let kinds: Vec<&str> = served::all()
        .iter()
        .filter(|served| served.group == group)
        .map(|served| served.kind.as_str())
        .collect();
    kinds.join(", ")
}
