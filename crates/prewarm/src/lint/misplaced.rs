//! Finds the right place of a field that was indented too far, or that slipped under the wrong neighbour.
//!
//! The rules themselves suggest places further down; this looks further up. It asks the rules instead of keeping a
//! table of fields: it puts the field at another place of a small object, and where the field is not unknown, it
//! belongs.

use prewarm_api::path::{FieldPath, Step};
use prewarm_api::validate::{Class, Inspection, inspect};
use serde_json::{Value, json};

/// At most this many places are tried for one field; maps of images have many places that are alike.
const MAX_CANDIDATES: usize = 16;

/// No kind has a field of this name. A place that accepts it accepts anything, like labels do, and proves nothing.
const NOBODYS_FIELD: &str = "prewarm-lint-probe";

/// A better sentence for an unknown field whose place is further up in the same object.
pub fn sentence(object: &Value, unknown: &FieldPath) -> Option<String> {
    let Some(Step::Field(name)) = unknown.steps().last() else { return None };
    let holder = unknown.parent();
    let Some(home) = candidates(object, &holder).into_iter().find(|home| is_known(object, home, name)) else {
        return label(object, unknown, name, &holder);
    };
    let place = match home.to_string() {
        root if root.is_empty() => "at the top level".to_owned(),
        path => format!("under {path}"),
    };
    Some(format!("unknown field {name:?} here; it belongs {place}, check the indentation"))
}

/// What was meant by a text in a list of objects that have a name, such as Secrets.
pub fn name_alone(object: &Value, path: &FieldPath) -> Option<String> {
    let Some(Step::Index(_)) = path.steps().last() else { return None };
    let text = find(object, path)?.as_str()?;
    is_known(object, path, "name").then(|| format!("name: {text}"))
}

/// The sentence for a label that stands right in a selector, as in the flat maps of pods and of older APIs.
fn label(object: &Value, unknown: &FieldPath, name: &str, holder: &FieldPath) -> Option<String> {
    let value =
        find(object, unknown).filter(|value| value.is_string() || value.is_number() || value.is_boolean())?;
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    is_known(object, holder, "matchLabels").then(|| {
        format!(
            "unknown field {name:?} here; labels stand one level deeper: matchLabels: {{{name}: {value:?}}}"
        )
    })
}

/// The places from which a field of `holder` may have slipped: the parent of the holder, and the objects beside the
/// holder.
fn candidates(object: &Value, holder: &FieldPath) -> Vec<FieldPath> {
    if *holder == FieldPath::root() {
        return Vec::new();
    }
    let above = holder.parent();
    let mut homes = vec![above.clone()];
    if let Some(Value::Object(fields)) = find(object, &above) {
        // A key without a value has lost its content, so it counts as an object.
        let objects = fields.iter().filter(|(_, value)| value.is_null() || value.is_object());
        homes.extend(objects.map(|(name, _)| above.field(name)));
    }
    if above == FieldPath::root() {
        // The line that opens the spec may itself be missing. Nobody writes a status by hand.
        homes.push(above.field("spec"));
        homes.retain(|home| *home != above.field("status"));
    }
    homes.retain(|home| home != holder);
    homes.truncate(MAX_CANDIDATES);
    homes
}

/// Whether the rules of the object's kind know a field at a place.
fn is_known(object: &Value, home: &FieldPath, name: &str) -> bool {
    let Inspection::Ours(violations) = inspect(&probe(object, home, name)) else { return false };
    // The probe's lists have one item each.
    let home = home.steps().iter().fold(FieldPath::root(), |path, step| match step {
        Step::Field(field) => path.field(field),
        Step::Index(_) => path.index(0),
    });
    let is_unknown = |path: FieldPath| {
        violations.iter().any(|violation| violation.class == Class::UnknownField && violation.path == path)
    };
    is_unknown(home.field(NOBODYS_FIELD)) && !is_unknown(home.field(name))
}

/// An object of the same kind with only that field, at its new place.
fn probe(object: &Value, home: &FieldPath, name: &str) -> Value {
    let fields = json!({ name: true, NOBODYS_FIELD: true });
    let mut probe = home.steps().iter().rev().fold(fields, |inner, step| match step {
        Step::Field(field) => json!({ field: inner }),
        Step::Index(_) => json!([inner]),
    });
    if let Value::Object(root) = &mut probe {
        root.insert("apiVersion".to_owned(), object["apiVersion"].clone());
        root.insert("kind".to_owned(), object["kind"].clone());
    }
    probe
}

fn find<'a>(object: &'a Value, path: &FieldPath) -> Option<&'a Value> {
    path.steps().iter().try_fold(object, |here, step| match step {
        Step::Field(name) => here.get(name),
        Step::Index(index) => here.get(index),
    })
}
