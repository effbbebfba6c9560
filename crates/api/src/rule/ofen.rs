//! The rules of ImagePrefetch and NodeImageSet: those of ofen 1.7 except the registry allow-list, which is a policy of
//! the cluster and not a property of the kind.

use serde_json::Value;

use super::{Check, Rule, has, object_name, pull};

/// The longest label value. NodeImageSets have a label with the name of their ImagePrefetch.
const MAX_LABEL_VALUE: usize = 63;

/// The rules of ImagePrefetch.
pub fn image_prefetch() -> Vec<Rule> {
    let mut rules = vec![
        Rule {
            id: "ofen 1.6",
            at: String::new(),
            field: "metadata.name",
            cel: "size(self.metadata.name) <= 63".to_owned(),
            message: "the name is longer than 63 characters, the most that fits the label of its NodeImageSets",
            check: Check::Creation(|object| {
                object_name(object).is_none_or(|name| name.len() <= MAX_LABEL_VALUE)
            }),
        },
        Rule {
            id: "ofen 1.7.2",
            at: "spec".to_owned(),
            field: "replicas",
            cel: "!self.allNodes || !has(self.replicas)".to_owned(),
            message: "allNodes takes every node: remove replicas, or set allNodes to false",
            check: Check::Value(|spec| !all_nodes(spec) || !has(spec, "replicas")),
        },
        Rule {
            id: "ofen 1.7.3",
            at: "spec".to_owned(),
            field: "replicas",
            cel: "self.allNodes || (has(self.replicas) && self.replicas > 0)".to_owned(),
            message: "say on how many nodes: replicas of at least 1, or allNodes: true",
            check: Check::Value(|spec| {
                all_nodes(spec) || spec.get("replicas").and_then(Value::as_i64).is_some_and(|count| count > 0)
            }),
        },
        pull::image("ofen 1.7", "spec.images[]"),
    ];
    rules.extend(pull::label_selector("spec.nodeSelector"));
    rules
}

/// The rules of NodeImageSet.
pub fn node_image_set() -> Vec<Rule> {
    vec![pull::image("ofen 1.7", "spec.images[]")]
}

fn all_nodes(spec: &Value) -> bool {
    spec.get("allNodes").and_then(Value::as_bool).unwrap_or(false)
}
