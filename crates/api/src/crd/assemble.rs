//! Turns a derived definition into the one that is shipped: both versions, clean schemas, rules in place.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, JSONSchemaProps,
};
use serde_json::{Map, Value, json};

use crate::rule::{self, Check, Rule};

/// The shipped definition of a kind. The last of `versions` is the stored one. All have the same schema, so conversion
/// `None` loses nothing.
pub fn definition(derived: &CustomResourceDefinition, versions: &[&str]) -> CustomResourceDefinition {
    let mut crd = derived.clone();
    let mut version = crd.spec.versions.remove(0);
    let root = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
    let root = root.expect("a derived definition has a schema");
    *root = shipped_schema(root, &rule::of(&crd.spec.names.kind));
    if crd.spec.names.kind == "NodeImage" {
        // An empty NodeImage is complete, so its spec may be left out.
        root.required = None;
    }
    crd.spec.versions = versions
        .iter()
        .map(|name| {
            let mut copy = version.clone();
            (*name).clone_into(&mut copy.name);
            copy.storage = Some(name) == versions.last();
            copy
        })
        .collect();
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    crd.spec.names.categories = None;
    if crd.spec.names.short_names.as_ref().is_some_and(Vec::is_empty) {
        crd.spec.names.short_names = None;
    }
    crd.spec.conversion =
        Some(CustomResourceConversion { strategy: "None".to_owned(), ..CustomResourceConversion::default() });
    crd
}

fn shipped_schema(derived: &JSONSchemaProps, rules: &[Rule]) -> JSONSchemaProps {
    let mut schema = serde_json::to_value(derived).expect("a schema is JSON");
    tidy(&mut schema);
    describe_root(&mut schema);
    for rule in rules.iter().filter(|rule| !matches!(rule.check, Check::Offline(_))) {
        let node = descend(&mut schema, &rule.at).unwrap_or_else(|| {
            panic!("rule {} stands at {:?}, which the schema does not have", rule.id, rule.at)
        });
        let list = node.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
        list.as_array_mut().expect("a list of rules").push(rule.to_json());
    }
    serde_json::from_value(schema).expect("a schema that was read and only changed by our hand")
}

/// Removes what Rust's types express and a CRD must not have: null as a value of its own, and number formats that
/// Kubernetes does not know. A default of null means that there is none.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(node) => {
            node.remove("nullable");
            if node.get("default").is_some_and(Value::is_null) {
                node.remove("default");
            }
            if let Some(Value::String(description)) = node.get_mut("description") {
                *description = unwrapped(description);
            }
            match node.get("format").and_then(Value::as_str) {
                Some("int-or-string") => drop(node.remove("format")),
                // Before 1.36 the server does not enforce the format, and our types cannot hold more.
                Some("int32") => {
                    node.entry("minimum").or_insert_with(|| i32::MIN.into());
                    node.entry("maximum").or_insert_with(|| i32::MAX.into());
                }
                _ => {}
            }
            node.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A doc comment without the line breaks of the source. Paragraphs stay.
fn unwrapped(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

/// Adds the fields that every Kubernetes kind has at its root.
fn describe_root(schema: &mut Value) {
    let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) else { return };
    properties.insert(
        "apiVersion".into(),
        json!({ "type": "string", "description": "The group and version of this object's schema." }),
    );
    properties.insert("kind".into(), json!({ "type": "string", "description": "The kind of this object." }));
    properties.insert("metadata".into(), json!({ "type": "object" }));
}

/// The part of a schema that a rule is about: `spec.images[]` are the items of a list, `spec.images{}` the values of a
/// map.
fn descend<'a>(schema: &'a mut Value, at: &str) -> Option<&'a mut Map<String, Value>> {
    let mut node = schema;
    for step in at.split('.').filter(|step| !step.is_empty()) {
        let name = step.trim_end_matches("[]").trim_end_matches("{}");
        node = node.get_mut("properties")?.get_mut(name)?;
        if step.ends_with("[]") {
            node = node.get_mut("items")?;
        } else if step.ends_with("{}") {
            node = node.get_mut("additionalProperties")?;
        }
    }
    node.as_object_mut()
}
