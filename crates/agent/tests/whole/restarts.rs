//! The agent is killed or asked to stop, and another one goes on (kruise D6; reliability S6, S11).

use std::collections::BTreeMap;
use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use prewarm_runtime::Code;
use prewarm_runtime::fake::Outcome;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::node::{Node, always, image, image_of, pass, policy, tag, tag_of};

const NAME: &str = "reg.example/app";
const APP: &str = "reg.example/app:1";
const TAGS: [&str; 4] = ["1", "2", "3", "4"];

#[tokio::test(start_paused = true)]
async fn killed_at_any_moment_an_agent_ends_what_it_began_and_repeats_nothing_that_was_reported() {
    for seed in prewarm_seed::several(12) {
        kill_at_random(seed).await;
    }
}

async fn kill_at_random(seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut node = Node::new();
    for tag in TAGS {
        let takes = Duration::from_millis(random.random_range(0..8000));
        let failures = random.random_range(0..2);
        let image = node.fake.image(&format!("{NAME}:{tag}")).takes(takes);
        image.fails(failures, Code::Unknown, "connection refused");
    }
    let limits = json!({ "backoffLimit": 9 });
    let entries = TAGS.iter().map(|name| policy(always(tag(name)), &limits)).collect();
    node.ask(json!({ NAME: image_of(entries) })).await;
    let mut reported = BTreeMap::new();
    for _ in 0..random.random_range(1..6) {
        node.start();
        pass(random.random_range(0.0..6.0)).await;
        node.kill().await;
        check_against(&mut reported, &node, seed).await;
    }
    node.start();
    let status = node.settled(4).await;
    assert_eq!(status.succeeded, 4, "seed {seed}: {status:#?}");
    check_against(&mut reported, &node, seed).await;
    let events = node.events().await;
    assert!(events.iter().all(|event| event.type_.as_deref() == Some("Normal")), "seed {seed}: {events:?}");
}

/// What was reported stays: an end is never taken back nor pulled again, and failed attempts are not forgotten.
async fn check_against(reported: &mut BTreeMap<&'static str, (bool, i32, usize)>, node: &Node, seed: u64) {
    let status = node.status().await;
    for name in TAGS {
        let Some(tag) = tag_of(&status, NAME, name) else { continue };
        let pulls = node.starts(&format!("{NAME}:{name}")).len();
        let is_done = tag.phase == PullPhase::Succeeded;
        let before = reported.insert(name, (is_done, tag.failed_attempts, pulls));
        let Some((was_done, failed_attempts, pulls_before)) = before else { continue };
        assert!(tag.failed_attempts >= failed_attempts, "seed {seed}: {name} forgot failures");
        if was_done {
            assert!(is_done && pulls == pulls_before, "seed {seed}: {name} was pulled again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_across_restarts() {
    // reliability S11.
    let mut node = Node::new();
    node.fake.image(APP).fails(100, Code::Unknown, "connection refused");
    let entry = policy(tag("1"), &json!({ "backoffLimit": 5 }));
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    for _ in 0..4 {
        node.start();
        pass(3.0).await;
        node.kill().await;
    }
    node.start();
    let status = node.settled(1).await;
    assert_eq!(tag_of(&status, NAME, "1").unwrap().failed_attempts, 6);
    let attempts = node.fake.calls().len();
    assert!(
        (6..=6 + 4).contains(&attempts),
        "a killed agent may lose count of the attempt it made last: {attempts}"
    );
}

#[tokio::test(start_paused = true)]
async fn finished_tasks_are_not_pulled_again_by_the_next_agent() {
    let mut node = Node::new();
    node.fake.image(APP);
    let absent = policy(always(tag("absent")), &json!({ "backoffLimit": 0 }));
    node.ask(json!({ NAME: image_of(vec![always(tag("1")), absent]) })).await;
    node.start();
    let before = node.settled(2).await;
    let writes = node.status_writes();
    for _ in 0..3 {
        node.stop().await;
        node.start();
        pass(100.0).await;
    }
    assert_eq!(node.fake.calls().len(), 2);
    assert_eq!((node.status().await, node.status_writes()), (before, writes));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_agent_lets_pulls_end_and_begins_no_others() {
    let mut node = Node::new();
    for name in ["a", "b", "c"] {
        node.fake.image(&format!("reg.example/{name}:1")).takes(Duration::from_secs(8));
    }
    let spec = ["a", "b", "c"].map(|name| (format!("reg.example/{name}"), image(&["1"])));
    node.ask(spec.into_iter().collect()).await;
    node.start();
    node.until("two pulls", |status| status.pulling == 2).await;
    pass(1.0).await;
    node.stop().await;
    assert!((7.9..8.1).contains(&node.seconds()), "it did not wait longer than for them: {}", node.seconds());
    let status = node.status().await;
    assert_eq!((status.succeeded, status.waiting), (2, 1));
    assert_eq!(node.fake.calls().len(), 2);
    let waiting = tag_of(&status, "reg.example/c", "1").unwrap();
    assert_eq!(waiting.message.as_deref(), Some("waits for the agent, which is being restarted"));
    node.start();
    assert_eq!(node.settled(3).await.succeeded, 3);
    assert_eq!(node.fake.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_outlasts_the_drain_is_cut_off_and_goes_on_with_the_next_agent() {
    let mut node = Node::new();
    node.fake.image(APP).takes(Duration::from_secs(100));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.fake.started(APP).await;
    pass(20.0).await;
    node.stop().await;
    assert!((30.0..30.5).contains(&node.seconds()), "{}", node.seconds());
    node.fake.ended(1).await;
    assert_eq!(node.fake.calls()[0].outcome, Outcome::Cancelled);
    let cut_off = node.tag(NAME, "1").await;
    assert_eq!((cut_off.phase, cut_off.failed_attempts), (PullPhase::Pulling, 0));
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    let done = node.tag(NAME, "1").await;
    assert_eq!((done.failed_attempts, done.start_time), (0, cut_off.start_time));
    assert!(node.events().await.iter().all(|event| event.type_.as_deref() == Some("Normal")));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_agent_does_not_wait_for_a_server_that_is_away() {
    use prewarm_embedded::faults::{FaultPlan, Faults, Rates};
    let mut node = Node::new();
    let away = Rates { refused: 1.0, ..Rates::default() };
    let plan = FaultPlan::always(away).quiet(Duration::ZERO..Duration::from_secs(5));
    node.faults = Faults::new(plan, 0);
    node.fake.image(APP).takes(Duration::from_secs(10));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    pass(20.0).await;
    node.stop().await;
    assert!(node.seconds() < 30.0, "{}", node.seconds());
    node.faults = Faults::none();
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(node.fake.calls().len(), 1, "it is on the node, and that is all that was asked");
}
