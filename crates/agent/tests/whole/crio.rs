//! What is different on CRI-O: no progress, no events, and callers that share a pull also share its cancellation.

use std::collections::BTreeMap;
use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::fake::{Fake, Outcome};
use prewarm_runtime::{PullRequest, Runtime};
use serde_json::json;

use crate::node::{Node, image, pass, tag_of};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

async fn asked(takes: u64) -> Node {
    let node = Node::on(Fake::crio());
    node.fake.image(APP).takes(Duration::from_secs(takes));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node
}

#[tokio::test(start_paused = true)]
async fn progress_is_zero_until_the_end_and_then_a_hundred() {
    // kruise D25.
    let mut node = asked(60).await;
    node.start();
    node.fake.started(APP).await;
    pass(30.0).await;
    let half = node.tag(NAME, "1").await;
    assert_eq!((half.phase, half.progress, half.bytes_total), (PullPhase::Pulling, 0, None));
    node.settled(1).await;
    let done = node.tag(NAME, "1").await;
    assert_eq!((done.progress, done.bytes_total), (100, None));
    assert!(node.status_writes() <= 3, "it waited for the runtime, it began, and it ended");
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_another_caller_took_down_is_repeated_at_once_and_counts_as_one_attempt() {
    let mut node = asked(20).await;
    let kubelet = Runtime::connect(&node.fake.endpoint()).await.unwrap();
    let request = PullRequest {
        reference: ImageRef::parse(APP).unwrap(),
        credential: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
    };
    let other = tokio::spawn(async move { kubelet.pull(&request).await.is_ok() });
    node.fake.started(APP).await;
    node.start();
    pass(5.0).await;
    assert_eq!(node.fake.calls().len(), 2, "the agent has joined the other's pull");
    other.abort();
    assert_eq!(node.settled(1).await.succeeded, 1);
    let outcomes: Vec<_> = node.fake.calls().into_iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Failed, Outcome::Succeeded]);
    assert_eq!(node.tag(NAME, "1").await.failed_attempts, 0);
    assert!((25.0..25.5).contains(&node.seconds()), "{}", node.seconds());
}

#[tokio::test(start_paused = true)]
async fn the_error_of_cri_o_about_a_missing_image_has_a_class_too() {
    let mut node = Node::on(Fake::crio());
    node.ask(json!({ NAME: image(&["absent"]) })).await;
    node.start();
    let status = node.settled(1).await;
    let tag = tag_of(&status, NAME, "absent").unwrap();
    assert_eq!(tag.failure_class, Some(prewarm_api::kruise::FailureClass::NotFound));
    let advice = "check that reg.example/app and its tag exist in reg.example";
    assert!(tag.message.as_ref().unwrap().ends_with(advice), "{tag:?}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_image_is_found_missing_within_a_minute() {
    let mut node = asked(1).await;
    node.start();
    node.settled(1).await;
    node.fake.remove(APP);
    let removed = node.seconds();
    node.fake.started(APP).await;
    assert!(node.seconds() - removed <= 60.1, "{}", node.seconds() - removed);
    assert_eq!(node.settled(1).await.succeeded, 1);
}
