//! The pods that are made from a template.

use super::*;
use crate::cluster::broadcast_job::shape::{self, Shape, pod_name};

fn labelled() -> BroadcastJob {
    job(&json!({"template": {
        "metadata": {"labels": {"app": "sweep"}, "annotations": {"why": "tidy"}},
        "spec": {"somethingNew": 1, "affinity": {
            "podAntiAffinity": {"x": 1},
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}},
        }},
    }}))
}

#[test]
fn a_pod_belongs_to_its_job_and_keeps_what_the_template_has() {
    let pod = shape::pod(&labelled(), "a", true);
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"app": "sweep", "broadcastjob-name": "sweep", "broadcastjob-controller-uid": "job-1"})
    );
    assert_eq!(pod["metadata"]["annotations"], json!({"why": "tidy"}));
    let owner = json!([{
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob", "name": "sweep", "uid": "job-1",
        "controller": true,
    }]);
    assert_eq!(pod["metadata"]["ownerReferences"], owner);
    assert_eq!(pod["spec"]["somethingNew"], 1, "fields of later releases go along");
}

/// kruise R120: the flag.
#[test]
fn the_scheduler_is_led_to_the_node_or_left_out() {
    let led = shape::pod(&labelled(), "a", true);
    let terms = &led["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let name = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]);
    assert_eq!(terms["nodeSelectorTerms"], name);
    assert_eq!(led["spec"]["affinity"]["podAntiAffinity"], json!({"x": 1}));
    assert_eq!(led["spec"].get("nodeName"), None);
    let bound = shape::pod(&job(&json!({})), "a", false);
    assert_eq!((&bound["spec"]["nodeName"], bound["spec"].get("affinity")), (&json!("a"), None));
}

#[test]
fn a_node_has_one_name_for_its_pod_and_another_job_has_another() {
    let other = |uid: &str| {
        let mut job = job(&json!({}));
        job.metadata.uid = Some(uid.to_owned());
        job
    };
    assert_eq!(pod_name(&other("1"), "a"), pod_name(&other("1"), "a"));
    assert_ne!(pod_name(&other("1"), "a"), pod_name(&other("2"), "a"));
    let mut all: Vec<String> =
        (0..10_000).map(|number| pod_name(&other("1"), &format!("node-{number}"))).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 10_000);
}

#[test]
fn a_template_that_is_no_pod_says_what_is_wrong() {
    let error = Shape::read(&json!({"spec": {"containers": "none"}})).unwrap_err();
    assert!(error.contains("invalid type: string \"none\""), "{error}");
}
