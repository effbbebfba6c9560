//! Images that were warmed and then removed from the node (kruise W13).

use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use serde_json::json;

use crate::node::{Node, image, image_of, owned, pass, tag, version};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

#[tokio::test(start_paused = true)]
async fn an_entry_by_hand_is_pulled_again_at_once_when_containerd_reports_the_removal() {
    let mut node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(3));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.settled(1).await;
    pass(10.0).await;
    assert!(node.fake.remove(APP));
    node.fake.started(APP).await;
    let status = node.until("the second pull", |status| status.pulling == 1).await;
    assert_eq!(status.succeeded, 0);
    assert!(node.tag(NAME, "1").await.lost_at.is_some());
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!(node.seconds() < 17.0, "{}", node.seconds());
    assert_eq!(node.tag(NAME, "1").await.lost_at, None);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_the_node_keeps_removing_is_given_longer_and_longer_rests() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.settled(1).await;
    pass(1.0).await;
    node.fake.remove(APP);
    // The first loss is made good in the same moment, so that nobody can wait for it.
    pass(1.0).await;
    assert_eq!(node.fake.calls().len(), 2);
    for _ in 0..3 {
        node.settled(1).await;
        pass(1.0).await;
        node.fake.remove(APP);
        node.until("the loss", |status| status.succeeded == 0).await;
    }
    let waiting = node.tag(NAME, "1").await;
    assert_eq!(waiting.phase, PullPhase::Waiting);
    assert_eq!(
        waiting.message.as_deref(),
        Some("waits 20 minutes because this node removed the image 4 times: it lacks room")
    );
    node.settled(1).await;
    let calls = node.fake.calls();
    let rests: Vec<u64> =
        calls.windows(2).map(|two| (two[1].started - two[0].started).as_secs() / 60).collect();
    assert_eq!(rests, [0, 5, 10, 20], "minutes between pulls");
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_a_jobs_image_is_reported_and_nothing_else_changes() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ NAME: image_of(vec![version(owned(tag("1"), "job"), 4)]) })).await;
    node.start();
    node.settled(1).await;
    let before = node.tag(NAME, "1").await;
    pass(30.0).await;
    node.fake.remove(APP);
    let lost = |status: &prewarm_api::kruise::NodeImageStatus| {
        crate::node::tag_of(status, NAME, "1").is_some_and(|tag| tag.lost_at.is_some())
    };
    node.until("the loss", lost).await;
    let after = node.tag(NAME, "1").await;
    assert_eq!(after.lost_at.as_ref().unwrap().0.to_string(), "2026-11-15T08:00:30Z");
    assert_eq!(prewarm_api::kruise::ImageTagStatus { lost_at: None, ..after }, before);
    pass(3600.0).await;
    assert_eq!(node.fake.calls().len(), 1, "the controller decides");
    node.fake.image(APP).present();
    node.until("the image again", |status| !lost(status)).await;
    assert_eq!(node.tag(NAME, "1").await, before);
}

#[tokio::test(start_paused = true)]
async fn a_removal_while_no_agent_ran_is_found_by_the_next_one() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ NAME: image_of(vec![owned(tag("1"), "job")]) })).await;
    node.start();
    node.settled(1).await;
    node.kill().await;
    node.fake.remove(APP);
    node.start();
    let lost = node
        .until("the loss", |status| {
            crate::node::tag_of(status, NAME, "1").is_some_and(|tag| tag.lost_at.is_some())
        })
        .await;
    assert_eq!((lost.succeeded, node.fake.calls().len()), (1, 1));
    assert!(node.seconds() < 65.0);
}

/// ofen W17: removals are listened for again after containerd was away, and not only looked for once a minute.
#[tokio::test(start_paused = true)]
async fn a_removal_after_a_restart_of_containerd_is_noticed_at_once() {
    let mut node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(3));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.settled(1).await;
    for _ in 0..2 {
        node.fake.stop();
        pass(5.0).await;
        node.fake.start();
        pass(65.0).await;
    }
    let before = node.seconds();
    assert!(node.fake.remove(APP));
    node.fake.started(APP).await;
    assert!(node.seconds() - before < 2.0, "{}", node.seconds() - before);
}
