//! What a person sees who writes a NodeImage by hand.

mod node;

use std::time::Duration;

use node::{Node, image};
use prewarm_api::kruise::PullPhase;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn an_image_written_by_hand_is_pulled_and_reported() {
    let mut node = Node::new();
    node.fake.image("reg.example/app:1").takes(Duration::from_secs(3)).size(1000);
    node.ask(json!({ "reg.example/app": image(&["1"]) })).await;
    node.start();
    let status = node.settled().await;
    assert_eq!((status.succeeded, status.failed), (1, 0));
    let tag = node.tag("reg.example/app", "1").await.unwrap();
    assert_eq!((tag.phase, tag.progress), (PullPhase::Succeeded, 100));
    assert!(node.fake.has("reg.example/app:1"));
}
