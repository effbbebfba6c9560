//! What a schema does to an object, on schemas smaller than ours.

use serde_json::{Value, json};

use super::Schema;

#[expect(clippy::needless_pass_by_value, reason = "reads better with a literal")]
fn schema(json: Value) -> Schema {
    Schema::compile(&json).expect("a schema")
}

fn paths(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<String> {
    schema.check(value, old).iter().map(|violation| violation.path.to_string()).collect()
}

fn filled(schema: &Schema, mut value: Value) -> Value {
    schema.fill(&mut value);
    value
}

#[test]
fn a_default_inside_an_absent_object_is_reached_only_through_a_default_of_that_object() {
    let inner = json!({ "type": "object", "properties": { "n": { "type": "integer", "default": 3 } } });
    let mut open = inner.clone();
    open["default"] = json!({});
    let both = schema(json!({ "type": "object", "properties": { "closed": inner, "open": open } }));
    assert_eq!(filled(&both, json!({})), json!({ "open": { "n": 3 } }));
    assert_eq!(filled(&both, json!({ "closed": {} })), json!({ "closed": { "n": 3 }, "open": { "n": 3 } }));
}

#[test]
fn null_counts_as_absent_unless_it_is_a_value_of_its_own() {
    let fields =
        json!({ "a": { "type": "integer", "default": 1 }, "b": { "type": "integer", "nullable": true } });
    let object = schema(json!({ "type": "object", "properties": fields }));
    assert_eq!(filled(&object, json!({ "a": null, "b": null })), json!({ "a": 1, "b": null }));
    assert!(paths(&object, &json!({ "b": null }), None).is_empty());
}

#[test]
fn unknown_fields_are_dropped_unless_the_schema_keeps_them() {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let object =
        schema(json!({ "type": "object", "properties": { "open": open, "known": { "type": "string" } } }));
    let mut value = json!({ "open": { "any": 1 }, "knwon": "x" });
    let unknown = object.prune(&mut value);
    assert_eq!(value, json!({ "open": { "any": 1 } }));
    assert_eq!(unknown[0].sentence(), "unknown field \"knwon\"; did you mean \"known\"?");
}

#[test]
fn a_misplaced_field_is_found_further_down() {
    let spec = json!({ "type": "object", "properties": { "image": { "type": "string" } } });
    let object = schema(json!({ "type": "object", "properties": { "spec": spec } }));
    let unknown = object.prune(&mut json!({ "image": "nginx" }));
    assert_eq!(
        unknown[0].sentence(),
        "unknown field \"image\"; did you mean \"spec.image\"? It belongs under spec"
    );
}

#[test]
fn keys_of_a_map_are_never_unknown() {
    let map = schema(json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    assert!(map.prune(&mut json!({ "anything": "x" })).is_empty());
    assert_eq!(paths(&map, &json!({ "anything": 1 }), None), ["anything"]);
}

#[test]
fn a_set_has_each_item_once_and_a_keyed_list_each_key() {
    let set =
        schema(json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } }));
    assert_eq!(paths(&set, &json!(["a", "b", "a"]), None), ["[2]"]);
    let keyed = schema(json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": { "type": "object", "properties": { "type": { "type": "string" } } },
    }));
    assert_eq!(paths(&keyed, &json!([{ "type": "x" }, { "type": "y" }, { "type": "x" }]), None), ["[2]"]);
}

#[test]
fn unchanged_values_are_not_checked_again() {
    let fields = json!({ "n": { "type": "integer", "minimum": 1 }, "m": { "type": "integer" } });
    let object = schema(json!({ "type": "object", "properties": fields }));
    let old = json!({ "n": 0, "m": 1 });
    assert!(paths(&object, &json!({ "n": 0, "m": 2 }), Some(&old)).is_empty());
    assert_eq!(paths(&object, &json!({ "n": -1, "m": 1 }), Some(&old)), ["n"]);
}

#[test]
fn every_bound_is_checked() {
    let cases = [
        (json!({ "type": "string", "minLength": 1 }), json!("")),
        (json!({ "type": "string", "maxLength": 2 }), json!("äöü")),
        (json!({ "type": "string", "pattern": "^a+$" }), json!("b")),
        (json!({ "type": "string", "enum": ["a"] }), json!("b")),
        (json!({ "type": "string", "format": "date-time" }), json!("soon")),
        (json!({ "type": "integer", "format": "int32" }), json!(2_147_483_648_u64)),
        (json!({ "type": "integer" }), json!(1.5)),
        (json!({ "type": "number", "maximum": 1, "exclusiveMaximum": true }), json!(1)),
        (json!({ "type": "number", "multipleOf": 5 }), json!(7)),
        (json!({ "type": "array", "minItems": 1 }), json!([])),
        (json!({ "type": "array", "maxItems": 1 }), json!([1, 2])),
        (json!({ "type": "object", "minProperties": 1 }), json!({})),
        (json!({ "type": "object", "maxProperties": 0, "additionalProperties": true }), json!({ "a": 1 })),
        (json!({ "type": "object", "required": ["a"] }), json!({})),
        (json!({ "x-kubernetes-int-or-string": true }), json!(true)),
        (json!({ "type": "integer", "oneOf": [{ "minimum": 1 }, { "minimum": 2 }] }), json!(3)),
        (json!({ "type": "integer", "anyOf": [{ "minimum": 1 }, { "minimum": 2 }] }), json!(0)),
        (json!({ "type": "integer", "allOf": [{ "minimum": 1 }] }), json!(0)),
        (json!({ "type": "integer", "not": { "minimum": 1 } }), json!(3)),
    ];
    for (bound, value) in cases {
        assert_eq!(schema(bound.clone()).check(&value, None).len(), 1, "{bound} should refuse {value}");
    }
}
