//! NodeImages that should not exist: the rest of the node's work goes on, and the bad entry is reported with a reason.
//! They are stored under definitions without any schema, as an older operator could have left them; ours come back
//! before the agent starts, so that its reports have to be good ones.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use prewarm_api::kruise::{FailureClass, NodeImage, NodeImageStatus, PullPhase};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::node::{NODE, Node, always, image, image_of, pass, tag, tag_of, with};

const GOOD: &str = "reg.example/good";

/// A node with one good image and these others, whatever they are.
async fn node(images: Value, status: Value) -> Node {
    let node = Node::new();
    node.fake.image("reg.example/good:1");
    let strict = set_schemas(&node, None).await;
    let mut images = images;
    images[GOOD] = image(&["1"]);
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": NODE },
        "spec": { "images": images },
    });
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    untyped(&node).create(&PostParams::default(), &object).await.unwrap();
    let status = Patch::Merge(json!({ "status": status }));
    untyped(&node).patch_status(NODE, &PatchParams::default(), &status).await.unwrap();
    set_schemas(&node, Some(strict)).await;
    node
}

fn untyped(node: &Node) -> Api<DynamicObject> {
    Api::all_with(node.client.clone(), &ApiResource::erase::<NodeImage>(&()))
}

/// Gives the definition these schemas, or none, and returns those that it had.
async fn set_schemas(node: &Node, schemas: Option<Vec<Value>>) -> Vec<Value> {
    let api = Api::<CustomResourceDefinition>::all(node.client.clone());
    let name = "nodeimages.apps.kruise.io";
    let definition = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let before: Vec<Value> = versions.iter().map(|version| version["schema"].clone()).collect();
    let open =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let schemas = schemas.unwrap_or_else(|| vec![open; before.len()]);
    let replace = |(place, schema)| json!({ "op": "replace", "path": format!("/spec/versions/{place}/schema"), "value": schema });
    let patch: Vec<Value> = schemas.into_iter().enumerate().map(replace).collect();
    let patch = Patch::Json::<()>(serde_json::from_value(Value::Array(patch)).unwrap());
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    before
}

/// Waits until all tags have ended, and reads the status untyped, as the spec cannot be read typed.
async fn settled(node: &Node, tags: i32) -> NodeImageStatus {
    for _ in 0..600 {
        let object = untyped(node).get(NODE).await.unwrap();
        let status = object.data.get("status").and_then(|status| NodeImageStatus::deserialize(status).ok());
        if let Some(status) = status.filter(|now| now.desired == tags && now.succeeded + now.failed == tags) {
            return status;
        }
        pass(0.5).await;
    }
    panic!("not settled: {:#}", untyped(node).get(NODE).await.unwrap().data["status"]);
}

fn assert_good(status: &NodeImageStatus) {
    assert_eq!(tag_of(status, GOOD, "1").unwrap().phase, PullPhase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn impossible_names_and_tags_fail_with_a_reason_and_the_rest_goes_on() {
    let images = json!({
        "reg.example/nameless": image(&["1"]),
        "UPPER CASE/and spaces": image(&["1"]),
        "reg.example/app": image(&["tag with spaces", "sha256:short"]),
        "../../etc/passwd": image(&["1"]),
    });
    let mut node = node(images, json!(null)).await;
    node.rewrite = Some(("reg.example/nameless", ""));
    node.start();
    let status = settled(&node, 6).await;
    assert_good(&status);
    assert_eq!(status.failed, 5);
    assert_eq!(tag_of(&status, "", "1").unwrap().failure_class, Some(FailureClass::InvalidReference));
    let bad = tag_of(&status, "UPPER CASE/and spaces", "1").unwrap();
    assert_eq!((bad.phase, bad.failure_class), (PullPhase::Failed, Some(FailureClass::InvalidReference)));
    let message = bad.message.unwrap();
    assert!(
        message.contains("is no image reference: ") && message.ends_with("; correct the entry"),
        "{message}"
    );
    assert_eq!(node.fake.calls().len(), 1, "the runtime is asked for good names only");
}

#[tokio::test(start_paused = true)]
async fn entries_of_the_wrong_shape_fail_with_a_reason_and_the_rest_goes_on() {
    // With everything that the server fills in, so that the entries stay as they are and it lets them be.
    let filled = json!({ "imagePullPolicy": "IfNotPresent", "pullPolicy": { "timeoutSeconds": 600, "backoffLimit": 3 } });
    let soon = json!({ "tag": "1", "pullPolicy": { "timeoutSeconds": "soon" } });
    let images = json!({
        "reg.example/a": { "tags": [with(filled.clone(), &soon)] },
        "reg.example/b": { "tags": ["just a text", 7, null] },
        "reg.example/c": { "tags": { "not": "a list" } },
        "reg.example/d": 42,
        "reg.example/e": { "tags": [with(filled, &tag(&"x".repeat(100_000)))] },
    });
    let mut node = node(images, json!(null)).await;
    node.start();
    let status = settled(&node, 6).await;
    assert_good(&status);
    let message = tag_of(&status, "reg.example/a", "1").unwrap().message.unwrap();
    assert!(message.starts_with("this entry of the spec cannot be read: "), "{message}");
    let long = &status.image_statuses.as_ref().unwrap()["reg.example/e"].tags[0];
    assert!(long.tag.len() <= 256 && long.message.as_ref().unwrap().len() <= 512, "{long:?}");
}

#[tokio::test(start_paused = true)]
async fn of_a_tag_that_stands_twice_the_highest_version_is_pulled_and_the_other_reported() {
    let newer = crate::node::version(always(tag("1")), 3);
    let images = json!({ "reg.example/app": image_of(vec![tag("twin"), newer]) });
    let mut node = node(images, json!(null)).await;
    node.rewrite = Some(("\"twin\"", "\"1\""));
    node.fake.image("reg.example/app:1");
    node.start();
    let status = settled(&node, 3).await;
    assert_good(&status);
    let tags = &status.image_statuses.as_ref().unwrap()["reg.example/app"].tags;
    let reported: Vec<_> = tags.iter().map(|tag| (tag.version, tag.phase)).collect();
    assert_eq!(reported, [(3, PullPhase::Succeeded), (0, PullPhase::Failed)]);
    assert!(tags[1].message.as_ref().unwrap().contains("stands twice"));
    assert_eq!(node.fake.calls_of("reg.example/app:1").len(), 1);
    let writes = node.status_writes();
    pass(600.0).await;
    assert_eq!(node.status_writes(), writes, "and then there is peace");
}

#[tokio::test(start_paused = true)]
async fn a_status_full_of_nonsense_is_replaced() {
    let megabyte = "m".repeat(1_000_000);
    let status = json!({
        "desired": "many", "succeeded": -5,
        "imageStatuses": {
            GOOD: { "tags": [{ "tag": "1", "phase": "Failed", "version": 9, "message": megabyte }] },
            "reg.example/gone": { "tags": [{ "tag": 7 }, "text"] },
            "reg.example/odd": { "tags": "none" },
        },
    });
    let mut node = node(json!({}), status).await;
    node.start();
    let status = settled(&node, 1).await;
    assert_good(&status);
    assert!(serde_json::to_string(&status).unwrap().len() < 2000);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_megabyte_is_cut_when_its_task_is_taken_over() {
    let failed = json!({
        "tag": "1", "phase": "Failed", "progress": 0, "version": 0, "message": "m".repeat(1_000_000),
        "startTime": "2026-11-15T07:00:00Z", "completionTime": "2026-11-15T07:00:09Z",
    });
    let status = json!({
        "desired": 1, "succeeded": 0, "failed": 1, "pulling": 0, "waiting": 0,
        "imageStatuses": { GOOD: { "tags": [failed] } },
    });
    let mut node = node(json!({}), status).await;
    node.start();
    pass(10.0).await;
    let status = settled(&node, 1).await;
    let tag = tag_of(&status, GOOD, "1").unwrap();
    assert_eq!((tag.phase, tag.message.unwrap().len()), (PullPhase::Failed, 512));
    assert_eq!(tag.completion_time.unwrap().0, "2026-11-15T07:00:09Z".parse::<Timestamp>().unwrap());
    assert!(node.fake.calls().is_empty(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn times_in_the_future_neither_hold_up_a_task_nor_prolong_it() {
    let created = json!({
        "tag": "1", "createdAt": "2099-01-01T00:00:00Z",
        "pullPolicy": { "ttlSecondsAfterFinished": 600, "activeDeadlineSeconds": 30, "backoffLimit": 99 },
    });
    let begun = json!({ "tag": "1", "phase": "Pulling", "progress": 0, "startTime": "2099-01-01T00:00:00Z" });
    let status = json!({
        "desired": 2, "succeeded": 0, "failed": 0, "pulling": 2, "waiting": 0,
        "imageStatuses": { "reg.example/hangs": { "tags": [begun] }, GOOD: { "tags": [begun] } },
    });
    let mut node = node(json!({ "reg.example/hangs": { "tags": [created] } }), status).await;
    node.fake.image("reg.example/hangs:1").hangs();
    node.start();
    let status = settled(&node, 2).await;
    assert_good(&status);
    let failed = tag_of(&status, "reg.example/hangs", "1").unwrap();
    assert_eq!(failed.message.as_deref(), Some("pulling exceeds the activeDeadlineSeconds"));
    assert!((30.0..31.0).contains(&node.seconds()), "{}", node.seconds());
}
