//! Attempts, pauses and limits to the second (kruise D20–D23, W18). Times are of the test's clock, so they are exact
//! but for the jitter of pauses, which takes away at most half of each.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_runtime::Code;
use serde_json::{Value, json};

use crate::node::{Node, image_of, pass, policy, tag, tag_of};

const APP: &str = "reg.example/app:1";
/// How long everything around a pull may take: requests take no time, reports wait a quarter of a second.
const SLACK: f64 = 0.3;

async fn asked(limits: &Value) -> Node {
    let node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ "reg.example/app": image_of(vec![policy(tag("1"), limits)]) })).await;
    node
}

fn assert_near(is: f64, wanted: f64) {
    assert!((wanted - 0.01..wanted + SLACK).contains(&is), "{is} is not {wanted}");
}

#[tokio::test(start_paused = true)]
async fn pauses_double_from_one_second_and_jitter_takes_away_at_most_half() {
    let mut node = asked(&json!({ "backoffLimit": 7 })).await;
    node.fake.image(APP).fails(7, Code::Unknown, "dial tcp: connection refused");
    node.start();
    let status = node.settled(1).await;
    assert_eq!(status.succeeded, 1);
    let starts = node.starts(APP);
    let pauses: Vec<f64> = starts.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(pauses.len(), 7);
    for (pause, longest) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]) {
        assert!((longest / 2.0 - 0.01..=longest + 0.01).contains(pause), "{pauses:?}");
    }
    let tag = node.tag("reg.example/app", "1").await;
    assert_eq!((tag.failed_attempts, tag.message, tag.failure_class), (7, None, None));
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_reported_without_a_pause() {
    // kruise W18: the daemon of old slept another eight seconds first.
    let mut node = asked(&json!({ "backoffLimit": 3 })).await;
    node.fake.image(APP).fails(4, Code::Unknown, "dial tcp 10.0.0.9:443: connect: connection refused");
    node.start();
    let status = node.settled(1).await;
    let (starts, now) = (node.starts(APP), node.seconds());
    assert_eq!((starts.len(), status.failed), (4, 1));
    assert_near(now, starts[3]);
    let tag = tag_of(&status, "reg.example/app", "1").unwrap();
    assert_eq!((tag.failed_attempts, tag.failure_class), (4, Some(FailureClass::Unreachable)));
    assert_eq!(
        tag.message.as_deref(),
        Some(
            "cannot pull reg.example/app:1: registry unreachable (attempt 4 of 4): dial tcp 10.0.0.9:443: connect: \
             connection refused; check that reg.example runs and can be reached from this node"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_backoff_limit_of_zero_is_a_single_attempt() {
    let mut node = asked(&json!({ "backoffLimit": 0 })).await;
    node.fake.image(APP).fails(1, Code::Unknown, "boom");
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    assert_eq!(node.fake.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_its_timeout_and_the_next_one_gets_as_much() {
    let mut node = asked(&json!({ "backoffLimit": 1, "timeoutSeconds": 30 })).await;
    node.fake.image(APP).hangs();
    node.start();
    let status = node.settled(1).await;
    let calls = node.fake.calls();
    assert_eq!(calls.len(), 2);
    for call in &calls {
        assert_near((call.ended.unwrap() - call.started).as_secs_f64(), 30.0);
    }
    let tag = tag_of(&status, "reg.example/app", "1").unwrap();
    assert_eq!(tag.failure_class, Some(FailureClass::TimedOut));
    assert!(tag.message.unwrap().contains("timed out (attempt 2 of 2): the attempt took longer than 30 s"));
}

#[tokio::test(start_paused = true)]
async fn without_a_timeout_an_attempt_has_ten_minutes() {
    for limits in [json!({ "backoffLimit": 0 }), json!({ "backoffLimit": 0, "timeoutSeconds": 0 })] {
        let mut node = asked(&limits).await;
        node.fake.image(APP).hangs();
        node.start();
        node.fake.ended(1).await;
        assert_near(node.seconds(), 600.0);
        assert_eq!(node.settled(1).await.failed, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_the_attempt_that_crosses_it() {
    // kruise D21: counted from the start of the work, and the text that clients look for.
    let mut node =
        asked(&json!({ "backoffLimit": 9, "timeoutSeconds": 30, "activeDeadlineSeconds": 45 })).await;
    node.fake.image(APP).hangs();
    node.start();
    let status = node.settled(1).await;
    assert_near(node.seconds(), 45.0);
    let calls = node.fake.calls();
    assert_eq!(calls.len(), 2);
    let second = (calls[1].ended.unwrap() - calls[1].started).as_secs_f64();
    assert!((13.9..14.6).contains(&second), "{second}");
    let tag = tag_of(&status, "reg.example/app", "1").unwrap();
    assert_eq!(tag.message.as_deref(), Some("pulling exceeds the activeDeadlineSeconds"));
    assert_eq!((tag.phase, tag.failure_class), (PullPhase::Failed, Some(FailureClass::TimedOut)));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_pause_too() {
    let mut node = asked(&json!({ "backoffLimit": 99, "activeDeadlineSeconds": 20 })).await;
    node.fake.image(APP).fails(100, Code::Unknown, "boom");
    node.start();
    node.settled(1).await;
    assert_near(node.seconds(), 20.0);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_the_first_attempt_and_not_from_the_wait_for_a_place() {
    let mut node = Node::new();
    node.config.parallel = 1;
    node.fake.image("reg.example/a:1").takes(Duration::from_secs(50));
    node.fake.image(APP).takes(Duration::from_secs(15));
    let limits = json!({ "activeDeadlineSeconds": 20 });
    node.ask(json!({
        "reg.example/a": image_of(vec![tag("1")]),
        "reg.example/app": image_of(vec![policy(tag("1"), &limits)]),
    }))
    .await;
    node.start();
    assert_eq!(node.settled(2).await.succeeded, 2);
    assert_near(node.seconds(), 65.0);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_goes_on_while_the_agent_is_restarted() {
    let mut node = asked(&json!({ "backoffLimit": 9, "activeDeadlineSeconds": 60 })).await;
    node.fake.image(APP).hangs();
    node.start();
    node.until("a pull", |status| status.pulling == 1).await;
    let begun = node.tag("reg.example/app", "1").await.start_time;
    pass(40.0).await;
    node.kill().await;
    node.start();
    let status = node.settled(1).await;
    assert_near(node.seconds(), 60.0);
    assert_eq!(tag_of(&status, "reg.example/app", "1").unwrap().start_time, begun);
}

#[tokio::test(start_paused = true)]
async fn times_in_the_status_are_those_of_the_work() {
    let mut node = asked(&json!({})).await;
    node.fake.image(APP).takes(Duration::from_secs(90));
    pass(10.0).await;
    node.start();
    node.settled(1).await;
    let tag = node.tag("reg.example/app", "1").await;
    assert_eq!(tag.start_time.unwrap().0.to_string(), "2026-11-15T08:00:10Z");
    assert_eq!(tag.completion_time.unwrap().0.to_string(), "2026-11-15T08:01:40Z");
}
