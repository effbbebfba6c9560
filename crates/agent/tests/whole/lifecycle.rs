//! The NodeImage comes, ends and is made anew (kruise D2, D5; reliability S7, S8).

use std::time::Duration;

use prewarm_embedded::faults::{Action, Faults, Filter, ScriptedFault, Verb};
use prewarm_runtime::fake::Outcome;
use serde_json::json;

use crate::node::{Node, always, image, image_of, pass, tag};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

fn slow() -> Node {
    let node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(50));
    node
}

#[tokio::test(start_paused = true)]
async fn without_a_node_image_the_agent_is_ready_and_waits() {
    let mut node = slow();
    node.start();
    pass(600.0).await;
    assert!(node.health.checks().failing().is_empty());
    assert_eq!(node.faults.writes(), 0);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!((650.0..651.0).contains(&node.seconds()));
}

#[tokio::test(start_paused = true)]
async fn all_work_ends_with_its_node_image_and_no_failure_is_recorded() {
    let mut node = slow();
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.fake.started(APP).await;
    pass(5.0).await;
    node.delete().await;
    node.fake.ended(1).await;
    assert_eq!(node.fake.calls()[0].outcome, Outcome::Cancelled);
    assert!((5.0..5.5).contains(&node.seconds()), "{}", node.seconds());
    pass(600.0).await;
    assert_eq!(node.fake.calls().len(), 1);
    assert!(node.events().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_image_that_was_made_anew_under_its_name_starts_from_the_beginning() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ NAME: image_of(vec![always(tag("1"))]) })).await;
    node.start();
    let first = node.settled(1).await;
    pass(100.0).await;
    node.delete().await;
    node.ask(json!({ NAME: image_of(vec![always(tag("1"))]) })).await;
    let second = node.settled(1).await;
    assert_eq!(node.fake.calls().len(), 2);
    assert_ne!(first.first_sync_status, second.first_sync_status);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_for_the_old_object_keeps_nothing_from_the_new_one() {
    // reliability S8: the first report is under way for five seconds, and meanwhile the NodeImage is made anew.
    let mut node = slow();
    let late = ScriptedFault::at(1, Action::Latency(Duration::from_secs(5)));
    node.faults = Faults::scripted(vec![late.of(Filter::verb(Verb::Patch).of("nodeimages/status"))]);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.fake.started(APP).await;
    pass(2.0).await;
    node.delete().await;
    node.ask(json!({ NAME: image(&["1"]) })).await;
    let status = node.until("a report", |status| status.pulling == 1).await;
    assert_eq!(status.desired, 1);
    assert!(node.seconds() < 8.0, "{}", node.seconds());
    assert_eq!(node.settled(1).await.succeeded, 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_image_on_its_way_out_gets_nothing_new() {
    let mut node = slow();
    node.create(json!({
        "metadata": { "finalizers": ["example.com/hold"] },
        "spec": { "images": { NAME: image(&["1"]) } },
    }))
    .await;
    node.start();
    node.fake.started(APP).await;
    node.delete().await;
    node.fake.image("reg.example/late:1");
    node.change(json!({ "reg.example/late": image(&["1"]) })).await;
    assert_eq!(node.settled(1).await.succeeded, 1, "what runs goes on to its end");
    pass(600.0).await;
    assert!(node.starts("reg.example/late:1").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_finds_its_node_image_on_its_way_out_leaves_the_status_alone() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.create(json!({
        "metadata": { "finalizers": ["example.com/hold"] },
        "spec": { "images": { NAME: image(&["1"]) } },
    }))
    .await;
    node.start();
    let before = node.settled(1).await;
    node.stop().await;
    node.delete().await;
    node.start();
    pass(600.0).await;
    assert_eq!(node.status().await, before);
    assert_eq!(node.fake.calls().len(), 1);
}
