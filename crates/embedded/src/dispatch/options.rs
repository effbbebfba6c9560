//! The options of a deletion.

use serde_json::{Value, json};

use crate::refusal::{Cause, Refusal};
use crate::request::Query;
use crate::write::{DeleteOptions, Propagation};

/// Reads the options from the body. The query counts only if there is no body.
pub(super) fn parse(body: Option<&Value>, query: &Query) -> Result<DeleteOptions, Refusal> {
    let Some(body) = body else {
        return Ok(DeleteOptions {
            propagation: propagation(query.propagation_policy.as_deref(), &Value::Null)?,
            grace_period_seconds: query.grace_period_seconds.map(grace),
            dry_run: query.dry_run,
            ..DeleteOptions::default()
        });
    };
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(DeleteOptions {
        propagation: propagation(text(&body["propagationPolicy"]).as_deref(), &body["orphanDependents"])?,
        grace_period_seconds: body["gracePeriodSeconds"].as_i64().map(grace),
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        dry_run: dry_run(&body["dryRun"])?,
    })
}

/// A negative time once meant "at once, without waiting"; it counts as one second.
fn grace(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(1)
}

fn propagation(policy: Option<&str>, orphans: &Value) -> Result<Option<Propagation>, Refusal> {
    let propagation = match policy {
        None => None,
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let supported = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            let message = format!("Unsupported value: {other:?}: supported values: {supported}");
            return Err(invalid("FieldValueNotSupported", "propagationPolicy", message));
        }
    };
    match (orphans.as_bool(), policy) {
        (Some(_), Some(policy)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let message = format!("Invalid value: {policy:?}: {why}");
            Err(invalid("FieldValueInvalid", "propagationPolicy", message))
        }
        (Some(true), None) => Ok(Some(Propagation::Orphan)),
        (Some(false), None) => Ok(Some(Propagation::Background)),
        (None, _) => Ok(propagation),
    }
}

fn dry_run(list: &Value) -> Result<bool, Refusal> {
    match list.as_array().map(Vec::as_slice) {
        None | Some([]) => Ok(false),
        Some(words) if words.iter().all(|word| word == "All") => Ok(true),
        Some(words) => {
            let message = format!("Unsupported value: {}: supported values: \"All\"", json!(words));
            Err(invalid("FieldValueNotSupported", "dryRun", message))
        }
    }
}

fn invalid(reason: &str, field: &str, message: String) -> Refusal {
    let cause = Cause { reason: reason.to_owned(), message, field: field.to_owned() };
    Refusal::invalid_options("DeleteOptions", &[cause])
}
