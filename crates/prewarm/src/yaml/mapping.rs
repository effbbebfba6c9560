//! A mapping while it is being read: keys and values arrive one after the other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::position::{Below, Marks, Position};

/// A value together with the positions of everything in it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub marks: Marks,
}

/// The key whose value comes next.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Field {
        name: String,
        at: Position,
    },
    /// `<<`: the following value is merged into the mapping.
    Merge,
}

/// A mapping that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct OpenMapping {
    /// The key whose value has not been read yet.
    pub key: Option<Key>,
    fields: Map<String, Value>,
    marks: BTreeMap<String, Marks>,
    /// Fields that came from `<<`. Merging allows them to be set again, so that is no mistake.
    merged: BTreeSet<String>,
}

impl OpenMapping {
    /// Where a key of the mapping itself set a field.
    pub fn is_set_at(&self, name: &str) -> Option<Position> {
        if self.merged.contains(name) {
            return None;
        }
        self.marks.get(name).map(|marks| marks.at)
    }

    /// Sets a field. The last of two with the same name wins, as in kubectl.
    pub fn set(&mut self, name: String, at: Position, node: Node) {
        self.merged.remove(&name);
        self.marks.insert(name.clone(), Marks { at, below: node.marks.below });
        self.fields.insert(name, node.value);
    }

    /// Merges a mapping, or a list of mappings of which the first wins, into this one.
    pub fn merge(&mut self, node: Node) -> Result<(), String> {
        match (node.value, node.marks.below) {
            (Value::Array(items), Below::Items(marks)) => {
                let nodes = items.into_iter().zip(marks);
                nodes.rev().try_for_each(|(value, marks)| self.merge_mapping(value, marks.below))
            }
            (value, below) => self.merge_mapping(value, below),
        }
    }

    fn merge_mapping(&mut self, value: Value, below: Below) -> Result<(), String> {
        let (Value::Object(fields), Below::Fields(marks)) = (value, below) else {
            return Err("`<<` takes a mapping or a list of mappings".to_owned());
        };
        self.merged.extend(fields.keys().cloned());
        self.fields.extend(fields);
        self.marks.extend(marks);
        Ok(())
    }

    pub fn close(self, at: Position) -> Node {
        Node { value: Value::Object(self.fields), marks: Marks { at, below: Below::Fields(self.marks) } }
    }
}
