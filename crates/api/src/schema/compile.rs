//! Compiles the JSON of a schema.

use regex::Regex;
use serde_json::Value;

use super::{JsonType, Limits, ListType, Schema};

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A pattern is not a regular expression.
    #[error("the pattern {pattern:?} is not a regular expression")]
    Pattern {
        /// The text of the pattern.
        pattern: String,
        /// What is wrong with it.
        source: Box<regex::Error>,
    },
    /// A type that JSON does not have.
    #[error("there is no type {0:?}")]
    Type(String),
}

impl Schema {
    /// Compiles an OpenAPI v3 schema from a CustomResourceDefinition.
    pub fn compile(json: &Value) -> Result<Self, CompileError> {
        let flag = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or(false);
        let mut schema = Self {
            description: json.get("description").and_then(Value::as_str).map(str::to_owned),
            json_type: json.get("type").and_then(Value::as_str).map(json_type).transpose()?,
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            nullable: flag("nullable"),
            default: json.get("default").cloned(),
            list_type: list_type(json),
            limits: limits(json)?,
            ..Self::default()
        };
        for (name, property) in json.get("properties").and_then(Value::as_object).into_iter().flatten() {
            schema.properties.insert(name.clone(), Self::compile(property)?);
        }
        schema.values = boxed(json.get("additionalProperties").filter(|values| values.is_object()))?;
        if json.get("additionalProperties") == Some(&Value::Bool(true)) {
            schema.values = Some(Box::new(Self { preserve_unknown: true, ..Self::default() }));
        }
        schema.items = boxed(json.get("items"))?;
        Ok(schema)
    }
}

fn json_type(name: &str) -> Result<JsonType, CompileError> {
    Ok(match name {
        "object" => JsonType::Object,
        "array" => JsonType::Array,
        "string" => JsonType::String,
        "integer" => JsonType::Integer,
        "number" => JsonType::Number,
        "boolean" => JsonType::Boolean,
        other => return Err(CompileError::Type(other.to_owned())),
    })
}

fn list_type(json: &Value) -> ListType {
    match json.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(json.get("x-kubernetes-list-map-keys"))),
        _ => ListType::Atomic,
    }
}

fn limits(json: &Value) -> Result<Limits, CompileError> {
    let count =
        |name: &str| json.get(name).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let number = |name: &str| json.get(name).and_then(Value::as_f64);
    let flag = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or(false);
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    Ok(Limits {
        required: texts(json.get("required")),
        allowed: json.get("enum").and_then(Value::as_array).cloned(),
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        pattern: text("pattern").map(regex).transpose()?,
        format: text("format").map(str::to_owned),
        all_of: many(json.get("allOf"))?,
        any_of: many(json.get("anyOf"))?,
        one_of: many(json.get("oneOf"))?,
        not: boxed(json.get("not"))?,
    })
}

fn regex(pattern: &str) -> Result<Regex, CompileError> {
    Regex::new(pattern)
        .map_err(|source| CompileError::Pattern { pattern: pattern.to_owned(), source: Box::new(source) })
}

fn boxed(json: Option<&Value>) -> Result<Option<Box<Schema>>, CompileError> {
    json.map(|json| Schema::compile(json).map(Box::new)).transpose()
}

fn many(json: Option<&Value>) -> Result<Vec<Schema>, CompileError> {
    json.and_then(Value::as_array).into_iter().flatten().map(Schema::compile).collect()
}

fn texts(json: Option<&Value>) -> Vec<String> {
    let items = json.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
