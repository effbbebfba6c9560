//! Schemas of free-form maps with bounds.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A map of short names to texts, such as annotations.
pub(crate) fn free_text_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": { "type": "string", "maxLength": 65536 },
    })
}

/// A map of label names to label values.
pub(crate) fn label_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    })
}
