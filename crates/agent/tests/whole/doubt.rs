//! Images that stop the runtime whenever they are pulled (reliability S11): they fail, and nobody else does.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_runtime::Code;
use serde_json::json;

use crate::node::{Node, image, pass, tag_of};

const BAD: &str = "reg.example/bad:1";
const GOOD: &str = "reg.example/good:1";
const OTHER: &str = "reg.example/other:1";
/// How long a service manager takes to start the runtime again.
const DOWNTIME: Duration = Duration::from_secs(10);

/// A node on which one of three images stops the runtime, five seconds into its pull.
async fn asked() -> Node {
    let node = Node::new();
    node.fake.image(BAD).takes(Duration::from_secs(5)).stops_the_runtime(DOWNTIME);
    node.fake.image(GOOD).takes(Duration::from_secs(8));
    node.fake.image(OTHER).takes(Duration::from_secs(8));
    let names = ["bad", "good", "other"].map(|name| (format!("reg.example/{name}"), image(&["1"])));
    node.ask(names.into_iter().collect()).await;
    node
}

async fn assert_only_the_bad_one_failed(node: &Node) {
    let status = node.settled(3).await;
    assert_eq!((status.succeeded, status.failed), (2, 1), "{status:#?}");
    let bad = tag_of(&status, "reg.example/bad", "1").unwrap();
    assert_eq!((bad.phase, bad.failure_class), (PullPhase::Failed, Some(FailureClass::RuntimeCrash)));
    assert_eq!((bad.interruptions, bad.failed_attempts), (3, 1));
    let message = bad.message.unwrap();
    assert!(
        message.starts_with(
            "cannot pull reg.example/bad:1: the container runtime stopped (attempt 1 of 4): it stopped 3 times"
        ),
        "{message}"
    );
    assert_eq!(node.fake.calls_of(BAD).len(), 3);
    let good = tag_of(&status, "reg.example/good", "1").unwrap();
    assert_eq!((good.failed_attempts, good.failure_class), (0, None));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_stops_the_runtime_fails_the_third_time_and_all_others_are_pulled() {
    let mut node = asked().await;
    node.start();
    assert_only_the_bad_one_failed(&node).await;
    // The last time nothing else was pulled beside it.
    let last = node.fake.calls_of(BAD).pop().unwrap();
    let overlaps = node.fake.calls().into_iter().filter(|call| {
        call.reference != last.reference
            && call.started < last.ended.unwrap()
            && call.ended.unwrap() > last.started
    });
    assert_eq!(overlaps.count(), 0);
    let metrics = node.metrics.encode();
    assert!(metrics.contains("pulls_total{result=\"failed\",class=\"RuntimeCrash\"} 1"), "{metrics}");
    assert!(metrics.contains("failed_attempts_total{class=\"RuntimeCrash\"} 1"), "{metrics}");
    pass(7200.0).await;
    assert_eq!(node.fake.calls_of(BAD).len(), 3, "it is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_agent_in_the_middle_keeps_the_count() {
    let mut node = asked().await;
    for interruptions in 1..=2 {
        node.start();
        node.until("an interruption", |status| {
            tag_of(status, "reg.example/bad", "1").is_some_and(|tag| tag.interruptions == interruptions)
        })
        .await;
        node.kill().await;
    }
    node.start();
    assert_only_the_bad_one_failed(&node).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_answers_that_it_is_unavailable_is_asked_with_growing_pauses() {
    let mut node = Node::new();
    node.fake.image(GOOD).fails(8, Code::Unavailable, "the content store is not ready");
    node.ask(json!({ "reg.example/good": image(&["1"]) })).await;
    node.start();
    let status = node.settled(1).await;
    let good = tag_of(&status, "reg.example/good", "1").unwrap();
    assert_eq!((good.phase, good.failed_attempts, good.interruptions), (PullPhase::Succeeded, 0, 0));
    let starts = node.starts(GOOD);
    let pauses: Vec<f64> = starts.windows(2).map(|two| (two[1] - two[0]).round()).collect();
    assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
}
