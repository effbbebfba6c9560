//! Unknown fields: the server drops them, and a strict request is refused for them.

use serde_json::Value;

use super::Schema;
use crate::path::{FieldPath, Step, Trail};

/// A field that the schema does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The path of the field.
    pub path: FieldPath,
    /// The path of a known field that the user may have meant.
    pub meant: Option<String>,
}

/// How similar two names must be for one to be suggested for the other: `imageList` for `images` is 0.93.
const ALIKE: f64 = 0.8;
/// How deep below an object a misplaced field is searched for.
const MISPLACED_DEPTH: usize = 3;

impl Schema {
    /// Drops unknown fields and returns them.
    pub fn prune(&self, value: &mut Value) -> Vec<Unknown> {
        let mut unknown = Vec::new();
        self.prune_at(value, &Trail::Root, &mut unknown);
        unknown
    }

    fn prune_at(&self, value: &mut Value, trail: &Trail<'_>, unknown: &mut Vec<Unknown>) {
        match value {
            Value::Object(map) => {
                let is_known =
                    |name: &String| self.properties.contains_key(name) || self.is_object_field(name);
                // Checked first, because almost no object has any, and rebuilding the map costs more than the check.
                if self.values.is_none() && !self.preserve_unknown && !map.keys().all(is_known) {
                    map.retain(|name, _| {
                        if !is_known(name) {
                            unknown
                                .push(Unknown { path: trail.path().field(name), meant: self.meant_by(name) });
                        }
                        is_known(name)
                    });
                }
                for (name, inner) in map {
                    // Kubernetes itself knows the metadata of whole objects.
                    let is_metadata = name == "metadata" && (trail.is_root() || self.embedded_resource);
                    if let (Some(schema), false) = (self.field(name), is_metadata) {
                        schema.prune_at(inner, &Trail::Field(trail, name), unknown);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = &self.items {
                        schema.prune_at(item, &Trail::Index(trail, index), unknown);
                    }
                }
            }
            _ => {}
        }
    }

    fn is_object_field(&self, name: &str) -> bool {
        self.embedded_resource && matches!(name, "apiVersion" | "kind" | "metadata")
    }

    /// The known field that a person most likely meant: one with a similar name beside it, or one with the same name
    /// further down, as after wrong indentation.
    fn meant_by(&self, name: &str) -> Option<String> {
        let similar = self
            .properties
            .keys()
            .map(|known| (strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase()), known))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .max_by(|left, right| left.0.total_cmp(&right.0));
        match similar {
            Some((_, known)) => Some(known.clone()),
            None => self.misplaced(name, MISPLACED_DEPTH),
        }
    }

    fn misplaced(&self, name: &str, depth: usize) -> Option<String> {
        if depth == 0 {
            return None;
        }
        let mut below =
            self.properties.iter().filter(|(field, _)| *field != "status" && *field != "metadata");
        let here = below.clone().find(|(_, schema)| schema.properties.contains_key(name));
        if let Some((field, _)) = here {
            return Some(format!("{field}.{name}"));
        }
        below.find_map(|(field, schema)| Some(format!("{field}.{}", schema.misplaced(name, depth - 1)?)))
    }
}

impl Unknown {
    /// The path of the field that the user may have meant.
    pub fn meant_path(&self) -> Option<FieldPath> {
        self.meant.as_ref().map(|meant| self.path.parent().below(meant))
    }

    /// The sentence for a person.
    pub fn sentence(&self) -> String {
        let name = match self.path.steps().last() {
            Some(Step::Field(name)) => name.as_str(),
            _ => "",
        };
        match &self.meant {
            Some(meant) if meant.contains('.') => {
                let holder = self.path.parent().below(meant).parent();
                format!("unknown field {name:?}; did you mean {meant:?}? It belongs under {holder}")
            }
            Some(meant) => format!("unknown field {name:?}; did you mean {meant:?}?"),
            None => format!(
                "unknown field {name:?}; remove it, or see `kubectl explain` for the fields there are"
            ),
        }
    }
}
