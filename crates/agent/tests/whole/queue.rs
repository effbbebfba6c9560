//! Many tasks: places, fairness, withdrawals and cancellations (kruise D8, D9, T130–T132, W27, W45; reliability
//! S4, S7).

use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use prewarm_runtime::fake::Outcome;
use serde_json::{Value, json};

use crate::node::{Node, image, image_of, owned, pass, tag, tag_of, version, with};

/// A node with images of one tag each, `a`, `b` and so on, that take this long.
fn with_images(names: &[&str], seconds: u64) -> Node {
    let node = Node::new();
    for name in names {
        node.fake.image(&format!("reg.example/{name}:1")).takes(Duration::from_secs(seconds));
    }
    node
}

fn spec(names: &[&str]) -> Value {
    names.iter().map(|name| (format!("reg.example/{name}"), image(&["1"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn two_pulls_run_at_once_and_the_third_says_that_it_waits() {
    // kruise T131.
    let mut node = with_images(&["a", "b", "c"], 10);
    node.ask(spec(&["a", "b", "c"])).await;
    node.start();
    let status = node.until("two pulls", |status| status.pulling == 2).await;
    assert_eq!(status.waiting, 1);
    let waiting = tag_of(&status, "reg.example/c", "1").unwrap();
    assert_eq!((waiting.phase, waiting.start_time), (PullPhase::Waiting, None));
    assert_eq!(waiting.message.as_deref(), Some("waits for one of 2 places"));
    assert_eq!(node.settled(3).await.succeeded, 3);
    assert_eq!(node.fake.most_at_once(), 2);
    let start = node.starts("reg.example/c:1")[0];
    assert!((9.9..10.5).contains(&start), "{start}");
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_image_is_there_waits_for_no_place() {
    let mut node = with_images(&["a", "b", "c", "d"], 100);
    node.config.parallel = 1;
    node.fake.image("reg.example/d:1").present();
    node.ask(spec(&["a", "b", "c", "d"])).await;
    node.start();
    let status = node.until("the present one", |status| status.succeeded == 1).await;
    assert_eq!((status.pulling, status.waiting), (1, 2));
    assert!(node.seconds() < 1.0, "{}", node.seconds());
    let present = tag_of(&status, "reg.example/d", "1").unwrap();
    assert_eq!((present.phase, present.progress), (PullPhase::Succeeded, 100));
    assert!(present.image_id.is_some());
    // A pod brings another one, long after it was looked for.
    pass(50.0).await;
    node.fake.image("reg.example/c:1").present();
    assert_eq!(node.settled(4).await.succeeded, 4);
    assert_eq!((node.starts("reg.example/c:1"), node.starts("reg.example/d:1")), (vec![], vec![]));
    let events = node.events().await;
    assert!(events.iter().any(|event| event.note.as_ref().unwrap().contains("was on the node already")));
}

#[tokio::test(start_paused = true)]
async fn the_runtime_is_asked_for_an_image_once_before_and_once_after_its_pull() {
    let names: Vec<String> = (0..40).map(|number| format!("tiny-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut node = Node::new();
    for name in &names {
        node.fake.image(&format!("reg.example/{name}:1")).takes(Duration::from_millis(30));
    }
    node.ask(spec(&names)).await;
    node.start();
    assert_eq!(node.settled(40).await.succeeded, 40);
    assert_eq!((node.fake.requests("PullImage"), node.fake.requests("ImageStatus")), (40, 80));
    // Twenty pulls, one after the other in each place, and nothing in between.
    assert!((0.6..0.65).contains(&node.seconds()), "{}", node.seconds());
}

#[tokio::test(start_paused = true)]
async fn one_reference_is_pulled_once_however_many_tasks_want_it() {
    // reliability S4.
    let mut node = with_images(&[], 0);
    node.fake.image("docker.io/library/nginx:1").takes(Duration::from_secs(5));
    node.config.parallel = 4;
    node.ask(json!({ "nginx": image(&["1"]), "docker.io/library/nginx": image(&["1"]), "library/nginx": image(&["1"]) }))
        .await;
    node.start();
    assert_eq!(node.settled(3).await.succeeded, 3);
    assert_eq!(node.fake.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_small_job_does_not_wait_behind_a_large_one() {
    let names: Vec<String> = (0..6).map(|number| format!("large-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["small"]).collect();
    let mut node = with_images(&names, 10);
    node.config.parallel = 1;
    let entry = |name: &&str| {
        let job = if *name == "small" { "small" } else { "large" };
        let created = if *name == "small" { "2026-11-15T07:59:00Z" } else { "2026-11-15T07:00:00Z" };
        let entry = with(owned(tag("1"), job), &json!({ "createdAt": created }));
        (format!("reg.example/{name}"), image_of(vec![entry]))
    };
    node.ask(names.iter().map(entry).collect()).await;
    node.start();
    node.settled(7).await;
    let order: Vec<String> = node.fake.calls().into_iter().map(|call| call.reference).collect();
    assert_eq!(order[1], "reg.example/small:1", "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_that_is_withdrawn_never_starts() {
    // kruise T130, reliability S7.
    let mut node = with_images(&["a", "b", "c"], 10);
    node.ask(spec(&["a", "b", "c"])).await;
    node.start();
    node.until("two pulls", |status| status.pulling == 2).await;
    node.change(json!({ "reg.example/c": null })).await;
    assert_eq!(node.settled(2).await.succeeded, 2);
    pass(60.0).await;
    assert_eq!(node.starts("reg.example/c:1"), [0.0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_running_task_that_is_withdrawn_is_cancelled_and_no_failure_is_recorded() {
    // kruise D9, W27.
    let mut node = with_images(&["a", "b", "c"], 100);
    node.config.parallel = 1;
    node.ask(spec(&["a", "b"])).await;
    node.start();
    node.fake.started("reg.example/a:1").await;
    pass(5.0).await;
    node.change(json!({ "reg.example/a": null })).await;
    node.fake.started("reg.example/b:1").await;
    let cancelled = &node.fake.calls()[0];
    assert_eq!(cancelled.outcome, Outcome::Cancelled);
    let ran_for = (cancelled.ended.unwrap() - cancelled.started).as_secs_f64();
    assert!((5.0..5.2).contains(&ran_for), "{ran_for}");
    let status = node.settled(1).await;
    assert_eq!((status.succeeded, status.failed), (1, 0));
    assert_eq!(tag_of(&status, "reg.example/a", "1"), None);
    let notes: Vec<_> = node.events().await.into_iter().filter_map(|event| event.note).collect();
    assert!(notes.iter().all(|note| !note.contains("reg.example/a")), "{notes:?}");
    let metrics = node.metrics.encode();
    assert!(metrics.contains("pulls_total{result=\"cancelled\",class=\"\"} 1"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_new_version_of_a_running_task_cancels_it_and_starts_at_once() {
    let mut node = with_images(&["a"], 100);
    node.ask(spec(&["a"])).await;
    node.start();
    node.fake.started("reg.example/a:1").await;
    pass(20.0).await;
    node.change(json!({ "reg.example/a": image_of(vec![version(tag("1"), 1)]) })).await;
    let status = node.settled(1).await;
    assert_eq!((status.succeeded, status.failed), (1, 0));
    assert_eq!(tag_of(&status, "reg.example/a", "1").unwrap().version, 1);
    let outcomes: Vec<_> = node.fake.calls().into_iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Succeeded]);
    let starts = node.starts("reg.example/a:1");
    assert!((20.0..20.5).contains(&(starts[1] - starts[0])), "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_between_attempts_is_interrupted_by_a_withdrawal() {
    // kruise D9: in the daemon of old, a sleep could not be interrupted.
    let mut node = with_images(&["a"], 0);
    node.fake.image("reg.example/a:1").fails(3, prewarm_runtime::Code::Unknown, "connection refused");
    node.ask(spec(&["a"])).await;
    node.start();
    node.until("a failure", |status| {
        tag_of(status, "reg.example/a", "1").is_some_and(|tag| tag.failed_attempts > 0)
    })
    .await;
    node.change(json!({ "reg.example/a": null })).await;
    let status = node.until("no tasks", |status| status.desired == 0).await;
    assert_eq!(status.image_statuses, None);
    let calls = node.fake.calls().len();
    pass(120.0).await;
    assert_eq!(node.fake.calls().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn an_added_task_starts_beside_the_running_ones() {
    // kruise T130.
    let mut node = with_images(&["a", "b"], 10);
    node.ask(spec(&["a"])).await;
    node.start();
    node.fake.started("reg.example/a:1").await;
    pass(3.0).await;
    node.change(spec(&["b"])).await;
    node.settled(2).await;
    let outcomes: Vec<_> = node.fake.calls().into_iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Outcome::Succeeded; 2]);
    let (a, b) = (node.starts("reg.example/a:1")[0], node.starts("reg.example/b:1")[0]);
    assert!((3.0..3.2).contains(&(b - a)), "{a} {b}");
}
