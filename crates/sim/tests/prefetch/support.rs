//! How these tests begin, what they write in other hands, and what they look at.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use prewarm_api::kruise::NodeImage;
use prewarm_api::ofen::{ImagePrefetch, ImagePrefetchStatus, NodeImageSet, RegistryPolicy};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

pub const IMAGE: &str = "nginx:1";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Seven nodes with agents, four of them in one rack and three in another, which pull their image within a second.
pub async fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.publish(IMAGE, Duration::from_secs(1));
    for number in 0..7 {
        let zone = if number < 4 { "rack0" } else { "rack1" };
        cluster.add_node(&format!("node-{number}"), json!({ZONE: zone})).await;
    }
    cluster.start_controller();
    cluster.pass(1).await;
    cluster
}

/// The same without agents: the test reports for them.
pub async fn silent_cluster() -> Cluster {
    let mut cluster = Cluster::new();
    for number in 0..7 {
        let zone = if number < 4 { "rack0" } else { "rack1" };
        cluster.make_node(&format!("node-{number}"), json!({ZONE: zone})).await;
    }
    cluster.start_controller();
    cluster.pass(1).await;
    cluster
}

pub fn prefetches(cluster: &Cluster) -> Api<ImagePrefetch> {
    Api::default_namespaced(cluster.client.clone())
}

pub fn node_image_sets(cluster: &Cluster) -> Api<NodeImageSet> {
    Api::all(cluster.client.clone())
}

/// Makes the ImagePrefetch `warm` with these fields of its spec.
pub async fn make(cluster: &Cluster, fields: Value) -> ImagePrefetch {
    let mut spec = json!({"images": [IMAGE]});
    json_patch_merge(&mut spec, &fields);
    let object = json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": {"name": "warm"}, "spec": spec,
    });
    cluster.create(object).await
}

fn json_patch_merge(into: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        into[name] = value.clone();
    }
}

/// Merges into the spec of `warm`, as a person does.
pub async fn edit(cluster: &Cluster, fields: Value) {
    let patch = Patch::Merge(json!({ "spec": fields }));
    prefetches(cluster).patch("warm", &PatchParams::default(), &patch).await.unwrap();
}

pub async fn delete(cluster: &Cluster) {
    prefetches(cluster).delete("warm", &DeleteParams::background()).await.unwrap();
}

pub async fn status(cluster: &Cluster) -> ImagePrefetchStatus {
    prefetches(cluster).get("warm").await.unwrap().status.unwrap_or_default()
}

/// Desired, pulled, pulling and failed nodes.
pub async fn counts(cluster: &Cluster) -> [i32; 4] {
    let status = status(cluster).await;
    [
        status.desired_nodes,
        status.image_pulled_nodes,
        status.image_pulling_nodes,
        status.image_pull_failed_nodes,
    ]
}

/// Status and reason of a condition of `warm`.
pub async fn condition(cluster: &Cluster, type_: &str) -> (String, String) {
    let conditions = status(cluster).await.conditions.unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition.type_ == type_);
    found.map(|one| (one.status, one.reason)).unwrap_or_default()
}

/// The policies of all NodeImageSets, by node.
pub async fn sets(cluster: &Cluster) -> BTreeMap<String, RegistryPolicy> {
    let sets = node_image_sets(cluster).list(&ListParams::default()).await.unwrap().items;
    sets.into_iter().map(|set| (set.spec.node_name, set.spec.registry_policy)).collect()
}

/// How many sets ask the registry, and how many ask mirrors alone.
pub async fn policies(cluster: &Cluster) -> (usize, usize) {
    let sets = sets(cluster).await;
    let count = |wanted| sets.values().filter(|policy| **policy == wanted).count();
    (count(RegistryPolicy::Default), count(RegistryPolicy::MirrorOnly))
}

/// Waits until so many nodes are wanted and all of them have the images.
pub async fn ready_within(cluster: &Cluster, seconds: u64, nodes: i32) {
    let what = format!("{nodes} ready nodes");
    cluster
        .within(Duration::from_secs(seconds), &what, async || {
            let object = prefetches(cluster).get("warm").await.unwrap();
            let status = object.status.unwrap_or_default();
            let is_new = status.observed_generation == object.metadata.generation;
            is_new && status.desired_nodes == nodes && status.image_pulled_nodes == nodes
        })
        .await;
}

/// The nodes that are told about an image and have not answered to that.
pub async fn unanswered(cluster: &Cluster, image: &str) -> Vec<String> {
    let images = cluster.node_images().list(&ListParams::default()).await.unwrap().items;
    let (name, tag) = image.rsplit_once(':').unwrap();
    let is_open = |object: &NodeImage| {
        let told =
            object.spec.images.get(name).and_then(|image| image.tags.iter().find(|one| one.tag == tag));
        let answers = object.status.as_ref().and_then(|status| status.image_statuses.as_ref()?.get(name));
        let answer = answers.and_then(|image| image.tags.iter().find(|one| one.tag == tag));
        told.is_some_and(|told| answer.is_none_or(|answer| answer.version != told.version))
    };
    images.into_iter().filter(is_open).filter_map(|object| object.metadata.name).collect()
}

/// Reports for a node without an agent how far an image is, in the version that is asked for.
pub async fn report(cluster: &Cluster, node: &str, image: &str, phase: &str, more: Value) {
    let (name, tag) = image.rsplit_once(':').unwrap();
    let object = cluster.node_images().get(node).await.unwrap();
    let told = object.spec.images.get(name).and_then(|image| image.tags.iter().find(|one| one.tag == tag));
    let now = cluster.clock.now().to_string();
    let version = told.map_or(0, |told| told.version);
    let mut status = json!({"tag": tag, "phase": phase, "version": version, "startTime": now});
    if phase == "Succeeded" {
        status["completionTime"] = json!(now);
    }
    json_patch_merge(&mut status, &more);
    let patch = Patch::Merge(json!({"status": {"desired": 1, "imageStatuses": {name: {"tags": [status]}}}}));
    cluster.node_images().patch_status(node, &PatchParams::default(), &patch).await.unwrap();
}

/// The words for the images of the NodeImageSet on a node.
pub async fn states(cluster: &Cluster, node: &str) -> Vec<String> {
    let sets = node_image_sets(cluster).list(&ListParams::default()).await.unwrap().items;
    let set = sets.into_iter().find(|set| set.spec.node_name == node).unwrap();
    let images = set.status.unwrap_or_default().container_image_statuses.unwrap_or_default();
    images.into_iter().filter_map(|image| image.last_state).collect()
}
