//! Nodes that come and go, and the end (ofen C5, C10–C13, C16–C19, C23, C24).

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use prewarm_api::ofen::NodeImageSet;
use serde_json::json;

use crate::support::*;

/// ofen C5
#[tokio::test(start_paused = true)]
async fn a_deleted_image_prefetch_takes_its_sets_and_entries_along() {
    let cluster = cluster().await;
    make(&cluster, json!({"replicas": 4})).await;
    ready_within(&cluster, 30, 4).await;
    delete(&cluster).await;
    cluster
        .within(Duration::from_secs(5), "an end of the sets", async || sets(&cluster).await.is_empty())
        .await;
    assert!(prefetches(&cluster).get_opt("warm").await.unwrap().is_none());
    for node in cluster.nodes.keys() {
        cluster
            .node_image_within(10, node, |image| image.is_some_and(|image| image.spec.images.is_empty()))
            .await;
    }
    assert!(cluster.nodes.values().filter(|node| node.runtime.has(IMAGE)).count() >= 4, "images stay");
}

/// ofen C10
#[tokio::test(start_paused = true)]
async fn a_deleted_node_is_replaced() {
    let mut cluster = cluster().await;
    make(&cluster, json!({"replicas": 4})).await;
    ready_within(&cluster, 30, 4).await;
    let gone = sets(&cluster).await.into_keys().next().unwrap();
    cluster.delete_node(&gone).await;
    cluster
        .within(Duration::from_secs(5), "the end of its set", async || {
            !sets(&cluster).await.contains_key(&gone)
        })
        .await;
    ready_within(&cluster, 30, 4).await;
    cluster.pass(2).await;
    assert_eq!(sets(&cluster).await.len(), 4);
}

/// ofen C11, W15: labels that change count like nodes that come.
#[tokio::test(start_paused = true)]
async fn nodes_that_match_join_and_others_leave() {
    let mut cluster = cluster().await;
    let rack = json!({"matchLabels": {"topology.kubernetes.io/zone": "rack1"}});
    make(&cluster, json!({"allNodes": true, "nodeSelector": rack})).await;
    ready_within(&cluster, 30, 3).await;
    cluster.add_node("node-7", json!({"topology.kubernetes.io/zone": "rack1"})).await;
    ready_within(&cluster, 30, 4).await;
    cluster.delete_node("node-7").await;
    ready_within(&cluster, 30, 3).await;
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(cluster.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "rack1"}}}));
    nodes.patch("node-0", &PatchParams::default(), &patch).await.unwrap();
    ready_within(&cluster, 30, 4).await;
    assert!(sets(&cluster).await.contains_key("node-0"));
}

/// ofen C12: after five minutes, because most nodes come back.
#[tokio::test(start_paused = true)]
async fn a_node_that_stays_not_ready_is_replaced() {
    let cluster = cluster().await;
    make(&cluster, json!({"replicas": 2})).await;
    ready_within(&cluster, 30, 2).await;
    let lost = sets(&cluster).await.into_keys().next().unwrap();
    cluster.set_ready(&lost, false).await;
    cluster.pass(240).await;
    assert!(sets(&cluster).await.contains_key(&lost));
    cluster.pass(70).await;
    assert!(!sets(&cluster).await.contains_key(&lost));
    ready_within(&cluster, 30, 2).await;
    assert_eq!(sets(&cluster).await.len(), 2);
}

/// ofen C13
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_is_not_chosen() {
    let cluster = cluster().await;
    cluster.set_ready("node-2", false).await;
    cluster.pass(1).await;
    make(&cluster, json!({"allNodes": true})).await;
    ready_within(&cluster, 30, 6).await;
    assert!(!sets(&cluster).await.contains_key("node-2"));
    cluster.set_ready("node-2", true).await;
    ready_within(&cluster, 30, 7).await;
}

fn by_hand(name: &str, node: &str) -> serde_json::Value {
    json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "NodeImageSet",
        "metadata": {"name": name, "finalizers": ["nodeimageset.ofen.cybozu.io/finalizer"]},
        "spec": {"images": [IMAGE], "registryPolicy": "Default", "nodeName": node},
    })
}

/// ofen C16, C18, C19
#[tokio::test(start_paused = true)]
async fn a_set_by_hand_brings_its_images_to_its_node_alone() {
    let cluster = cluster().await;
    let _: NodeImageSet = cluster.create_in_cluster(by_hand("mine", "node-3")).await;
    cluster
        .within(Duration::from_secs(10), "the image", async || {
            states(&cluster, "node-3").await == ["ImageDownloaded"]
        })
        .await;
    let status = node_image_sets(&cluster).get("mine").await.unwrap().status.unwrap();
    assert_eq!((status.desired_images, status.available_images, status.download_failed_images), (1, 1, 0));
    let holds = |type_: &str| {
        status.conditions.iter().flatten().any(|one| one.type_ == type_ && one.status == "True")
    };
    assert!(holds("ImageAvailable") && holds("ImageDownloadSucceeded"));
    assert_eq!(cluster.nodes.values().filter(|node| node.runtime.has(IMAGE)).count(), 1);
}

/// ofen C17, A15
#[tokio::test(start_paused = true)]
async fn an_image_that_is_removed_is_brought_back() {
    let cluster = cluster().await;
    make(&cluster, json!({"replicas": 2})).await;
    ready_within(&cluster, 30, 2).await;
    let node = sets(&cluster).await.into_keys().next().unwrap();
    cluster.nodes[&node].runtime.remove(IMAGE);
    cluster
        .within(Duration::from_mins(30), "the image", async || cluster.nodes[&node].runtime.has(IMAGE))
        .await;
    ready_within(&cluster, 30, 2).await;
    assert_eq!(cluster.nodes[&node].fetches(IMAGE), 2);
}

/// ofen C23, C24
#[tokio::test(start_paused = true)]
async fn a_set_whose_node_does_not_exist_goes_after_an_hour_and_others_stay() {
    let cluster = cluster().await;
    let _: NodeImageSet = cluster.create_in_cluster(by_hand("stays", "node-1")).await;
    let _: NodeImageSet = cluster.create_in_cluster(by_hand("goes", "nowhere")).await;
    cluster.pass(3500).await;
    assert_eq!(sets(&cluster).await.len(), 2);
    cluster.pass(200).await;
    assert_eq!(sets(&cluster).await.into_keys().collect::<Vec<_>>(), ["node-1"]);
}
