//! What sets that a person makes say of images that fail, are missing or go (ofen A12, A15), with agents on nodes.

use std::time::Duration;

use prewarm_api::ofen::{NodeImageSet, NodeImageSetStatus};
use prewarm_runtime::Code;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::*;

const NODE: &str = "node-3";
/// Long enough that a status in between is written and seen.
const SLOW: Duration = Duration::from_secs(10);

/// Makes a set for a node.
async fn hand(cluster: &Cluster, name: &str, node: &str, policy: &str, images: Value) {
    let object = json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "NodeImageSet", "metadata": {"name": name},
        "spec": {"images": images, "registryPolicy": policy, "nodeName": node},
    });
    let _: NodeImageSet = cluster.create_in_cluster(object).await;
}

async fn status_of(cluster: &Cluster, name: &str) -> NodeImageSetStatus {
    node_image_sets(cluster).get(name).await.unwrap().status.unwrap_or_default()
}

/// Waits until so many images of a set are available and so many have failed.
async fn counted(cluster: &Cluster, minutes: u64, name: &str, counts: (i32, i32)) -> NodeImageSetStatus {
    let what = format!("{counts:?} of {name}");
    cluster
        .within(Duration::from_mins(minutes), &what, async || {
            let status = status_of(cluster, name).await;
            (status.available_images, status.download_failed_images) == counts
        })
        .await;
    status_of(cluster, name).await
}

/// The word and the error of one image.
fn image(status: &NodeImageSetStatus, number: usize) -> (String, String) {
    let image = status.container_image_statuses.as_ref().unwrap()[number].clone();
    (image.last_state.unwrap_or_default(), image.error.unwrap_or_default())
}

fn condition_of(status: &NodeImageSetStatus, type_: &str) -> (String, String) {
    let found = status.conditions.iter().flatten().find(|condition| condition.type_ == type_).unwrap();
    (found.status.clone(), found.reason.clone())
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// ofen C17
#[tokio::test(start_paused = true)]
async fn of_two_images_one_is_removed_and_the_set_says_so_until_it_is_back() {
    let mut cluster = cluster().await;
    cluster.publish("redis:7", SLOW);
    hand(&cluster, "mine", NODE, "Default", json!([IMAGE, "redis:7"])).await;
    counted(&cluster, 1, "mine", (2, 0)).await;
    assert!(cluster.nodes[NODE].runtime.remove("redis:7"));
    let status = counted(&cluster, 30, "mine", (1, 0)).await;
    assert_eq!(condition_of(&status, "ImageAvailable"), is("False", "ImageDownloadIncomplete"));
    assert_eq!(condition_of(&status, "ImageDownloadSucceeded"), is("True", "NoImagePullFailed"));
    assert_eq!(image(&status, 0).0, "ImageDownloaded");
    counted(&cluster, 30, "mine", (2, 0)).await;
    let node = &cluster.nodes[NODE];
    assert_eq!((node.pulls(IMAGE), node.pulls("redis:7")), (1, 2));
}

/// ofen C20, A16
#[tokio::test(start_paused = true)]
async fn a_registry_that_does_not_answer_is_a_failure_until_it_does() {
    let cluster = cluster().await;
    cluster.nodes[NODE].runtime.image(IMAGE).fails(5, Code::Unknown, "dial tcp: connection refused");
    hand(&cluster, "mine", NODE, "Default", json!([IMAGE])).await;
    let status = counted(&cluster, 1, "mine", (0, 1)).await;
    let (word, error) = image(&status, 0);
    assert_eq!(word, "ImageDownloadFailed");
    assert!(error.contains("connection refused"), "{error}");
    assert_eq!(condition_of(&status, "ImageDownloadSucceeded"), is("False", "ImageDownloadFailed"));
    counted(&cluster, 10, "mine", (1, 0)).await;
    cluster.pass(60).await;
    let events = cluster.events().await;
    let of_the_set = events.iter().filter(|event| {
        event.regarding.as_ref().and_then(|about| about.kind.as_deref()) == Some("NodeImageSet")
    });
    let failures = of_the_set.filter(|event| event.reason.as_deref() == Some("ImageDownloadFailed"));
    let failures: Vec<_> = failures.collect();
    assert!(failures.len() == 1 && failures[0].series.is_none(), "once, not for each attempt: {failures:?}");
}

/// ofen C21
#[tokio::test(start_paused = true)]
async fn an_image_that_the_registry_does_not_have_has_failed_and_the_other_one_is_there() {
    let cluster = cluster().await;
    hand(&cluster, "mine", NODE, "Default", json!([IMAGE, "gone:1"])).await;
    let status = counted(&cluster, 1, "mine", (1, 1)).await;
    assert_eq!(image(&status, 1).0, "ImageDownloadFailed");
    assert_eq!(condition_of(&status, "ImageDownloadSucceeded"), is("False", "ImageDownloadFailed"));
}

/// ofen C22
#[tokio::test(start_paused = true)]
async fn an_image_that_mirrors_do_not_have_is_waited_for_and_the_registry_is_not_asked() {
    let mut cluster = cluster().await;
    cluster.publish("late:1", Duration::from_secs(1));
    hand(&cluster, "first", "node-1", "Default", json!([IMAGE])).await;
    counted(&cluster, 1, "first", (1, 0)).await;
    hand(&cluster, "mine", NODE, "MirrorOnly", json!([IMAGE, "late:1"])).await;
    cluster
        .within(Duration::from_mins(1), "the word for what is not there yet", async || {
            image(&counted(&cluster, 1, "mine", (1, 0)).await, 1).0 == "ImageDownloadTemporarilyFailed"
        })
        .await;
    let status = status_of(&cluster, "mine").await;
    assert_eq!(condition_of(&status, "ImageAvailable"), is("False", "ImageDownloadIncomplete"));
    assert_eq!(condition_of(&status, "ImageDownloadSucceeded"), is("True", "NoImagePullFailed"));
    // Somebody else brings it, and then mirrors have it.
    hand(&cluster, "second", "node-1", "Default", json!(["late:1"])).await;
    counted(&cluster, 2, "mine", (2, 0)).await;
    assert!(cluster.nodes[NODE].runtime.calls().is_empty(), "the registry was asked");
}

/// ofen C25, C52
#[tokio::test(start_paused = true)]
async fn three_sets_of_one_image_notice_its_removal_and_it_is_pulled_once() {
    let mut cluster = cluster().await;
    cluster.publish("redis:7", SLOW);
    let names = ["one", "three", "two"];
    for name in names {
        hand(&cluster, name, NODE, "Default", json!(["redis:7"])).await;
    }
    for name in names {
        counted(&cluster, 1, name, (1, 0)).await;
    }
    assert!(cluster.nodes[NODE].runtime.remove("redis:7"));
    cluster
        .within(Duration::from_mins(30), "all sets to notice", async || {
            let mut available = 0;
            for name in names {
                available += status_of(&cluster, name).await.available_images;
            }
            available == 0
        })
        .await;
    for name in names {
        counted(&cluster, 30, name, (1, 0)).await;
    }
    assert_eq!(cluster.nodes[NODE].pulls("redis:7"), 2);
}
