//! One task: which image is asked for and how, and what its version and policy mean (kruise D6, D22, D30, R53, W2,
//! W28, W33, W34, T133, T134).

use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use serde_json::json;

use crate::node::{Node, always, image, image_of, pass, tag, version, with};

const APP: &str = "reg.example/app:1";

#[tokio::test(start_paused = true)]
async fn a_new_version_is_pulled_again_and_the_same_version_is_left_alone() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ "reg.example/app": image_of(vec![always(tag("1"))]) })).await;
    node.start();
    node.settled(1).await;
    let edited = with(always(tag("1")), &json!({ "pullPolicy": { "backoffLimit": 7 } }));
    node.change(json!({ "reg.example/app": image_of(vec![edited]) })).await;
    pass(30.0).await;
    assert_eq!(node.fake.calls().len(), 1, "the same version");
    node.change(json!({ "reg.example/app": image_of(vec![version(always(tag("1")), 1)]) })).await;
    let status = node.until("version 1", |status| versions(status) == [1] && status.succeeded == 1).await;
    assert_eq!((status.desired, node.fake.calls().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_goes_backwards_is_another_round_too() {
    let mut node = Node::new();
    node.fake.image(APP);
    node.ask(json!({ "reg.example/app": image_of(vec![version(always(tag("1")), 5)]) })).await;
    node.start();
    node.settled(1).await;
    node.change(json!({ "reg.example/app": image_of(vec![version(always(tag("1")), 3)]) })).await;
    node.until("version 3", |status| versions(status) == [3] && status.succeeded == 1).await;
    assert_eq!(node.fake.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_there_is_not_pulled_and_only_it_is_asked_for() {
    let mut node = Node::new();
    node.fake.image(APP).present();
    node.ask(json!({ "reg.example/app": image(&["1"]) })).await;
    node.start();
    let status = node.settled(1).await;
    assert_eq!(status.succeeded, 1);
    assert!(node.fake.calls().is_empty());
    // kruise W34: the daemon of old listed every image of the node, twice for each attempt.
    assert_eq!(node.fake.requests("ImageStatus"), 1);
}

#[tokio::test(start_paused = true)]
async fn always_asks_the_registry_and_finds_what_was_pushed_there_meanwhile() {
    let mut node = Node::new();
    let before = node.fake.image(APP).present().digest();
    let after = node.fake.image(APP).moves().digest();
    node.ask(json!({ "reg.example/app": image_of(vec![always(tag("1"))]) })).await;
    node.start();
    node.settled(1).await;
    assert_ne!(before, after);
    assert_eq!(node.fake.calls_of(APP).len(), 1);
    assert!(node.fake.has(&format!("reg.example/app@{after}")));
}

#[tokio::test(start_paused = true)]
async fn an_entry_without_a_policy_pulls_only_what_is_absent() {
    // kruise W33: an empty imagePullPolicy of an entry by hand meant Always.
    let mut node = Node::new();
    node.fake.image(APP).present();
    node.fake.image("reg.example/app:2");
    node.ask(json!({ "reg.example/app": image(&["1", "2"]) })).await;
    node.start();
    assert_eq!(node.settled(2).await.succeeded, 2);
    assert_eq!(
        node.fake.calls().iter().map(|call| call.reference.as_str()).collect::<Vec<_>>(),
        ["reg.example/app:2"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_digest_is_asked_for_behind_an_at_sign() {
    // kruise W2: joined with a colon, no digest could ever be pulled.
    let mut node = Node::new();
    let digest = node.fake.image(APP).with_index().digest();
    node.ask(json!({ "reg.example/app": image(&[&digest]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(node.fake.calls()[0].reference, format!("reg.example/app@{digest}"));
}

#[tokio::test(start_paused = true)]
async fn a_digest_that_is_there_is_recognised() {
    let mut node = Node::new();
    let digest = node.fake.image(APP).present().digest();
    node.ask(json!({ "reg.example/app": image(&[&digest]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!(node.fake.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn short_names_mean_the_library_of_docker_hub() {
    // kruise T134.
    let mut node = Node::new();
    node.fake.image("docker.io/library/nginx:latest").present();
    node.fake.image("docker.io/test/nginx:1.0");
    node.ask(json!({ "nginx": image(&["latest", "1.0"]), "test/nginx": image(&["1.0"]) })).await;
    node.start();
    let status = node.settled(3).await;
    assert_eq!((status.succeeded, status.failed), (2, 1));
    assert_eq!(node.tag("nginx", "latest").await.phase, PullPhase::Succeeded);
    assert_eq!(node.tag("nginx", "1.0").await.phase, PullPhase::Failed);
    assert!(!node.fake.calls_of("docker.io/test/nginx:1.0").is_empty());
    assert!(node.fake.calls_of("docker.io/library/nginx:latest").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_runtime_is_given_who_pulls_and_the_jobs_labels_and_annotations() {
    // kruise D30. kruise W28: the marker went into a map that several pulls shared.
    let mut node = Node::new();
    node.fake.image(APP);
    node.fake.image("reg.example/app:2");
    node.fake.image("reg.example/plain:1");
    let sandbox = json!({ "labels": { "team": "shop" }, "annotations": { "trace": "7" } });
    let app = with(image(&["1", "2"]), &json!({ "sandboxConfig": sandbox }));
    node.ask(json!({ "reg.example/app": app, "reg.example/plain": image(&["1"]) })).await;
    node.start();
    node.settled(3).await;
    let marker = ("apps.kruise.io/pulling-image-by".to_owned(), "kruise-daemon".to_owned());
    for call in node.fake.calls() {
        let is_plain = call.reference.contains("plain");
        let labels: &[(&str, &str)] = if is_plain { &[] } else { &[("team", "shop")] };
        assert!(call.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(labels.iter().copied()));
        let mut annotations = vec![marker.clone()];
        annotations.extend((!is_plain).then(|| ("trace".to_owned(), "7".to_owned())));
        assert!(call.annotations.into_iter().eq(annotations));
    }
}

#[tokio::test(start_paused = true)]
async fn one_image_under_two_names_is_there_under_both() {
    // reliability S5: Succeeded means that the runtime has the image under the name that pods use.
    let mut node = Node::new();
    let other = node.fake.image("reg.example/other:1").takes(Duration::from_secs(1));
    node.fake.image(APP).same_as(&other);
    node.config.parallel = 1;
    node.ask(json!({ "reg.example/app": image(&["1"]), "reg.example/other": image(&["1"]) })).await;
    node.start();
    assert_eq!(node.settled(2).await.succeeded, 2);
    assert!(node.fake.has(APP) && node.fake.has("reg.example/other:1"));
    assert_eq!(node.fake.calls().len(), 2);
}

fn versions(status: &prewarm_api::kruise::NodeImageStatus) -> Vec<i64> {
    let images = status.image_statuses.iter().flat_map(|images| images.values());
    images.flat_map(|image| &image.tags).map(|tag| tag.version).collect()
}
