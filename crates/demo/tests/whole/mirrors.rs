//! The nodes' mirrors: what one node has the others get, and the registry is not asked.

use std::collections::BTreeSet;

use prewarm_agent::config::Mirrors as Choice;
use prewarm_api::kruise::FailureClass;
use prewarm_demo::store::Store;
use prewarm_demo::{Flow, Mirrors, Pace, Registry};
use prewarm_image::{Artifact, Image, Layer};
use tokio::time::Instant;

use crate::site::{KIB, LARGE_DISK, full, node, pull};

const NAME: &str = "ml/model:v1";

/// A registry with an image, and mirrors of no node.
fn start() -> (Registry, Mirrors, Artifact) {
    let registry = Registry::start(Pace::new(Flow::Free)).unwrap();
    let artifact = Image::new("model").layers(4, Layer::of(100 * KIB)).build();
    registry.push("ml/model", "v1", artifact.clone());
    (registry, Mirrors::start().unwrap(), artifact)
}

async fn bring(store: &Store, mirrors: &Mirrors, digest: Option<&str>) -> Result<(), (FailureClass, String)> {
    let Choice::Simulated(bring) = store.mirror_choice(mirrors.address()) else {
        panic!("the mirrors are simulated");
    };
    bring(full(NAME), digest.map(str::to_owned)).await
}

#[tokio::test]
async fn an_image_that_comes_from_mirrors_is_whole_and_costs_the_registry_nothing() {
    let (registry, mirrors, artifact) = start();
    let (seed, _seed_directory) = node(&registry, Flow::Free, LARGE_DISK);
    let (other, _other_directory) = node(&registry, Flow::Free, LARGE_DISK);
    mirrors.join(seed.clone(), Pace::new(Flow::Free));
    pull(&seed, NAME).await.unwrap();
    let asked = registry.traffic("ml/model");
    assert_eq!((asked.clients, asked.sent), (BTreeSet::from(["node".to_owned()]), artifact.size()));

    bring(&other, &mirrors, Some(artifact.digest())).await.unwrap();
    assert_eq!(other.images(), seed.images());
    assert_eq!((registry.sent(), mirrors.sent()), (artifact.size(), artifact.size()));
    assert_eq!(registry.traffic("shop/web").clients, BTreeSet::new());
}

#[tokio::test]
async fn mirrors_have_what_is_whole_on_a_node_and_nothing_else() {
    let (registry, mirrors, artifact) = start();
    let (seed, _seed_directory) = node(&registry, Flow::Free, LARGE_DISK);
    let (other, _other_directory) = node(&registry, Flow::Free, LARGE_DISK);
    mirrors.join(seed.clone(), Pace::new(Flow::Free));
    for digest in [None, Some(artifact.digest())] {
        let (class, text) = bring(&other, &mirrors, digest).await.unwrap_err();
        assert_eq!(class, FailureClass::NotFound, "{text}");
    }
    pull(&seed, NAME).await.unwrap();
    bring(&other, &mirrors, None).await.unwrap();
    let missing = format!("sha256:{}", "0".repeat(64));
    assert_eq!(bring(&other, &mirrors, Some(&missing)).await.unwrap_err().0, FailureClass::NotFound);

    assert!(seed.remove(&full(NAME)).unwrap() && other.remove(&full(NAME)).unwrap());
    assert_eq!(bring(&other, &mirrors, None).await.unwrap_err().0, FailureClass::NotFound);
    assert_eq!(registry.sent(), artifact.size());
}

#[tokio::test(start_paused = true)]
async fn nodes_that_have_an_image_share_the_work() {
    const RATE: u64 = 400_000;
    let (registry, mirrors, artifact) = start();
    let nodes: Vec<_> = (0..4).map(|_| node(&registry, Flow::Free, LARGE_DISK)).collect();
    for (seed, _) in &nodes[..2] {
        mirrors.join(seed.clone(), Pace::new(Flow::Limited(RATE)));
        pull(seed, NAME).await.unwrap();
    }
    let start = Instant::now();
    let brought = nodes[2..].iter().map(|(store, _)| bring(store, &mirrors, None));
    futures::future::try_join_all(brought).await.unwrap();
    // Together they send twice the image, each over its own link.
    let (took, alone) = (start.elapsed().as_millis(), u128::from(artifact.size() * 1000 / RATE));
    assert!((alone * 9 / 10..alone * 13 / 10).contains(&took), "{took} ms, and one needs {alone} ms");
    assert_eq!(mirrors.sent(), artifact.size() * 2);
}
