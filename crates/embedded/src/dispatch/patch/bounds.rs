//! Limits what a patch may grow to. Small patches can ask for a lot: a copy of everything into itself, forty times, is
//! a terabyte, and walking an object that is a thousand levels deep overflows the stack.

use json_patch::jsonptr::Pointer;
use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use crate::refusal::Refusal;

/// How deep objects may be nested. Readers, ours among them, stop at 128, and lists and watches wrap objects.
pub const MAX_DEPTH: usize = 100;
/// The most operations in one JSON patch, as in a real server.
const MAX_OPERATIONS: usize = 10_000;
/// The most bytes that the copies of one patch may add up to, as in a real server.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies a JSON patch operation by operation, within the limits.
pub fn apply(steps: &[Value], object: &mut Value) -> Result<(), Failure> {
    if steps.len() > MAX_OPERATIONS {
        return Err(Failure::Refused(Refusal::too_large(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            steps.len()
        ))));
    }
    let mut copied = 0;
    for step in steps {
        let operation = serde_json::from_value(step.clone()).map_err(|_| Failure::Unfit)?;
        check(&operation, object, &mut copied).map_err(Failure::Refused)?;
        if let Some(operation) = as_a_real_server_reads_it(operation, object) {
            json_patch::patch(object, std::slice::from_ref(&operation)).map_err(|_| Failure::Unfit)?;
        }
    }
    Ok(())
}

/// A real server treats an absent field as null: it can be replaced, and it equals null.
fn as_a_real_server_reads_it(operation: PatchOperation, object: &Value) -> Option<PatchOperation> {
    let is_absent_field = |path: &Pointer| {
        let holder = path.parent().and_then(|holder| holder.resolve(object).ok());
        holder.is_some_and(Value::is_object) && path.resolve(object).is_err()
    };
    match operation {
        PatchOperation::Replace(replace) if is_absent_field(&replace.path) => {
            Some(PatchOperation::Add(AddOperation { path: replace.path, value: replace.value }))
        }
        PatchOperation::Test(test) if test.value.is_null() && is_absent_field(&test.path) => None,
        operation => Some(operation),
    }
}

/// Why a patch was not applied.
pub enum Failure {
    /// The patch exceeds a limit.
    Refused(Refusal),
    /// The patch does not fit the object.
    Unfit,
}

fn check(operation: &PatchOperation, object: &Value, copied: &mut usize) -> Result<(), Refusal> {
    let source = |from: &Pointer| from.resolve(object).unwrap_or(&Value::Null);
    let (place, value) = match operation {
        PatchOperation::Add(add) => (&add.path, &add.value),
        PatchOperation::Replace(replace) => (&replace.path, &replace.value),
        PatchOperation::Move(shift) => (&shift.path, source(&shift.from)),
        PatchOperation::Copy(copy) => {
            let value = source(&copy.from);
            *copied += size(value);
            (&copy.path, value)
        }
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    if *copied > MAX_COPIED {
        return Err(Refusal::too_large(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
             {MAX_COPIED}"
        )));
    }
    let left = MAX_DEPTH.saturating_sub(place.tokens().count());
    if is_deeper_than(value, left) { Err(too_deep()) } else { Ok(()) }
}

pub fn too_deep() -> Refusal {
    Refusal::bad_request(format!("the body of the request is nested more than {MAX_DEPTH} levels deep"))
}

/// Whether a value has more levels than the limit.
pub fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let Some(left) = limit.checked_sub(1) else {
        return matches!(value, Value::Array(_) | Value::Object(_));
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper_than(field, left)),
        _ => false,
    }
}

/// The approximate size of a value as text, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + size(field) + 4).sum::<usize>() + 2
        }
        Value::String(text) => text.len() + 2,
        _ => 4,
    }
}
