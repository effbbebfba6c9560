//! The rules that the bounds of a schema cannot express, each twice in one place: as the CEL expression that the API
//! server runs, and as the Rust function that `validate` runs. One corpus proves that the two agree.
//!
//! A rule that reads the object's name is a [`Check::Creation`]: a plain rule at the root would lock objects that are
//! already stored, because every status or label write would be checked by it again.

mod broadcast;
mod cron;
mod ofen;
mod pull;
mod schedule;
pub mod size;

use serde_json::{Value, json};

use broadcast::broadcast_job;
use cron::advanced_cron_job;
use ofen::{image_prefetch, node_image_set};
use pull::{image_list_pull_job, image_pull_job, node_image};

/// One rule of one kind.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The number of the rule in the specification, such as `kruise V12`.
    pub id: &'static str,
    /// The path of the values that the rule reads; `[]` means each item of a list, `{}` each value of a map.
    pub at: String,
    /// The path below `at` that the error names; empty for `at` itself.
    pub field: &'static str,
    /// The CEL expression, which is true for valid objects.
    pub cel: String,
    /// The sentence for a person whose object breaks the rule.
    pub message: &'static str,
    /// The Rust twin of the expression.
    pub check: Check,
}

/// When a rule applies, and the Rust twin of its expression.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// To a value, on every write.
    Value(fn(&Value) -> bool),
    /// To a text, on every write. The error is more precise than the rule's message.
    Text(fn(&str) -> Result<(), String>),
    /// To the new and the old value, on updates.
    Transition(fn(&Value, &Value) -> bool),
    /// On creation only, so that stored objects keep accepting writes.
    Creation(fn(&Value) -> bool),
    /// Not on the API server, where it would cost too much: only in `lint` and the embedded API.
    Offline(fn(&Value) -> bool),
}

/// The rules of a kind.
pub fn of(kind: &str) -> Vec<Rule> {
    match kind {
        "ImagePullJob" => image_pull_job(),
        "ImageListPullJob" => image_list_pull_job(),
        "NodeImage" => node_image(),
        "AdvancedCronJob" => advanced_cron_job(),
        "BroadcastJob" => broadcast_job(),
        "ImagePrefetch" => image_prefetch(),
        "NodeImageSet" => node_image_set(),
        _ => Vec::new(),
    }
}

impl Rule {
    /// The rule as it is written into the schema.
    pub fn to_json(&self) -> Value {
        let mut rule = json!({ "rule": self.cel, "message": self.message });
        // The root's own schema has no field for the name, so the server reports rules about it at the root.
        if !self.field.is_empty() && !self.at.is_empty() {
            rule["fieldPath"] = format!(".{}", self.field).into();
        }
        if matches!(self.check, Check::Creation(_)) {
            rule["rule"] = format!("oldSelf.hasValue() || {}", self.cel).into();
            rule["optionalOldSelf"] = true.into();
        }
        rule
    }
}

/// Whether a field is present. Null counts as absent, as on the server.
fn has(value: &Value, field: &str) -> bool {
    value.get(field).is_some_and(|inner| !inner.is_null())
}

/// The text of a field, if it has one.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

/// Whether a list field is present and not empty.
fn has_items(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_array).is_some_and(|items| !items.is_empty())
}

/// The object's name, even if the server has to complete it: it cuts `generateName` and adds five characters.
fn object_name(object: &Value) -> Option<String> {
    const KEPT: usize = 58;
    let metadata = object.get("metadata")?;
    let start = || Some(text(metadata, "generateName")?.chars().take(KEPT).chain("00000".chars()).collect());
    text(metadata, "name").filter(|name| !name.is_empty()).map(str::to_owned).or_else(start)
}
