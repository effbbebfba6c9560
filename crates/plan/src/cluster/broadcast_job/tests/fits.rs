//! Whether a pod fits a node (kruise R114, T113).

use k8s_openapi::api::core::v1::Node;

use super::*;
use crate::cluster::broadcast_job::fitness::{Misfit, NodeFacts, misfit};
use crate::cluster::broadcast_job::shape::Shape;

/// What a template with these fields in its spec has against a node with these fields.
fn why_not(pod: &Value, node: &Value) -> Option<Misfit> {
    let mut spec = json!({"containers": [{"name": "main", "image": "tool:1"}]});
    json_patch::merge(&mut spec, pod);
    let shape = Shape::read(&json!({"spec": spec})).unwrap();
    let mut object = json!({
        "metadata": {"name": "a", "labels": {"pool": "gpu", "size": "12"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}},
    });
    json_patch::merge(&mut object, node);
    let node: Node = serde_json::from_value(object).unwrap();
    let labels = node.metadata.labels.clone().unwrap_or_default();
    misfit(&shape, "a", &NodeFacts::read(&node, Arc::new(labels)))
}

#[track_caller]
fn check(cases: &[(Value, Value, Option<Misfit>)]) {
    for (pod, node, expected) in cases {
        assert_eq!(why_not(pod, node), *expected, "{pod} on {node}");
    }
}

#[test]
fn a_template_that_names_a_node_fits_that_one_alone() {
    check(&[
        (json!({}), json!({}), None),
        (json!({"nodeName": "a"}), json!({}), None),
        (json!({"nodeName": ""}), json!({}), None),
        (json!({"nodeName": "b"}), json!({}), Some(Misfit::OtherNode)),
    ]);
}

#[test]
fn labels_have_to_match_selector_and_required_affinity() {
    let affinity = |terms: Value| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": terms}}}})
    };
    let one = |key: &str, operator: &str, values: &[&str]| {
        affinity(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
    };
    let no = || Some(Misfit::Labels);
    check(&[
        (json!({"nodeSelector": {"pool": "gpu"}}), json!({}), None),
        (json!({"nodeSelector": {"pool": "cpu"}}), json!({}), no()),
        (one("pool", "In", &["gpu", "cpu"]), json!({}), None),
        (one("pool", "In", &["cpu"]), json!({}), no()),
        (one("pool", "NotIn", &["cpu"]), json!({}), None),
        (one("other", "NotIn", &["cpu"]), json!({}), None),
        (one("pool", "NotIn", &["gpu"]), json!({}), no()),
        (one("pool", "Exists", &[]), json!({}), None),
        (one("other", "Exists", &[]), json!({}), no()),
        (one("other", "DoesNotExist", &[]), json!({}), None),
        (one("size", "Gt", &["11"]), json!({}), None),
        (one("size", "Gt", &["12"]), json!({}), no()),
        (one("size", "Lt", &["13"]), json!({}), None),
        (one("pool", "Gt", &["1"]), json!({}), no()),
        (one("pool", "Near", &["gpu"]), json!({}), no()),
        (affinity(json!([{}])), json!({}), no()),
        (affinity(json!([])), json!({}), no()),
        (
            affinity(json!([
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["cpu"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
            ])),
            json!({}),
            None,
        ),
        (
            affinity(
                json!([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}]),
            ),
            json!({}),
            no(),
        ),
    ]);
}

#[test]
fn taints_keep_pods_away_that_do_not_tolerate_them() {
    let tainted =
        |effect: &str| json!({"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": effect}]}});
    let tolerates = |toleration: Value| json!({"tolerations": [toleration]});
    let no = |effect: &str| Some(Misfit::Taint(format!("gpu:{effect}")));
    check(&[
        (json!({}), tainted("NoSchedule"), no("NoSchedule")),
        (json!({}), tainted("NoExecute"), no("NoExecute")),
        (json!({}), tainted("PreferNoSchedule"), None),
        (tolerates(json!({"operator": "Exists"})), tainted("NoExecute"), None),
        (tolerates(json!({"key": "gpu", "operator": "Exists"})), tainted("NoSchedule"), None),
        (tolerates(json!({"key": "gpu", "operator": "Equal", "value": "yes"})), tainted("NoSchedule"), None),
        (tolerates(json!({"key": "gpu", "value": "yes"})), tainted("NoSchedule"), None),
        (tolerates(json!({"key": "gpu", "value": "no"})), tainted("NoSchedule"), no("NoSchedule")),
        (
            tolerates(json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"})),
            tainted("NoSchedule"),
            no("NoSchedule"),
        ),
    ]);
}

/// kruise T113.
#[test]
fn an_unschedulable_node_takes_only_pods_that_tolerate_that() {
    let cordoned = json!({"spec": {"unschedulable": true}});
    let tolerates =
        json!({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]});
    check(&[(json!({}), cordoned.clone(), Some(Misfit::Unschedulable)), (tolerates, cordoned, None)]);
}

#[test]
fn requests_have_to_fit_what_the_node_has() {
    let asks =
        |resources: Value| json!({"containers": [{"name": "main", "image": "t", "resources": resources}]});
    let short = |name: &str| Some(Misfit::Resource(name.to_owned()));
    let init = |first: Value, second: Value| {
        json!({
            "initContainers": [{"name": "i", "image": "t", "resources": {"requests": {"cpu": "1500m"}}}],
            "containers": [
                {"name": "one", "image": "t", "resources": {"requests": {"cpu": first}}},
                {"name": "two", "image": "t", "resources": {"requests": {"cpu": second}}},
            ],
        })
    };
    let sidecar = json!({
        "initContainers": [
            {"name": "s", "image": "t", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        ],
        "containers": [{"name": "main", "image": "t", "resources": {"requests": {"cpu": "1001m"}}}],
    });
    check(&[
        (asks(json!({"requests": {"cpu": "2", "memory": "4096Mi"}})), json!({}), None),
        (asks(json!({"requests": {"cpu": "2001m"}})), json!({}), short("cpu")),
        (asks(json!({"limits": {"memory": "5Gi"}})), json!({}), short("memory")),
        (asks(json!({"limits": {"memory": "5Gi"}, "requests": {"memory": "1Gi"}})), json!({}), None),
        (asks(json!({"requests": {"nvidia.com/gpu": "1"}})), json!({}), short("nvidia.com/gpu")),
        (init(json!("1"), json!("1")), json!({}), None),
        (init(json!("1"), json!("1100m")), json!({}), short("cpu")),
        (sidecar, json!({}), short("cpu")),
        (json!({"overhead": {"cpu": "3"}}), json!({}), short("cpu")),
        (json!({}), json!({"status": {"allocatable": {"pods": "0"}}}), short("pods")),
    ]);
}

#[test]
fn a_heartbeat_changes_nothing_that_fitness_depends_on() {
    let node = |beat: &str| -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "resourceVersion": beat},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-11-15T08:00:00Z"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}]},
        }))
        .unwrap()
    };
    let facts = |node: &Node| NodeFacts::read(node, Arc::default());
    assert_eq!(facts(&node("2026-11-15T08:00:00Z")), facts(&node("2026-11-15T08:00:10Z")));
}
