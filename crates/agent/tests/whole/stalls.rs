//! Registries that are slow or hang: they keep nobody else waiting, and what brings nothing is cut off.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_runtime::fake::Fake;
use serde_json::{Value, json};

use crate::node::{Node, image_of, owned, pass, policy, tag, tag_of};

const DAY: Duration = Duration::from_hours(24);

/// An entry with all the time there is.
fn patient() -> Value {
    policy(tag("1"), &json!({ "timeoutSeconds": 2_147_483_647, "backoffLimit": 0 }))
}

/// The entry of a job in this namespace.
fn of(namespace: &str, job: &str) -> Value {
    let mut entry = owned(patient(), job);
    entry["ownerReferences"][0]["namespace"] = json!(namespace);
    entry
}

/// Asks for one more.
async fn more(node: &Node, name: &str, entry: Value) {
    node.change(json!({ name: image_of(vec![entry]) })).await;
}

#[tokio::test(start_paused = true)]
async fn two_images_that_hang_leave_a_place_to_a_third_of_another_registry() {
    let mut node = Node::on(Fake::crio());
    node.ask(json!({})).await;
    for name in ["slow.example/a", "slow.example/b"] {
        node.fake.image(&format!("{name}:1")).hangs();
        more(&node, name, patient()).await;
    }
    node.fake.image("good.example/c:1");
    node.start();
    node.until("two pulls", |status| status.pulling == 2).await;
    pass(5.0).await;
    more(&node, "good.example/c", patient()).await;
    let status = node.until("the third", |status| status.succeeded == 1).await;
    assert_eq!(tag_of(&status, "good.example/c", "1").unwrap().phase, PullPhase::Succeeded);
    assert!((59.0..62.0).contains(&node.seconds()), "{}", node.seconds());
}

#[tokio::test(start_paused = true)]
async fn one_tenants_jobs_leave_a_place_to_another_tenant_of_the_same_registry() {
    let mut node = Node::on(Fake::crio());
    node.ask(json!({})).await;
    for name in ["reg.example/a", "reg.example/b", "reg.example/c"] {
        node.fake.image(&format!("{name}:1")).hangs();
        more(&node, name, of("greedy", name)).await;
    }
    node.fake.image("reg.example/mine:1");
    node.start();
    node.until("two pulls", |status| status.pulling == 2).await;
    pass(300.0).await;
    assert_eq!(node.fake.calls().len(), 2, "there is no place for more of the same");
    more(&node, "reg.example/mine", of("modest", "mine")).await;
    node.until("the other tenant's", |status| status.succeeded == 1).await;
    // Its report waits a moment for those of others.
    assert!(node.seconds() < 303.0, "{}", node.seconds());
}

async fn pulled_alone(fake: Fake) -> (Node, prewarm_api::kruise::ImageTagStatus) {
    let mut node = Node::on(fake);
    node.ask(json!({ "reg.example/app": image_of(vec![patient()]) })).await;
    node.start();
    let status = node.settled(1).await;
    (node, tag_of(&status, "reg.example/app", "1").unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_brings_hardly_anything_is_cut_off_and_says_so() {
    let fake = Fake::new();
    fake.image("reg.example/app:1").takes(DAY).size(1_000_000);
    let (node, tag) = pulled_alone(fake).await;
    assert!((600.0..605.0).contains(&node.seconds()), "{}", node.seconds());
    assert_eq!(tag.failure_class, Some(FailureClass::TimedOut));
    let message = tag.message.unwrap();
    assert!(
        message.ends_with(
            "timed out (attempt 1 of 1): stopped because less than 640 KiB arrived within 10 minutes; check how fast \
             reg.example is from this node"
        ),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_does_not_even_send_a_manifest_is_cut_off_too() {
    let fake = Fake::new();
    fake.image("reg.example/app:1").hangs();
    let (node, tag) = pulled_alone(fake).await;
    assert!((600.0..605.0).contains(&node.seconds()), "{}", node.seconds());
    assert_eq!(tag.failure_class, Some(FailureClass::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn unpacking_may_take_as_long_as_it_takes() {
    let fake = Fake::new();
    fake.image("reg.example/app:1").unpacks_for(Duration::from_hours(1));
    let (_, tag) = pulled_alone(fake).await;
    assert_eq!((tag.phase, tag.failed_attempts), (PullPhase::Succeeded, 0));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_tells_no_progress_is_bound_by_the_timeout_alone() {
    let fake = Fake::crio();
    fake.image("reg.example/app:1").takes(Duration::from_hours(1)).size(1000);
    let (_, tag) = pulled_alone(fake).await;
    assert_eq!((tag.phase, tag.failed_attempts), (PullPhase::Succeeded, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stored_timeout_of_years_counts_as_a_day() {
    let fake = Fake::crio();
    fake.image("reg.example/app:1").hangs();
    let mut node = Node::on(fake);
    node.ask(json!({ "reg.example/app": image_of(vec![patient()]) })).await;
    node.start();
    pass(DAY.as_secs_f64() - 5.0).await;
    assert_eq!(node.status().await.pulling, 1);
    pass(10.0).await;
    let status = node.status().await;
    let tag = tag_of(&status, "reg.example/app", "1").unwrap();
    assert_eq!((tag.phase, tag.failure_class), (PullPhase::Failed, Some(FailureClass::TimedOut)));
}
