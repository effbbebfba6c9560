//! What a person sees who writes a NodeImage by hand.

use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use serde_json::json;

use crate::node::{Node, image};

#[tokio::test(start_paused = true)]
async fn an_image_written_by_hand_is_pulled_and_reported() {
    let mut node = Node::new();
    node.fake.image("reg.example/app:1").takes(Duration::from_secs(3)).size(1000);
    node.ask(json!({ "reg.example/app": image(&["1"]) })).await;
    node.start();
    let status = node.settled(1).await;
    assert_eq!((status.succeeded, status.failed), (1, 0));
    let tag = node.tag("reg.example/app", "1").await;
    assert_eq!((tag.phase, tag.progress), (PullPhase::Succeeded, 100));
    assert!(node.fake.has("reg.example/app:1"));
}
