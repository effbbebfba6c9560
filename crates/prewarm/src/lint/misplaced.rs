//! Finds the place of a field that was indented too far, or that slipped under the wrong neighbour.
//!
//! The rules name fields that belong further down; this looks further up. It asks the rules instead of keeping
//! a table of fields: the field is moved in a copy of the object, and where it is not unknown, it belongs.

use prewarm_api::path::{FieldPath, Step};
use prewarm_api::validate::{Class, Inspection, inspect};
use serde_json::{Map, Value};

/// No kind has a field of this name. A place that takes it takes anything (labels, for instance) and proves nothing.
const NOBODYS_FIELD: &str = "prewarm-lint-probe";

/// A better sentence for an unknown field whose place is further up in the same object.
pub fn sentence(object: &Value, unknown: &FieldPath) -> Option<String> {
    let Some(Step::Field(name)) = unknown.steps().last() else { return None };
    let value = find(object, unknown)?;
    let home =
        candidates(object, &unknown.parent()).into_iter().find(|home| is_known(object, home, name, value))?;
    let place = match home.to_string() {
        root if root.is_empty() => "at the top level".to_owned(),
        path => format!("under {path}"),
    };
    Some(format!("unknown field {name:?} here; it belongs {place}, check the indentation"))
}

/// Where a field of `holder` may have slipped from: what holds the holder, and the objects beside the holder.
fn candidates(object: &Value, holder: &FieldPath) -> Vec<FieldPath> {
    if *holder == FieldPath::root() {
        return Vec::new();
    }
    let above = holder.parent();
    let mut homes = vec![above.clone()];
    if let Some(Value::Object(fields)) = find(object, &above) {
        // A key with nothing below it has lost its content, so it counts as an object.
        let objects = fields.iter().filter(|(_, value)| value.is_null() || value.is_object());
        homes.extend(objects.map(|(name, _)| above.field(name)));
    }
    if above == FieldPath::root() {
        // The line that opens the spec may be the one that is missing. Nobody writes a status by hand.
        homes.push(above.field("spec"));
        homes.retain(|home| *home != above.field("status"));
    }
    homes.retain(|home| home != holder);
    homes
}

fn is_known(object: &Value, home: &FieldPath, name: &str, value: &Value) -> bool {
    let mut moved = object.clone();
    let Some(fields) = fields_at(&mut moved, home) else { return false };
    fields.insert(name.to_owned(), value.clone());
    fields.insert(NOBODYS_FIELD.to_owned(), Value::Bool(true));
    let Inspection::Ours(violations) = inspect(&moved) else { return false };
    let is_unknown = |path: FieldPath| {
        violations.iter().any(|violation| violation.class == Class::UnknownField && violation.path == path)
    };
    is_unknown(home.field(NOBODYS_FIELD)) && !is_unknown(home.field(name))
}

fn find<'a>(object: &'a Value, path: &FieldPath) -> Option<&'a Value> {
    path.steps().iter().try_fold(object, |here, step| match step {
        Step::Field(name) => here.get(name),
        Step::Index(index) => here.get(index),
    })
}

/// The fields of the object at a path, which is made if there is nothing.
fn fields_at<'a>(object: &'a mut Value, path: &FieldPath) -> Option<&'a mut Map<String, Value>> {
    let mut here = object;
    for step in path.steps() {
        here = match step {
            Step::Field(name) => here.as_object_mut()?.entry(name).or_insert(Value::Null),
            Step::Index(index) => here.get_mut(index)?,
        };
    }
    if here.is_null() {
        *here = Value::Object(Map::new());
    }
    here.as_object_mut()
}
