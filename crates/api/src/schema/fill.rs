//! Defaults: null counts as absent where it is not allowed, and absent fields get their default, from the
//! outside in. A default inside an absent object is not reached unless that object has a default itself.

use serde_json::{Number, Value};

use super::{JsonType, Schema};

impl Schema {
    /// Fills in defaults, as the server does before it checks and after it reads.
    pub fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                // Checked first, because almost no object has any, and rebuilding the map costs more than the check.
                if map.values().any(Value::is_null) {
                    map.retain(|name, inner| {
                        !inner.is_null()
                            || self.field(name).is_none_or(|schema| schema.nullable || schema.is_anything())
                    });
                }
                for (name, property) in &self.properties {
                    if let (false, Some(default)) = (map.contains_key(name), &property.default) {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (name, inner) in map {
                    if let Some(schema) = self.field(name) {
                        schema.fill(inner);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if let Some(schema) = &self.items {
                        schema.fill(item);
                    }
                }
            }
            Value::Number(number) if self.json_type == Some(JsonType::Integer) => {
                if let Some(whole) = whole(number) {
                    *value = whole.into();
                }
            }
            _ => {}
        }
    }

    /// Whether the schema allows any value.
    fn is_anything(&self) -> bool {
        self.json_type.is_none() && self.preserve_unknown
    }
}

/// A whole number that was written with a fraction of zero, such as `30.0`.
fn whole(number: &Number) -> Option<i64> {
    number.is_f64().then(|| format!("{}", number.as_f64().unwrap_or(f64::NAN)).parse().ok()).flatten()
}
