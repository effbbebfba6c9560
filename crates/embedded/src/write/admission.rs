//! Validates an object before it is stored: first its form (unknown fields), then its contents (schema and rules).

use prewarm_api::validate::{self, Class, Violation};
use serde_json::Value;

use super::{Manner, built_in, fixed, metadata};
use crate::refusal::{Cause, Refusal};
use crate::request::FieldValidation;
use crate::resource::Resource;

/// What a server writes for a cause without a field.
const NO_FIELD: &str = "<nil>";

/// Up to this value, a server takes a number with a decimal point for a whole one if only zeros follow the point.
const LARGEST_EXACT: f64 = 9_007_199_254_740_991.0;

/// Drops fields that the kind does not have. Returns warnings, or the refusal of a strict request.
pub(super) fn read(
    resource: &Resource,
    manner: &Manner<'_>,
    object: &mut Value,
) -> Result<Vec<String>, Refusal> {
    let version = resource.version(manner.version).ok_or_else(Refusal::no_such_path)?;
    let mut unknown = metadata::read(object).map_err(|refusal| of_patch(manner, refusal))?;
    if let Some(schema) = &version.schema {
        unknown.extend(schema.prune(object).iter().map(|unknown| unknown.path.to_string()));
    } else {
        built_in::read(resource, object).map_err(|refusal| of_patch(manner, refusal))?;
    }
    // A real server reports fields in order.
    unknown.sort();
    let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    let complaints: Vec<String> = manner.complaints.iter().cloned().chain(unknown).collect();
    match manner.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(complaints),
        FieldValidation::Strict if complaints.is_empty() => Ok(complaints),
        FieldValidation::Strict => Err(strict(resource, manner, &complaints)),
    }
}

/// If the object comes from a patch, an unreadable object is reported as a fault of the patch.
fn of_patch(manner: &Manner<'_>, refusal: Refusal) -> Refusal {
    match manner.patch {
        Some(patch) => Refusal::invalid_patch(patch, &refusal.message),
        None => refusal,
    }
}

fn strict(resource: &Resource, manner: &Manner<'_>, complaints: &[String]) -> Refusal {
    let error = format!("strict decoding error: {}", complaints.join(", "));
    match manner.patch {
        Some(patch) => Refusal::invalid_patch(patch, &error),
        None => Refusal::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {error}",
            kind = resource.kind,
            version = manner.version
        )),
    }
}

/// Fills in defaults, and returns why the object cannot be stored.
pub(super) fn judge(
    resource: &Resource,
    manner: &Manner<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Vec<String>, Refusal> {
    let version = resource.version(manner.version).ok_or_else(Refusal::no_such_path)?;
    let mut violations = if let Some(schema) = &version.schema {
        schema.fill(object);
        let violations = validate::judge(schema, &resource.rules, object, old);
        if let (true, Some(stored)) = (version.narrows, &resource.stored) {
            stored.fill(object);
        }
        violations
    } else {
        built_in::fill(resource, object);
        validate::judge_metadata(object)
    };
    if !metadata::has_usual_name(resource) {
        violations.retain(|violation| violation.path.to_string() != "metadata.name");
    }
    let mut causes = metadata::check(resource, object);
    let at = causes.iter().take_while(|cause| cause.field == "metadata.generateName").count();
    let judged: Vec<Cause> = violations.iter().flat_map(|violation| causes_of(violation, object)).collect();
    causes.splice(at..at, judged);
    causes.extend(built_in::check(resource, object));
    causes.extend(old.into_iter().flat_map(|old| fixed::check(resource, object, old)));
    if causes.is_empty() {
        return Ok(metadata::warnings(resource, object, old));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(Refusal::invalid(resource, name, &causes))
}

/// What a real server says of one violation. It checks a number twice: its type, and whether the wanted integer type
/// can hold it. The second complaint names no field.
fn causes_of(violation: &Violation, object: &Value) -> Vec<Cause> {
    if violation.class != Class::Number {
        return vec![cause(violation, object)];
    }
    let path = &violation.path;
    let misfit = Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: \"\": {path} {}", violation.message),
        field: NO_FIELD.to_owned(),
    };
    if find(violation, object).is_some_and(is_whole) {
        vec![misfit]
    } else {
        vec![cause(violation, object), misfit]
    }
}

/// Whether the server takes the number for a whole one, however it is written.
fn is_whole(number: &Value) -> bool {
    let is_round = |number: f64| number.fract() == 0.0 && number.abs() <= LARGEST_EXACT;
    number.is_i64() || number.as_f64().is_some_and(is_round)
}

/// The violation in the words of a real server, followed by our own sentence.
fn cause(violation: &Violation, object: &Value) -> Cause {
    let place = find(violation, object);
    let shown = shown(place);
    let (reason, start) = match violation.class {
        Class::Required => ("FieldValueRequired", "Required value".to_owned()),
        Class::NotSupported => ("FieldValueNotSupported", format!("Unsupported value: {shown}")),
        Class::Duplicate => ("FieldValueDuplicate", format!("Duplicate value: {shown}")),
        Class::TooLong if place.is_some_and(Value::is_string) => ("FieldValueTooLong", "Too long".to_owned()),
        Class::TooLong => ("FieldValueTooMany", "Too many".to_owned()),
        Class::Type | Class::Number => ("FieldValueTypeInvalid", format!("Invalid value: {shown}")),
        Class::Invalid | Class::UnknownField => ("FieldValueInvalid", format!("Invalid value: {shown}")),
    };
    let path = violation.path.to_string();
    Cause {
        reason: reason.to_owned(),
        message: format!("{start}: {}", violation.message),
        field: if path.is_empty() { NO_FIELD.to_owned() } else { path },
    }
}

fn find<'a>(violation: &Violation, object: &'a Value) -> Option<&'a Value> {
    use prewarm_api::path::Step;
    violation.path.steps().iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Index(index) => value.get(index),
    })
}

/// A value in a message. Of lists and objects only the type is shown, as by a real server.
fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::Object(_)) => "\"object\"".to_owned(),
        Some(Value::Array(_)) => "\"array\"".to_owned(),
        Some(value) => value.to_string(),
        None => "null".to_owned(),
    }
}
