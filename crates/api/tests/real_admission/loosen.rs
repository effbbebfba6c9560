//! Definitions without their rules, to measure what the rules cost, and to store objects as before they existed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

/// Keywords that only refuse. Without them, a schema still has types, prunes and fills in defaults.
const RULES: [&str; 15] = [
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "format",
];

/// The same kind with types only. The required fields of a label selector stay: no program ever stored one without.
pub fn without_rules(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition is JSON");
    for version in value["spec"]["versions"].as_array_mut().into_iter().flatten() {
        strip(&mut version["schema"]["openAPIV3Schema"]);
    }
    serde_json::from_value(value).expect("still a definition")
}

fn strip(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    node.retain(|keyword, _| !RULES.contains(&keyword.as_str()));
    for (name, property) in fields(node) {
        if name != "matchExpressions" {
            strip(property);
        }
    }
    for holder in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(holder) {
            strip(inner);
        }
    }
}

fn fields(node: &mut Map<String, Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    node.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}
