//! The runtime comes, goes, hangs and comes back; none of that is anybody's failure (kruise D41 turned round,
//! kruise T136, T137).

use std::time::Duration;

use prewarm_agent::config::RuntimeChoice;
use prewarm_api::kruise::PullPhase;
use prewarm_runtime::fake::{Fake, Outcome};
use serde_json::json;

use crate::node::{Node, image, pass};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

async fn asked(takes: u64) -> Node {
    let node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(takes)).layers(&[1000, 3000]);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node
}

async fn assert_no_failure_was_told(node: &Node) {
    let events = node.events().await;
    assert!(events.iter().all(|event| event.type_.as_deref() == Some("Normal")), "{events:?}");
    assert_eq!(node.tag(NAME, "1").await.failed_attempts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_is_not_there_yet_is_waited_for() {
    let mut node = asked(1).await;
    node.fake.stop();
    node.start();
    let status = node.until("a report", |status| status.waiting == 1).await;
    assert_eq!(status.desired, 1);
    pass(3600.0).await;
    let tag = node.tag(NAME, "1").await;
    assert_eq!(tag.message.as_deref(), Some("waits for the container runtime to answer"));
    assert!(node.status_writes() <= 2, "waiting is reported once");
    assert_eq!(failing(&node), ["runtime"]);
    node.fake.start();
    let came = node.seconds();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!(node.seconds() - came < 12.0);
    assert!(failing(&node).is_empty());
    assert_no_failure_was_told(&node).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_restarts_in_the_middle_costs_no_attempt() {
    let mut node = asked(60).await;
    node.start();
    node.fake.started(APP).await;
    pass(20.0).await;
    node.fake.stop();
    pass(45.0).await;
    let tag = node.tag(NAME, "1").await;
    assert_eq!((tag.phase, tag.failed_attempts), (PullPhase::Pulling, 0));
    node.fake.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    let outcomes: Vec<_> = node.fake.calls().into_iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Succeeded]);
    assert!(node.metrics.encode().contains("reconnects_total{target=\"runtime\"} 1"));
    assert_no_failure_was_told(&node).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_answers_nothing_is_waited_for() {
    let mut node = asked(5).await;
    node.fake.freeze();
    node.start();
    pass(300.0).await;
    assert_eq!(node.status().await.waiting, 1);
    node.fake.thaw();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_no_failure_was_told(&node).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_falls_silent_between_tasks_is_noticed_and_waited_for() {
    let mut node = asked(1).await;
    node.start();
    node.settled(1).await;
    node.fake.freeze();
    node.fake.image("reg.example/b:1");
    node.change(json!({ "reg.example/b": image(&["1"]) })).await;
    pass(120.0).await;
    let tag = node.tag("reg.example/b", "1").await;
    assert!(matches!(tag.phase, PullPhase::Waiting | PullPhase::Pulling) && tag.failed_attempts == 0);
    node.fake.thaw();
    assert_eq!(node.settled(2).await.succeeded, 2);
    assert_no_failure_was_told(&node).await;
}

#[tokio::test(start_paused = true)]
async fn containerd_reports_how_far_a_pull_is_and_the_last_percent_is_for_unpacking() {
    let node = {
        let mut node = asked(40).await;
        node.fake.image(APP).unpacks_for(Duration::from_secs(20));
        node.start();
        node
    };
    node.fake.started(APP).await;
    pass(21.0).await;
    let half = node.tag(NAME, "1").await;
    assert_eq!(half.message, None);
    assert!((30..=60).contains(&half.progress), "{half:?}");
    assert_eq!(half.bytes_total, Some(4100));
    pass(35.0).await;
    let unpacking = node.tag(NAME, "1").await;
    assert_eq!((unpacking.phase, unpacking.progress), (PullPhase::Pulling, 99));
    assert_eq!(unpacking.bytes_done, Some(4100));
    assert_eq!(unpacking.message.as_deref(), Some("unpacking: all of it has arrived"));
    node.settled(1).await;
    let done = node.tag(NAME, "1").await;
    assert_eq!(done.message, None);
    assert_eq!((done.progress, done.bytes_done, done.bytes_total), (100, Some(4100), Some(4100)));
    // Progress alone is reported at most every five seconds.
    assert!(node.status_writes() <= 3 + 60 / 5, "{}", node.status_writes());
}

#[tokio::test]
async fn a_runtime_is_found_by_its_socket_when_it_appears() {
    // kruise T136, in real time because the socket is real.
    let directory = tempfile::tempdir().unwrap();
    let fake = Fake::new();
    fake.image(APP);
    let mut node = Node::on(fake);
    node.config.runtime = RuntimeChoice::In(directory.path().to_owned());
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.until("the wait", |status| status.waiting == 1).await;
    std::fs::create_dir(directory.path().join("containerd")).unwrap();
    node.fake.listen(&directory.path().join("containerd/containerd.sock")).unwrap();
    assert_eq!(node.settled(1).await.succeeded, 1);
}

fn failing(node: &Node) -> Vec<&'static str> {
    node.health.checks().failing().into_iter().map(|(name, _)| name).collect()
}
