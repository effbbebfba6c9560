//! A registry that is overloaded is left alone by every task of the node, and nobody else suffers for it.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_runtime::Code;
use serde_json::json;

use crate::node::{Node, image, tag_of};

const TOO_MANY: &str = "failed to resolve image: unexpected status from HEAD request to \
                        https://busy.example/v2/a/manifests/1: 429 Too Many Requests";
const BROKEN: &str = "failed to resolve image: unexpected status from HEAD request to \
                      https://busy.example/v2/a/manifests/1: 503 Service Unavailable";

async fn slowed_by(text: &str) -> Node {
    let mut node = Node::new();
    node.config.parallel = 1;
    node.fake.image("busy.example/a:1").fails(1, Code::Unknown, text);
    node.fake.image("busy.example/b:1");
    node.fake.image("calm.example/c:1").takes(Duration::from_millis(500));
    node.ask(json!({
        "busy.example/a": image(&["1"]), "busy.example/b": image(&["1"]), "calm.example/c": image(&["1"]),
    }))
    .await;
    node.start();
    node
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_slow_down_all_tasks_of_that_registry_and_no_others() {
    let node = slowed_by(TOO_MANY).await;
    let status = node
        .until("the wait", |status| {
            tag_of(status, "busy.example/a", "1").is_some_and(|tag| tag.failed_attempts == 1)
        })
        .await;
    let failed = tag_of(&status, "busy.example/a", "1").unwrap();
    assert_eq!((failed.phase, failed.failure_class), (PullPhase::Pulling, Some(FailureClass::RateLimited)));
    let waiting = tag_of(&status, "busy.example/b", "1").unwrap();
    assert_eq!(waiting.message.as_deref(), Some("waits because busy.example asked for fewer requests"));
    assert_eq!(node.settled(3).await.succeeded, 3);
    let first = node.starts("busy.example/a:1")[0];
    let (neighbour, other) = (node.starts("busy.example/b:1")[0], node.starts("calm.example/c:1")[0]);
    assert!((1.0..=2.6).contains(&(neighbour - first)), "{neighbour}");
    assert!(other - first < 0.1, "{other}");
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_fails_by_itself_is_left_alone_too() {
    let node = slowed_by(BROKEN).await;
    assert_eq!(node.settled(3).await.succeeded, 3);
    let (first, neighbour) = (node.starts("busy.example/a:1")[0], node.starts("busy.example/b:1")[0]);
    assert!(neighbour - first >= 1.0, "{neighbour}");
    assert!(node.starts("calm.example/c:1")[0] - first < 0.1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_does_not_slow_down_other_tasks() {
    let node = slowed_by("failed to resolve image: busy.example/a:1: not found").await;
    node.settled(3).await;
    let starts = [node.starts("busy.example/b:1")[0], node.starts("calm.example/c:1")[0]];
    assert!(starts.iter().all(|start| *start < 0.7), "{starts:?}");
}
