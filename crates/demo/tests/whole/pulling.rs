//! Pulls that succeed: what is on the disk afterwards, and how often it was downloaded.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use prewarm_image::{Artifact, Blob, Image, Layer, index, native_architecture};
use prewarm_runtime::Runtime;
use serde_json::Value;

use crate::site::{KIB, LARGE_DISK, Site, full, node, pull, request};

fn hash(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap()
}

/// The digests of all files in the layout, each verified.
fn blobs_in(directory: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(directory.join("blobs/sha256")).unwrap().map(Result::unwrap);
    let checked = files.map(|file| {
        let digest = Blob::of(fs::read(file.path()).unwrap()).digest;
        assert_eq!(file.file_name().to_str(), Some(hash(&digest)));
        digest
    });
    checked.collect()
}

fn digests(artifact: &Artifact) -> BTreeSet<String> {
    let manifests = artifact.manifests.iter().map(|manifest| manifest.blob.digest.clone());
    artifact.blobs.iter().map(|blob| blob.digest.clone()).chain(manifests).collect()
}

#[tokio::test]
async fn a_pulled_image_lies_in_the_layout_with_every_blob_under_its_digest() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 3, 100 * KIB);
    site.pull("shop/web:v1").await.unwrap();
    let directory = site.store.directory();
    assert_eq!(blobs_in(directory), digests(&artifact));
    let text = |name: &str| fs::read(directory.join(name)).unwrap();
    let layout: Value = serde_json::from_slice(&text("oci-layout")).unwrap();
    assert_eq!(layout["imageLayoutVersion"], "1.0.0");
    let index: Value = serde_json::from_slice(&text("index.json")).unwrap();
    let entry = &index["manifests"][0];
    assert_eq!((entry["digest"].as_str(), entry["size"].as_u64()), {
        let root = &artifact.root().blob;
        (Some(root.digest.as_str()), Some(root.bytes.len() as u64))
    });
    assert_eq!(entry["annotations"]["io.containerd.image.name"], "registry.demo/shop/web:v1");
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "v1");
    assert_eq!(fs::read_dir(directory.join("ingest")).unwrap().count(), 0);
    assert_eq!(site.store.received(), artifact.size());
}

#[tokio::test]
async fn only_the_image_for_this_platform_is_downloaded_from_an_index() {
    let site = Site::new();
    let image = |architecture: &str| {
        Image::new(architecture).architecture(architecture).layers(2, Layer::of(10 * KIB))
    };
    let native = image(native_architecture());
    let both = index(&[image("s390x"), native.clone()]);
    site.registry.push("shop/both", "v1", both.clone());
    site.pull("shop/both:v1").await.unwrap();
    let mut expected = digests(&native.build());
    expected.insert(both.digest().to_owned());
    assert_eq!(blobs_in(site.store.directory()), expected);
}

#[tokio::test]
async fn two_pulls_of_one_reference_download_it_once() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 4, 100 * KIB);
    let (one, other) = tokio::join!(site.pull("shop/web:v1"), site.pull("shop/web:v1"));
    assert_eq!((one, other), (Ok(()), Ok(())));
    for blob in &artifact.blobs {
        assert_eq!(site.registry.downloads(&blob.digest), 1, "{}", blob.digest);
    }
    assert_eq!(site.store.received(), artifact.size());
}

#[tokio::test]
async fn layers_that_images_share_are_downloaded_once_at_the_same_time_or_later() {
    let site = Site::new();
    let base = Image::new("base").layers(2, Layer::of(100 * KIB));
    let shared = base.build();
    for tag in ["v1", "v2", "v3"] {
        let layer = Layer::of(10 * KIB + tag.len() * usize::from(tag.as_bytes()[1]));
        site.registry.push("shop/web", tag, base.clone().layer(layer).build());
    }
    let (one, other) = tokio::join!(site.pull("shop/web:v1"), site.pull("shop/web:v2"));
    assert_eq!((one, other), (Ok(()), Ok(())));
    site.pull("shop/web:v3").await.unwrap();
    for layer in &shared.blobs[1..] {
        assert_eq!(site.registry.downloads(&layer.digest), 1, "{}", layer.digest);
    }
    assert_eq!(site.store.images().len(), 3);
}

#[tokio::test]
async fn an_image_that_is_present_is_resolved_again_and_not_downloaded() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 2, 10 * KIB);
    site.pull("shop/web:v1").await.unwrap();
    site.pull("shop/web:v1").await.unwrap();
    assert_eq!(site.registry.downloads(&artifact.blobs[1].digest), 1);
    let moved = Image::new("another").layer(Layer::of(10 * KIB)).build();
    site.registry.push("shop/web", "v1", moved.clone());
    site.pull("shop/web:v1").await.unwrap();
    let runtime = Runtime::connect(&site.store.endpoint()).await.unwrap();
    let image = runtime.image(&full("shop/web:v1")).await.unwrap().unwrap();
    assert_eq!(image.id, moved.blobs[0].digest);
}

#[tokio::test]
async fn a_removed_image_gives_its_room_back_and_leaves_what_others_share() {
    let site = Site::new();
    let base = Image::new("base").layers(2, Layer::of(100 * KIB));
    let longer = base.clone().layer(Layer::of(50 * KIB)).build();
    site.registry.push("shop/web", "v1", base.build());
    site.registry.push("shop/web", "v2", longer.clone());
    let empty = site.store.room();
    site.pull("shop/web:v1").await.unwrap();
    let with_one = site.store.room();
    assert_eq!(empty.free - with_one.free, base.build().size());
    site.pull("shop/web:v2").await.unwrap();
    assert!(site.store.remove(&full("shop/web:v1")).unwrap());
    assert_eq!(blobs_in(site.store.directory()), digests(&longer));
    assert!(site.store.remove(&full("shop/web:v2")).unwrap());
    assert!(!site.store.remove(&full("shop/web:v2")).unwrap());
    assert!(blobs_in(site.store.directory()).is_empty());
    assert_eq!(site.store.room(), empty);
}

#[tokio::test]
async fn nodes_have_stores_of_their_own() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 1, 10 * KIB);
    let (other, _directory) = node(&site.registry, prewarm_demo::Flow::Free, LARGE_DISK);
    site.pull("shop/web:v1").await.unwrap();
    pull(&other, "shop/web:v1").await.unwrap();
    assert_eq!(site.registry.downloads(&artifact.blobs[1].digest), 2);
}

#[tokio::test]
async fn a_cancelled_pull_leaves_nothing_behind() {
    let site = Site::new();
    site.offer("shop/web", "v1", 5, 200 * KIB);
    site.store.link().set(prewarm_demo::Flow::Limited(200_000));
    let runtime = Runtime::connect(&site.store.endpoint()).await.unwrap();
    let asked = request(&full("shop/web:v1"), None);
    let pulling = tokio::spawn(async move { runtime.pull(&asked).await });
    while site.store.pulls().iter().all(|pull| pull.done < 10_000) {
        tokio::task::yield_now().await;
    }
    pulling.abort();
    while site.store.room().free < LARGE_DISK.capacity {
        tokio::task::yield_now().await;
    }
    assert_eq!((site.store.pulls(), site.store.images()), (vec![], vec![]));
    assert!(blobs_in(site.store.directory()).is_empty());
    assert_eq!(fs::read_dir(site.store.directory().join("ingest")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_pull_under_way_reports_its_progress() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 3, 100 * KIB);
    let total: u64 = artifact.blobs.iter().map(|blob| blob.bytes.len() as u64).sum();
    site.store.link().set(prewarm_demo::Flow::Limited(400_000));
    let mut pulling = Box::pin(site.pull("shop/web:v1"));
    let mut seen = Vec::new();
    loop {
        tokio::select! {
            pulled = &mut pulling => break pulled.unwrap(),
            () = tokio::task::yield_now() => seen.extend(site.store.pulls()),
        }
    }
    assert!(seen.iter().all(|pull| pull.reference == full("shop/web:v1") && pull.done <= pull.total));
    assert!(seen.is_sorted_by_key(|pull| pull.done));
    let between = seen.iter().filter(|pull| pull.total == total && (1..total).contains(&pull.done));
    assert!(between.count() >= 5);
    assert!(site.store.pulls().is_empty());
}
