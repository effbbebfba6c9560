//! Reports that do not stay: a second agent on the node, another program that writes over them, definitions that drop fields.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use prewarm_api::kruise::{ImageTagStatus, NodeImageStatus};
use serde_json::json;

use crate::node::{NODE, Node, image, pass};

const NAME: &str = "reg.example/app";
const DEFINITION: &str = "nodeimages.apps.kruise.io";

fn tags(status: &NodeImageStatus) -> Vec<ImageTagStatus> {
    status
        .image_statuses
        .as_ref()
        .and_then(|images| images.get(NAME))
        .map(|image| image.tags.clone())
        .unwrap_or_default()
}

fn definitions(node: &Node) -> Api<DynamicObject> {
    Api::all_with(node.client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()))
}

/// Applies the definition of NodeImages without these fields of a tag's status.
async fn forget_fields(node: &Node, fields: &[&str]) {
    let api = definitions(node);
    let mut definition = api.get(DEFINITION).await.unwrap();
    for version in definition.data["spec"]["versions"].as_array_mut().unwrap() {
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        let tag =
            &mut status["imageStatuses"]["additionalProperties"]["properties"]["tags"]["items"]["properties"];
        for field in fields {
            assert!(tag.as_object_mut().unwrap().remove(*field).is_some(), "{field}");
        }
    }
    api.replace(DEFINITION, &PostParams::default(), &definition).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_agents_on_one_node_agree_on_every_end() {
    let mut first = Node::new();
    for tag in ["1", "2", "3"] {
        first.fake.image(&format!("{NAME}:{tag}")).takes(Duration::from_secs(30));
    }
    first.ask(json!({ NAME: image(&["1", "2", "3", "absent"]) })).await;
    let mut second = first.beside("agent-2");
    first.start();
    pass(1.4).await;
    second.start();
    let status = first.settled(4).await;
    pass(10.0).await;
    let writes = (first.status_writes(), second.status_writes());
    pass(3600.0).await;
    assert_eq!((first.status_writes(), second.status_writes()), writes, "they go on correcting each other");
    let last = first.status().await;
    assert_eq!((last.succeeded, last.failed), (3, 1));
    assert_eq!(tags(&last).len(), tags(&status).len());
    assert!(last.reported_by.is_some_and(|name| ["agent-1", "agent-2"].contains(&name.as_str())));
}

#[tokio::test(start_paused = true)]
async fn an_end_is_written_at_most_twice_by_each_of_two_agents() {
    let mut first = Node::new();
    first.fake.image(&format!("{NAME}:1")).takes(Duration::from_secs(30));
    first.ask(json!({ NAME: image(&["1"]) })).await;
    let mut second = first.beside("agent-2");
    first.start();
    pass(1.4).await;
    second.start();
    pass(28.0).await;
    let before = (first.status_writes(), second.status_writes());
    first.settled(1).await;
    pass(600.0).await;
    let after = (first.status_writes(), second.status_writes());
    assert!(after.0 <= before.0 + 2 && after.1 <= before.1 + 2, "{before:?} {after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_keeps_wiping_is_corrected_less_and_less_often() {
    let mut node = Node::new();
    node.fake.image(&format!("{NAME}:1"));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.settled(1).await;
    let before = node.status_writes();
    let wrong = Patch::Merge(json!({ "status": { "succeeded": 7, "imageStatuses": null } }));
    for _ in 0..3600 {
        node.api().patch_status(NODE, &PatchParams::default(), &wrong).await.unwrap();
        pass(1.0).await;
    }
    let writes = node.status_writes() - before;
    assert!((5..30).contains(&writes), "{writes}");
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_server_drops_are_reported_once_and_told_once() {
    let mut node = Node::new();
    forget_fields(&node, &["failureClass", "failedAttempts"]).await;
    node.ask(json!({ NAME: image(&["absent"]) })).await;
    node.start();
    node.settled(1).await;
    pass(100.0).await;
    assert!(node.status_writes() <= 12, "{}", node.status_writes());
    let before = node.status_writes();
    pass(3600.0).await;
    assert!(node.status_writes() - before <= 9, "{}", node.status_writes() - before);
    let told: Vec<_> = node
        .events()
        .await
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("FieldsNotKept"))
        .collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    let text = told[0].note.clone().unwrap();
    assert!(text.contains("failedAttempts") && text.contains("failureClass"), "{text}");
    assert!(node.health.checks().remark().is_some_and(|remark| remark.contains("failureClass")));
    assert!(node.health.checks().failing().is_empty(), "it works all the same");
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_server_knows_again_are_reported_within_minutes() {
    let mut node = Node::new();
    forget_fields(&node, &["failureClass"]).await;
    node.ask(json!({ NAME: image(&["absent"]) })).await;
    node.start();
    node.settled(1).await;
    pass(3600.0).await;
    assert_eq!(node.tag(NAME, "absent").await.failure_class, None);
    let ours = prewarm_api::crd::all().iter().find(|one| one.spec.names.plural == "nodeimages").unwrap();
    let spec = Patch::Merge(json!({ "spec": { "versions": ours.spec.versions } }));
    definitions(&node).patch(DEFINITION, &PatchParams::default(), &spec).await.unwrap();
    pass(20.0 * 60.0).await;
    assert!(node.tag(NAME, "absent").await.failure_class.is_some());
    assert_eq!(node.health.checks().remark(), None);
}
