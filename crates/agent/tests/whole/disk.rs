//! The disk guard (kruise W45, reliability S12): no pull starts without room, a running one stops when it is gone,
//! and how much is free rides along with reports.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prewarm_agent::config::RuntimeChoice;
use prewarm_agent::disk::{Filesystem, Room};
use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_plan::agent::disk::MinFree;
use prewarm_runtime::fake::{Call, Outcome};
use serde_json::json;

use crate::node::{Node, image, pass};

const APP: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

#[tokio::test(start_paused = true)]
async fn without_room_nothing_is_pulled_and_the_status_says_why() {
    let mut node = Node::new();
    node.fake.keeps_images_in(Path::new("/dev/shm"));
    node.fake.image(APP);
    node.config.min_free = MinFree::Bytes(u64::MAX);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    pass(3600.0).await;
    let tag = node.tag(NAME, "1").await;
    let message = tag.message.unwrap();
    assert_eq!((tag.phase, tag.start_time), (PullPhase::Waiting, None));
    assert!(message.starts_with("waits for room: ") && message.contains(" free on /dev/shm"), "{message}");
    assert!(message.ends_with("remove unused images or lower --min-free"), "{message}");
    assert_eq!((node.fake.requests("PullImage"), node.fake.requests("ImageStatus")), (0, 1));
    assert!(node.status_writes() <= 2, "{} writes in an hour of waiting", node.status_writes());
    node.stop().await;
    node.config.min_free = MinFree::Bytes(0);
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_on_a_full_disk_already_needs_no_room() {
    let mut node = Node::new();
    node.fake.keeps_images_in(Path::new("/dev/shm"));
    node.fake.image(APP).present();
    node.config.min_free = MinFree::Bytes(u64::MAX);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!(node.seconds() < 0.1, "{}", node.seconds());
}

#[tokio::test(start_paused = true)]
async fn a_running_pull_stops_when_room_runs_out_and_is_not_tried_again() {
    let mut node = Node::new();
    node.fake.keeps_images_in(Path::new("/dev/shm"));
    node.fake.image(APP).takes(Duration::from_secs(100));
    let free = Filesystem::nearest(Path::new("/dev/shm")).read().unwrap().free;
    node.config.min_free = MinFree::Bytes(free - 8_000_000);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.fake.started(APP).await;
    pass(10.0).await;
    let mut ballast = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    ballast.write_all(&vec![1; 12_000_000]).unwrap();
    let status = node.settled(1).await;
    assert!((10.0..11.0).contains(&node.seconds()), "{}", node.seconds());
    assert_eq!((status.failed, node.fake.calls().len()), (1, 1));
    let tag = node.tag(NAME, "1").await;
    assert_eq!(tag.failure_class, Some(FailureClass::NoSpace));
    let message = tag.message.unwrap();
    assert!(message.contains("no space (attempt 1 of 4): stopped for lack of room: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_fills_the_disk_fails_and_its_neighbours_wait_for_room_without_losing_an_attempt() {
    const BOMB: &str = "reg.example/bomb:1";
    let mut node = Node::new();
    node.fake.image(BOMB).takes(Duration::from_secs(20));
    node.fake.image(APP).takes(Duration::from_secs(20));
    // It needs all the room that there is within five seconds, and gives it back when it is cancelled.
    let fake = node.fake.clone();
    let disk = Arc::new(move || {
        let is_large =
            |call: &Call| call.outcome == Outcome::Running && call.started.elapsed().as_secs() >= 5;
        let free = if fake.calls_of(BOMB).iter().any(is_large) { 100 } else { 500 };
        Room { free, capacity: 1000 }
    });
    node.config.runtime = RuntimeChoice::Simulated(node.fake.endpoint(), disk);
    node.config.min_free = MinFree::Share(2000);
    let names = ["app", "bomb"].map(|name| (format!("reg.example/{name}"), image(&["1"])));
    node.ask(names.into_iter().collect()).await;
    node.start();
    let status = node.settled(2).await;
    assert_eq!((status.succeeded, status.failed), (1, 1), "{status:#?}");
    let (app, bomb) = (node.tag(NAME, "1").await, node.tag("reg.example/bomb", "1").await);
    assert_eq!((app.phase, app.failed_attempts), (PullPhase::Succeeded, 0));
    assert_eq!((bomb.failure_class, bomb.failed_attempts), (Some(FailureClass::NoSpace), 1));
    assert_eq!((node.fake.calls_of(APP).len(), node.fake.calls_of(BOMB).len()), (2, 2));
    let metrics = node.metrics.encode();
    assert!(metrics.contains("pulls_total{result=\"cancelled\",class=\"\"} 0"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_does_not_say_where_its_images_lie_is_asked_again() {
    let mut node = Node::new();
    node.fake.keeps_images_in(Path::new(""));
    node.fake.image(APP);
    node.fake.image("reg.example/next:1");
    node.config.min_free = MinFree::Bytes(u64::MAX);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1, "it does not keep images away");
    node.fake.keeps_images_in(Path::new("/dev/shm"));
    pass(11.0).await;
    node.change(json!({ "reg.example/next": image(&["1"]) })).await;
    pass(60.0).await;
    let message = node.tag("reg.example/next", "1").await.message.unwrap();
    assert!(message.starts_with("waits for room: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn free_room_is_part_of_reports_and_never_causes_one() {
    let mut node = Node::new();
    node.fake.keeps_images_in(Path::new("/dev/shm"));
    node.fake.image(APP);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    let status = node.settled(1).await;
    let capacity = Filesystem::nearest(Path::new("/dev/shm")).read().unwrap().capacity;
    let filesystem = status.image_filesystem.unwrap();
    assert_eq!(u64::try_from(filesystem.capacity_bytes).unwrap(), capacity);
    pass(5.0).await;
    let writes = node.status_writes();
    let mut ballast = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    ballast.write_all(&vec![1; 1_000_000]).unwrap();
    pass(600.0).await;
    assert_eq!(node.status_writes(), writes);
    assert!(node.metrics.encode().contains("free"), "and the metrics have it");
}

#[tokio::test(start_paused = true)]
async fn a_simulated_disk_is_watched_in_place_of_the_filesystem() {
    let mut node = Node::new();
    node.fake.keeps_images_in(Path::new("/dev/shm"));
    node.fake.image(APP);
    let disk = Arc::new(|| Room { free: 100, capacity: 1000 });
    node.config.runtime = RuntimeChoice::Simulated(node.fake.endpoint(), disk);
    node.config.min_free = MinFree::Share(2000);
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    pass(60.0).await;
    let message = node.tag(NAME, "1").await.message.unwrap();
    assert!(message.starts_with("waits for room: 10 % free on /dev/shm, starts at 21 %"), "{message}");
    let filesystem = node.status().await.image_filesystem.unwrap();
    assert_eq!((filesystem.free_bytes, filesystem.capacity_bytes), (100, 1000));
}
