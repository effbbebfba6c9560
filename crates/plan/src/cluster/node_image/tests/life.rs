//! When a NodeImage is made, kept equal to its Node, and deleted (kruise R2, R7–R10).

use k8s_openapi::api::core::v1::NodeSystemInfo;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::names::{FAKE_NODE_IMAGE_LABEL, NODE_RUNTIME_ANNOTATION};
use serde_json::json;

use super::*;
use crate::support::build::{entry, labelled, unready};

fn without_image(facts: NodeObject) -> Option<Action> {
    let mut scene = Scene::on(facts, node_image("n1", &[]));
    scene.node.image = None;
    scene.decide().action
}

fn without_node(object: NodeImage) -> Scene {
    let mut scene = Scene::of(object);
    scene.node.facts = None;
    scene
}

fn terminating(mut facts: NodeObject) -> NodeObject {
    facts.metadata.deletion_timestamp = Some(Time(at(0)));
    facts
}

fn fake(mut object: NodeImage) -> NodeImage {
    object.metadata.labels = Some([(FAKE_NODE_IMAGE_LABEL.to_owned(), "true".to_owned())].into());
    object
}

fn delete() -> Action {
    Action::Delete { uid: "image-n1".into() }
}

/// kruise R8, W17, R3
#[test]
fn a_ready_node_gets_a_node_image_with_its_labels_at_once() {
    let labels = Arc::new(BTreeMap::from([("pool".to_owned(), "gpu".to_owned())]));
    let expected = Action::Create { labels, node_uid: "node-n1".into(), runtime: None };
    assert_eq!(without_image(labelled("n1", &[("pool", "gpu")])), Some(expected));
}

/// kruise R8, R3
#[test]
fn a_node_that_is_not_ready_gets_none_yet() {
    assert_eq!(without_image(unready(node("n1"))), None);
}

#[test]
fn a_node_that_is_being_deleted_gets_none() {
    assert_eq!(without_image(terminating(node("n1"))), None);
}

/// kruise R2
#[test]
fn a_virtual_node_gets_none() {
    assert_eq!(without_image(labelled("n1", &[("type", "virtual-kubelet")])), None);
    assert!(without_image(labelled("n1", &[("type", "metal")])).is_some());
}

/// kruise R2
#[test]
fn the_node_image_of_a_node_that_became_virtual_is_left_alone() {
    let scene = Scene::on(labelled("n1", &[("type", "virtual-kubelet")]), node_image("n1", &[]));
    assert!(scene.is_settled());
}

#[test]
fn a_node_that_agents_cannot_run_on_gets_none_and_loses_the_one_that_it_has() {
    let windows = || labelled("n1", &[("kubernetes.io/os", "windows")]);
    assert_eq!(without_image(windows()), None);
    assert!(without_image(labelled("n1", &[("kubernetes.io/os", "linux")])).is_some());
    assert_eq!(Scene::on(windows(), node_image("n1", &[])).decide().action, Some(delete()));
}

/// kruise R7, R5
#[test]
fn a_node_image_goes_with_its_node() {
    assert_eq!(without_node(node_image("n1", &[])).decide().action, Some(delete()));
    let leaving = Scene::on(terminating(node("n1")), node_image("n1", &[]));
    assert_eq!(leaving.decide().action, Some(delete()));
}

#[test]
fn a_node_image_never_goes_because_its_node_is_not_ready() {
    assert!(Scene::on(unready(node("n1")), node_image("n1", &[])).is_settled());
}

/// kruise R7
#[test]
fn a_fake_node_image_stays_without_a_node_and_is_tidied() {
    let scene = without_node(fake(node_image("n1", &[entry("nginx:1").succeeded(at(0))])));
    assert!(scene.is_settled());
    assert!(scene.at(600).after().spec.images.is_empty());
}

#[test]
fn a_node_that_was_made_again_under_its_name_starts_empty() {
    let mut facts = node("n1");
    facts.metadata.uid = Some("another".to_owned());
    assert_eq!(Scene::on(facts, node_image("n1", &[entry("nginx:1")])).decide().action, Some(delete()));
}

/// kruise R9
#[test]
fn a_node_image_on_its_way_out_is_left_alone() {
    let mut object = node_image("n1", &[entry("nginx:1").of(&["gone"])]);
    object.metadata.deletion_timestamp = Some(Time(at(0)));
    assert_eq!(without_node(object).decide(), Decision::default());
}

/// kruise T20, R4
#[test]
fn what_is_as_it_should_be_is_left_alone() {
    assert_eq!(Scene::of(node_image("n1", &[])).decide(), Decision::default());
}

/// kruise T21, R10, R4
#[test]
fn labels_become_exactly_those_of_the_node() {
    let mut object = node_image("n1", &[]);
    object.metadata.labels = Some([("old".to_owned(), "1".to_owned())].into());
    let after = Scene::on(labelled("n1", &[("pool", "gpu")]), object.clone()).after();
    assert_eq!(after.metadata.labels, Some([("pool".to_owned(), "gpu".to_owned())].into()));
    let after = Scene::of(object).after();
    assert_eq!(after.metadata.labels, Some(BTreeMap::new()));
}

#[test]
fn a_node_image_that_somebody_else_made_gets_its_node_as_owner() {
    let mut object = node_image("n1", &[]);
    let owners = object.metadata.owner_references.take();
    assert_eq!(Scene::of(object.clone()).after().metadata.owner_references, owners);
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"});
    object.metadata.owner_references = serde_json::from_value(json!([other])).unwrap();
    let names: Vec<String> = Scene::of(object)
        .after()
        .metadata
        .owner_references
        .into_iter()
        .flatten()
        .map(|owner| owner.name)
        .collect();
    assert_eq!(names, ["x", "n1"]);
}

/// design 4
#[test]
fn a_patch_is_guarded_by_uid_and_generation_and_by_nothing_of_the_status() {
    let scene = Scene::on(labelled("n1", &[("pool", "gpu")]), node_image("n1", &[]));
    let Some(Action::Patch { operations, grants: 0 }) = scene.decide().action else { panic!() };
    let guards = [
        json!({"op": "test", "path": "/metadata/uid", "value": "image-n1"}),
        json!({"op": "test", "path": "/metadata/generation", "value": 1}),
    ];
    assert_eq!(operations[..2], guards);
    assert_eq!(operations.len(), 3);
}

/// The node `n1`, whose kubelet reports this container runtime.
fn running(runtime: &str) -> NodeObject {
    let mut facts = node("n1");
    let info = NodeSystemInfo { container_runtime_version: runtime.to_owned(), ..NodeSystemInfo::default() };
    facts.status.as_mut().unwrap().node_info = Some(info);
    facts
}

/// A NodeImage whose agent was told of this container runtime.
fn with_runtime(runtime: &str) -> NodeImage {
    let mut object = node_image("n1", &[]);
    let annotations =
        [(NODE_RUNTIME_ANNOTATION.to_owned(), runtime.to_owned()), ("other".to_owned(), "1".to_owned())];
    object.metadata.annotations = Some(annotations.into());
    object
}

fn runtime_of(object: &NodeImage) -> Option<&str> {
    object.metadata.annotations.as_ref()?.get(NODE_RUNTIME_ANNOTATION).map(String::as_str)
}

#[test]
fn a_node_image_is_made_with_the_runtime_that_the_kubelet_reports() {
    let runtime = |action| if let Some(Action::Create { runtime, .. }) = action { runtime } else { panic!() };
    assert_eq!(runtime(without_image(running("cri-o://1.34.0"))).as_deref(), Some("cri-o://1.34.0"));
    assert_eq!(runtime(without_image(running(""))), None);
    assert_eq!(runtime(without_image(running(&"x".repeat(257)))), None);
    let made = new("n1", &BTreeMap::new(), "node-n1", Some("cri-o://1.34.0"));
    assert_eq!(made["metadata"]["annotations"][NODE_RUNTIME_ANNOTATION], "cri-o://1.34.0");
}

#[test]
fn a_node_image_without_the_runtime_is_told_it_along_with_the_next_entry_and_not_by_a_write_of_its_own() {
    assert!(Scene::on(running("cri-o://1.34.0"), node_image("n1", &[])).is_settled());
    let scene = Scene::on(running("cri-o://1.34.0"), node_image("n1", &[entry("nginx:1").succeeded(at(0))]));
    let after = scene.at(600).after();
    assert!(after.spec.images.is_empty());
    assert_eq!(runtime_of(&after), Some("cri-o://1.34.0"));
}

#[test]
fn a_runtime_that_was_upgraded_is_corrected_once_and_other_annotations_stay() {
    let scene = Scene::on(running("containerd://2.4.3"), with_runtime("containerd://2.4.2"));
    let after = scene.after();
    assert_eq!(runtime_of(&after), Some("containerd://2.4.3"));
    assert_eq!(after.metadata.annotations.as_ref().map(BTreeMap::len), Some(2));
    assert!(Scene::on(running("containerd://2.4.3"), after).is_settled());
    assert!(Scene::on(running(""), with_runtime("containerd://2.4.2")).is_settled());
}

#[test]
fn a_write_of_annotations_loses_none_that_came_meanwhile() {
    let scene = Scene::on(running("containerd://2.4.3"), with_runtime("containerd://2.4.2"));
    let Some(Action::Patch { operations, .. }) = scene.decide().action else { panic!() };
    let mut meanwhile = scene.object.clone();
    meanwhile.metadata.resource_version = Some("99".to_owned());
    assert_eq!(patched(&meanwhile, operations), None);
}
