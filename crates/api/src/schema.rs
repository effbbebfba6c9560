//! Structural schemas: what a CustomResourceDefinition says about its objects, as the API server applies it.
//!
//! An object goes through [`Schema::fill`] (defaults), [`Schema::prune`] (unknown fields) and
//! [`Schema::check`] (types and bounds), in this order. Rules in CEL are not run here; ours have Rust twins in
//! `rule`.

mod check;
mod compile;
mod fill;
mod format;
mod pattern;
mod prune;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

pub use compile::CompileError;
pub use pattern::matches;
pub use prune::Unknown;

/// A schema, compiled for use.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "Kubernetes has these as independent flags")]
pub struct Schema {
    /// What the field is for, as a sentence.
    pub description: Option<String>,
    /// The JSON type; none allows any type.
    pub json_type: Option<JsonType>,
    /// The fields of an object.
    pub properties: BTreeMap<String, Schema>,
    /// The values of a map.
    pub values: Option<Box<Schema>>,
    /// The items of a list.
    pub items: Option<Box<Schema>>,
    /// Whether unknown fields are kept.
    pub preserve_unknown: bool,
    /// Whether the value is a number or a text.
    pub int_or_string: bool,
    /// Whether the value is a whole Kubernetes object.
    pub embedded_resource: bool,
    /// Whether null is a value of its own. Otherwise it counts as absent.
    pub nullable: bool,
    /// The value for an absent field.
    pub default: Option<Value>,
    /// What identifies the items of a list.
    pub list_type: ListType,
    limits: Limits,
}

/// The types of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// An object or map.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
}

/// What identifies the items of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Nothing: the list is one value.
    #[default]
    Atomic,
    /// Their value, which must be unique.
    Set,
    /// The values of these fields, which must be unique.
    Map(Vec<String>),
}

/// The bounds on a value.
#[derive(Clone, Debug, Default)]
struct Limits {
    required: Vec<String>,
    allowed: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    min_properties: Option<usize>,
    max_properties: Option<usize>,
    pattern: Option<Regex>,
    format: Option<String>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
}

impl JsonType {
    /// The type in plain words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "a list",
            Self::String => "a text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

impl Schema {
    /// The schema of a field or, in a map, of a key's value.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(self.values.as_deref())
    }
}
