//! Judges an object before it is stored: unknown fields, defaults, schema, rules, metadata.

use prewarm_api::validate::{self, Class, Violation};
use serde_json::Value;

use super::Manner;
use crate::refusal::{Cause, Refusal};
use crate::request::FieldValidation;
use crate::resource::Resource;

/// Makes the object what will be stored, or says why it cannot be; returns warnings.
pub(super) fn admit(
    resource: &Resource,
    manner: &Manner<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Vec<String>, Refusal> {
    let version = resource.version(manner.version).ok_or_else(Refusal::no_such_path)?;
    let Some(schema) = &version.schema else {
        super::built_in::fill(resource, object);
        let mut violations = validate::judge_metadata(object);
        violations.extend(super::built_in::check(resource, object));
        return refuse(resource, object, &violations).map(|()| Vec::new());
    };
    let unknown = schema.prune(object);
    schema.fill(object);
    let unknown: Vec<String> =
        unknown.iter().map(|unknown| format!("unknown field \"{}\"", unknown.path)).collect();
    if manner.field_validation == FieldValidation::Strict && !unknown.is_empty() {
        return Err(Refusal::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            resource.kind,
            manner.version,
            resource.kind,
            unknown.join(", ")
        )));
    }
    refuse(resource, object, &validate::judge(schema, &resource.rules, object, old))?;
    let is_warned = manner.field_validation == FieldValidation::Warn;
    Ok(if is_warned { unknown } else { Vec::new() })
}

fn refuse(resource: &Resource, object: &Value, violations: &[Violation]) -> Result<(), Refusal> {
    if violations.is_empty() {
        return Ok(());
    }
    let causes: Vec<Cause> = violations.iter().map(|violation| cause(violation, object)).collect();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(Refusal::invalid(resource, name, &causes))
}

/// The violation in the words of a real server, with our sentence behind them.
fn cause(violation: &Violation, object: &Value) -> Cause {
    let (reason, start) = match violation.class {
        Class::Required => ("FieldValueRequired", "Required value".to_owned()),
        Class::NotSupported => {
            ("FieldValueNotSupported", format!("Unsupported value: {}", shown(violation, object)))
        }
        Class::Duplicate => ("FieldValueDuplicate", format!("Duplicate value: {}", shown(violation, object))),
        Class::TooLong => ("FieldValueTooMany", "Too many".to_owned()),
        Class::Type => ("FieldValueTypeInvalid", format!("Invalid value: {}", shown(violation, object))),
        Class::Invalid | Class::UnknownField => {
            ("FieldValueInvalid", format!("Invalid value: {}", shown(violation, object)))
        }
    };
    let path = violation.path.to_string();
    Cause {
        reason: reason.to_owned(),
        message: format!("{start}: {}", violation.message),
        field: if path.is_empty() { "<nil>".to_owned() } else { path },
    }
}

/// The value at the violation's place; only the type of lists and objects, as the server does.
fn shown(violation: &Violation, object: &Value) -> String {
    use prewarm_api::path::Step;
    let value = violation.path.steps().iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Index(index) => value.get(index),
    });
    match value {
        Some(Value::Object(_)) => "\"object\"".to_owned(),
        Some(Value::Array(_)) => "\"array\"".to_owned(),
        Some(value) => value.to_string(),
        None => "null".to_owned(),
    }
}
