//! Links and the uplink, on a clock that advances only while every task waits. No test has a timer of its own, so the
//! clock never overtakes bytes on their way through the kernel.

use std::time::Duration;

use prewarm_demo::{Flow, Pace, Registry, Store};
use prewarm_image::{Artifact, Image, Layer};
use tokio::time::Instant;

use crate::site::{LARGE_DISK, Site, node, pull};

const LAYER: usize = 500_000;

async fn timed(pull: impl Future<Output = Result<(), prewarm_runtime::CallError>>) -> f64 {
    let start = Instant::now();
    pull.await.unwrap();
    start.elapsed().as_secs_f64()
}

fn seconds(artifact: &Artifact, rate: u64) -> f64 {
    Duration::from_millis(artifact.size() * 1000 / rate).as_secs_f64()
}

fn is_about(actual: f64, expected: f64) -> bool {
    (expected * 0.95..expected * 1.15).contains(&actual)
}

fn image(seed: &str) -> Artifact {
    Image::new(seed).layers(4, Layer::of(LAYER)).build()
}

#[tokio::test(start_paused = true)]
async fn a_pull_takes_as_long_as_the_nodes_link_needs() {
    let site = Site::with(Flow::Free, Flow::Limited(400_000), LARGE_DISK);
    let artifact = site.offer("shop/web", "v1", 4, LAYER);
    let took = timed(site.pull("shop/web:v1")).await;
    assert!(is_about(took, seconds(&artifact, 400_000)), "{took}");
}

#[tokio::test(start_paused = true)]
async fn two_pulls_of_one_node_share_its_link() {
    let site = Site::with(Flow::Free, Flow::Limited(400_000), LARGE_DISK);
    let (one, other) = (image("one"), image("other"));
    site.registry.push("shop/one", "v1", one.clone());
    site.registry.push("shop/other", "v1", other.clone());
    let (took_one, took_other) =
        tokio::join!(timed(site.pull("shop/one:v1")), timed(site.pull("shop/other:v1")));
    let both = seconds(&one, 400_000) + seconds(&other, 400_000);
    let (first, last) = (took_one.min(took_other), took_one.max(took_other));
    assert!(is_about(last, both), "{took_one} {took_other} {both}");
    // Alone it would take half of that. How evenly they share depends on the sockets.
    assert!(first > both * 0.75, "{took_one} {took_other} {both}");
}

#[tokio::test(start_paused = true)]
async fn all_nodes_share_the_uplink_and_each_gets_its_part() {
    let registry = Registry::start(Pace::new(Flow::Limited(1_000_000))).unwrap();
    let artifact = image("web");
    registry.push("shop/web", "v1", artifact.clone());
    let nodes: Vec<_> = (0..4).map(|_| node(&registry, Flow::Free, LARGE_DISK)).collect();
    let pulls = nodes.iter().map(|(store, _)| timed(pull(store, "shop/web:v1")));
    let took = futures::future::join_all(pulls).await;
    let all = seconds(&artifact, 1_000_000) * 4.0;
    assert!(took.iter().all(|took| is_about(*took, all)), "{took:?} instead of {all}");
    assert_eq!(registry.sent(), artifact.size() * 4);
}

#[tokio::test(start_paused = true)]
async fn a_node_with_a_slow_link_leaves_the_uplink_to_the_others() {
    let registry = Registry::start(Pace::new(Flow::Limited(1_000_000))).unwrap();
    let artifact = image("web");
    registry.push("shop/web", "v1", artifact.clone());
    let (slow, _slow_directory) = node(&registry, Flow::Limited(100_000), LARGE_DISK);
    let (fast, _fast_directory) = node(&registry, Flow::Free, LARGE_DISK);
    let time = |store: Store| async move { timed(pull(&store, "shop/web:v1")).await };
    let (took_slow, took_fast) = tokio::join!(time(slow), time(fast));
    assert!(is_about(took_slow, seconds(&artifact, 100_000)), "{took_slow}");
    // A tenth of the uplink, and what waits in the slow node's connections, is not available to the fast one.
    let alone = seconds(&artifact, 1_000_000);
    assert!((alone..alone * 1.6).contains(&took_fast), "{took_fast} and alone {alone}");
}
