//! Pulls that fail, and what the client of container runtimes makes of it.

use std::fs;

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use prewarm_demo::Flow;
use prewarm_demo::store::Disk;
use prewarm_image::{Image, Layer, index};
use prewarm_runtime::{CallError, Runtime};

use crate::site::{HOST, KIB, Site, closed_address, credential, full, request};

async fn failure(site: &Site, reference: &str) -> CallError {
    let runtime = Runtime::connect(&site.store.endpoint()).await.unwrap();
    let reference = ImageRef::parse(reference).unwrap();
    let error = runtime.pull(&request(&reference, None)).await.unwrap_err();
    assert!(!error.is_runtime_away() && !error.is_interrupted(), "{error}");
    error
}

fn assert_nothing_is_left(site: &Site) {
    let directory = site.store.directory();
    assert_eq!(fs::read_dir(directory.join("blobs/sha256")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(directory.join("ingest")).unwrap().count(), 0);
    assert!(site.store.images().is_empty() && site.store.pulls().is_empty());
}

#[tokio::test]
async fn a_blob_that_is_not_what_its_digest_says_is_refused() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 3, 100 * KIB);
    assert!(site.registry.spoil(&artifact.blobs[2].digest));
    let error = failure(&site, &format!("{HOST}/shop/web:v1")).await;
    assert_eq!(error.class(), FailureClass::Corrupt, "{error}");
    assert!(error.to_string().contains("unexpected commit digest"), "{error}");
    assert_nothing_is_left(&site);
}

#[tokio::test]
async fn a_manifest_that_is_not_what_its_digest_says_is_refused() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 1, 10 * KIB);
    assert!(site.registry.spoil(artifact.digest()));
    let error = failure(&site, &format!("{HOST}/shop/web:v1")).await;
    assert_eq!(error.class(), FailureClass::Corrupt, "{error}");
    assert!(error.to_string().contains("unexpected commit digest"), "{error}");
    assert_nothing_is_left(&site);
}

#[tokio::test]
async fn a_wrong_tag_is_not_found() {
    let site = Site::new();
    site.offer("shop/web", "v1", 1, 10 * KIB);
    let error = failure(&site, &format!("{HOST}/shop/web:v9")).await;
    assert_eq!(error.class(), FailureClass::NotFound, "{error}");
    assert!(error.to_string().contains("registry.demo/shop/web:v9: not found"), "{error}");
}

#[tokio::test]
async fn an_image_for_other_platforms_only_has_none_for_this_one() {
    let site = Site::new();
    let foreign = Image::new("web").architecture("s390x").layer(Layer::of(10 * KIB));
    site.registry.push("shop/web", "v1", index(&[foreign]));
    let error = failure(&site, &format!("{HOST}/shop/web:v1")).await;
    assert_eq!(error.class(), FailureClass::NoPlatform, "{error}");
    assert_nothing_is_left(&site);
}

#[tokio::test]
async fn only_loopback_is_ever_contacted() {
    let site = Site::new();
    for (name, words) in [
        (format!("{}/shop/web:v1", closed_address()), "connect: connection refused"),
        ("nowhere.example/shop/web:v1".to_owned(), "no such host"),
        ("192.0.2.1:5000/shop/web:v1".to_owned(), "network is unreachable"),
    ] {
        let error = failure(&site, &name).await;
        assert_eq!(error.class(), FailureClass::Unreachable, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_private_image_is_for_those_with_its_credentials_only() {
    let site = Site::new();
    site.offer("team/app", "v1", 2, 10 * KIB);
    site.registry.protect("team/app", "robot", "hunter2");
    let runtime = Runtime::connect(&site.store.endpoint()).await.unwrap();
    let reference = full("team/app:v1");
    for refused in [
        None,
        Some(credential("robot", "wrong", HOST)),
        // A credential for another host is not sent to this one.
        Some(credential("robot", "hunter2", "elsewhere.example")),
    ] {
        let error = runtime.pull(&request(&reference, refused)).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Unauthorized, "{error}");
    }
    runtime.pull(&request(&reference, Some(credential("robot", "hunter2", HOST)))).await.unwrap();
    assert!(runtime.image(&reference).await.unwrap().is_some());
}

#[tokio::test]
async fn an_image_that_does_not_fit_has_no_space_and_gives_back_what_it_took() {
    let disk = Disk { capacity: 1 << 20, taken: 700 << 10 };
    let site = Site::with(Flow::Free, Flow::Free, disk);
    site.offer("shop/big", "v1", 4, 100 * KIB);
    let error = failure(&site, &format!("{HOST}/shop/big:v1")).await;
    assert_eq!(error.class(), FailureClass::NoSpace, "{error}");
    assert_nothing_is_left(&site);
    assert_eq!(site.store.room().free, disk.capacity - disk.taken);
    site.store.set_taken(0);
    site.pull("shop/big:v1").await.unwrap();
}

#[tokio::test]
async fn a_download_that_breaks_off_is_cut_off_once_and_leaves_nothing() {
    let site = Site::new();
    site.offer("shop/web", "v1", 3, 100 * KIB);
    site.store.break_off(150 << 10);
    let error = failure(&site, &format!("{HOST}/shop/web:v1")).await;
    assert!(error.to_string().contains("unexpected EOF"), "{error}");
    assert!(!site.store.is_to_break());
    assert_nothing_is_left(&site);
    site.pull("shop/web:v1").await.unwrap();
}
