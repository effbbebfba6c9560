//! Checks which options of a list or watch go together.

use crate::refusal::{Cause, Refusal};
use crate::request::Query;

const MATCH: &str = "resourceVersionMatch";

pub(super) fn list(query: &Query) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    let version = query.resource_version.as_deref().unwrap_or_default();
    if let Some(word) = query.resource_version_match.as_deref() {
        if version.is_empty() {
            causes.push(forbidden(
                MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !query.continue_token.is_empty() {
            causes.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(word, "Exact" | "NotOlderThan") {
            causes.push(unsupported(word, "\"Exact\", \"NotOlderThan\", \"\""));
        }
        if word == "Exact" && version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(forbidden(MATCH, why));
        }
    }
    if query.send_initial_events.is_some() {
        causes.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    refuse(&causes)
}

pub(super) fn watch(query: &Query) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    let word = query.resource_version_match.as_deref();
    if query.send_initial_events.is_some() && word != Some("NotOlderThan") {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(forbidden(MATCH, why));
    }
    if word.is_some() && query.send_initial_events.is_none() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(forbidden(MATCH, why));
    }
    if let Some(word) = word.filter(|word| *word != "NotOlderThan") {
        causes.push(unsupported(word, "\"NotOlderThan\""));
    }
    if !query.continue_token.is_empty() {
        causes.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
    }
    refuse(&causes)
}

fn refuse(causes: &[Cause]) -> Result<(), Refusal> {
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid_options("ListOptions", causes)) }
}

fn forbidden(field: &str, why: &str) -> Cause {
    Cause {
        reason: "FieldValueForbidden".to_owned(),
        message: format!("Forbidden: {why}"),
        field: field.to_owned(),
    }
}

fn unsupported(word: &str, supported: &str) -> Cause {
    Cause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!("Unsupported value: {word:?}: supported values: {supported}"),
        field: MATCH.to_owned(),
    }
}
