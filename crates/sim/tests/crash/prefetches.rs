//! Stories of ImagePrefetches and NodeImageSets. Each node is in a zone of its own, so that the first by name asks the registry first.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::names::{IMAGE_PREFETCH_FINALIZER, NODE_IMAGE_SET_FINALIZER};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::Scenario;
use crate::scenarios::{PATIENCE, lock, no_entries, scenarios, secret};

const ZONE: &str = "topology.kubernetes.io/zone";
const PRIVATE: &str = "reg.example/app:1";

/// A story that ends well because the node takes from mirrors what the registry does not give it.
pub const REFUSED: &str = "a node that the registry refuses, so that another one asks it";

scenarios! { PREFETCHES:
    "a private image on all nodes, wave by wave", 3, [(PRIVATE, 500)], in_waves;
    "a tag that changes in the middle of a rollout", 3, [("app:1", 1000), ("app:2", 1000)], tag_changes;
    "replicas that grow and shrink", 3, [("app:1", 500)], replicas;
    "a set by hand for the registry and one for mirrors", 2, [("app:1", 500)], by_hand;
    "an image prefetch that is deleted early", 2, [("app:1", 60_000)], deleted_early;
    REFUSED, 2, [("app:1", 500)], seed_fails;
    "a job and an image prefetch that want the same", 2, [("app:1", 60_000)], beside_a_job;
    "an image that another tenant has brought", 2, [(PRIVATE, 500)], of_another_tenant;
}

async fn in_waves(cluster: &mut Cluster) {
    zones(cluster).await;
    lock(cluster);
    secret(cluster, "login", "right").await;
    make(cluster, json!({"images": [PRIVATE], "allNodes": true, "imagePullSecrets": [{"name": "login"}]}))
        .await;
    ready(cluster, 3).await;
}

async fn tag_changes(cluster: &mut Cluster) {
    zones(cluster).await;
    // The second wave does not end, so that the change comes in its middle, whenever it comes.
    cluster.nodes["node-2"].runtime.image("app:1").takes(Duration::from_hours(1));
    make(cluster, json!({"images": ["app:1"], "allNodes": true})).await;
    pulling(cluster, "node-2").await;
    edit(cluster, json!({"images": ["app:2"]})).await;
    ready(cluster, 3).await;
}

async fn replicas(cluster: &mut Cluster) {
    zones(cluster).await;
    make(cluster, json!({"images": ["app:1"], "replicas": 1})).await;
    for count in [1, 3, 2] {
        edit(cluster, json!({"replicas": count})).await;
        ready(cluster, count).await;
        sets(cluster, usize::try_from(count).expect("a small number")).await;
    }
}

/// The one for mirrors is made first, when they have nothing, and goes when it has what it wants.
async fn by_hand(cluster: &mut Cluster) {
    for (name, node, spec) in [
        ("second", "node-2", json!({"registryPolicy": "MirrorOnly"})),
        ("first", "node-1", json!({"registryPolicy": "Default", "imageDownloadRetryLimit": 3})),
    ] {
        let mut object = json!({
            "apiVersion": "ofen.cybozu.io/v1", "kind": "NodeImageSet",
            "metadata": {"name": name, "finalizers": [NODE_IMAGE_SET_FINALIZER]}, "spec": spec,
        });
        object["spec"]["images"] = json!(["app:1"]);
        object["spec"]["nodeName"] = json!(node);
        let _: NodeImageSet = cluster.create_in_cluster(object).await;
    }
    for name in ["first", "second"] {
        let has_all = async || {
            let status = node_image_sets(cluster).get(name).await.expect("a set").status;
            status.is_some_and(|status| status.available_images == 1)
        };
        cluster.written_within(Duration::from_secs(PATIENCE), "the images of a set", has_all).await;
    }
    node_image_sets(cluster).delete("second", &DeleteParams::background()).await.expect("a set to delete");
    sets(cluster, 1).await;
    cluster
        .node_image_within(PATIENCE, "node-2", |image| {
            image.is_some_and(|image| image.spec.images.is_empty())
        })
        .await;
}

/// Objects that ofen's programs have had in their hands.
async fn deleted_early(cluster: &mut Cluster) {
    zones(cluster).await;
    make(cluster, json!({"images": ["app:1"], "allNodes": true})).await;
    let finalizers = |name| Patch::Merge(json!({"metadata": {"finalizers": [name]}}));
    let patch = finalizers(IMAGE_PREFETCH_FINALIZER);
    image_prefetches(cluster).patch("warm", &PatchParams::default(), &patch).await.expect("an ImagePrefetch");
    pulling(cluster, "node-1").await;
    sets(cluster, 1).await;
    let patch = finalizers(NODE_IMAGE_SET_FINALIZER);
    for set in node_image_sets(cluster).list(&<_>::default()).await.expect("sets").items {
        let name = set.metadata.name.expect("a set has a name");
        node_image_sets(cluster).patch(&name, &PatchParams::default(), &patch).await.expect("a set");
    }
    delete(cluster).await;
}

async fn seed_fails(cluster: &mut Cluster) {
    zones(cluster).await;
    cluster.nodes["node-1"].runtime.image("app:1").needs("robot", "right");
    make(cluster, json!({"images": ["app:1"], "allNodes": true})).await;
    ready(cluster, 2).await;
}

async fn beside_a_job(cluster: &mut Cluster) {
    zones(cluster).await;
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 2})).await;
    pulling(cluster, "node-1").await;
    pulling(cluster, "node-2").await;
    make(cluster, json!({"images": ["app:1"], "allNodes": true})).await;
    cluster.finished_within(PATIENCE, "warm").await;
    ready(cluster, 2).await;
}

/// Both nodes and so all mirrors have the image, and the registry does not give it to this tenant.
async fn of_another_tenant(cluster: &mut Cluster) {
    zones(cluster).await;
    lock(cluster);
    secret(cluster, "login", "right").await;
    secret(cluster, "other", "wrong").await;
    cluster.pull("warm", json!({"image": PRIVATE, "parallelism": 2, "pullSecrets": ["login"]})).await;
    cluster.finished_within(PATIENCE, "warm").await;
    cluster.delete_job("warm").await;
    no_entries(cluster).await;
    make(cluster, json!({"images": [PRIVATE], "allNodes": true, "imagePullSecrets": [{"name": "other"}]}))
        .await;
    let is_refused = async || {
        let status = image_prefetches(cluster).get("warm").await.expect("an ImagePrefetch").status;
        status.is_some_and(|status| status.image_pull_failed_nodes > 0)
    };
    cluster.written_within(Duration::from_secs(PATIENCE), "a refusal", is_refused).await;
    cluster.pass(120).await;
    // Agents would have asked them at once, and what they ask is kept.
    for node in cluster.nodes.values() {
        assert_eq!(node.runtime.brought(), [""; 0], "{} was told to ask mirrors", node.name);
    }
    delete(cluster).await;
}

fn image_prefetches(cluster: &Cluster) -> Api<ImagePrefetch> {
    Api::default_namespaced(cluster.client.clone())
}

fn node_image_sets(cluster: &Cluster) -> Api<NodeImageSet> {
    Api::all(cluster.client.clone())
}

/// Puts each node in a zone of its own, and waits until the controller has seen that.
async fn zones(cluster: &Cluster) {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    for name in cluster.nodes.keys() {
        let patch = Patch::Merge(json!({"metadata": {"labels": {ZONE: name}}}));
        nodes.patch(name, &PatchParams::default(), &patch).await.expect("a Node to label");
    }
    for name in cluster.nodes.keys() {
        cluster
            .node_image_within(PATIENCE, name, |image| {
                let labels = image.and_then(|image| image.metadata.labels.as_ref());
                labels.is_some_and(|labels| labels.contains_key(ZONE))
            })
            .await;
    }
}

/// Waits until a node pulls.
async fn pulling(cluster: &Cluster, node: &str) {
    cluster
        .node_image_within(PATIENCE, node, |image| {
            image.and_then(|image| image.status.as_ref()).is_some_and(|status| status.pulling == 1)
        })
        .await;
}

async fn make(cluster: &Cluster, spec: Value) {
    let object = json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": {"name": "warm"}, "spec": spec,
    });
    let _: ImagePrefetch = cluster.create(object).await;
}

async fn edit(cluster: &Cluster, fields: Value) {
    let patch = Patch::Merge(json!({ "spec": fields }));
    image_prefetches(cluster).patch("warm", &PatchParams::default(), &patch).await.expect("an ImagePrefetch");
}

/// Waits until it, all its sets and all that it wanted of nodes are gone.
async fn delete(cluster: &Cluster) {
    image_prefetches(cluster).delete("warm", &DeleteParams::background()).await.expect("an ImagePrefetch");
    let is_gone = async || image_prefetches(cluster).get_opt("warm").await.expect("the API").is_none();
    cluster.written_within(Duration::from_secs(PATIENCE), "the end of the ImagePrefetch", is_gone).await;
    sets(cluster, 0).await;
    no_entries(cluster).await;
}

/// Waits until so many nodes are wanted, and all of them have the images of this generation.
async fn ready(cluster: &Cluster, nodes: i32) {
    let is_ready = async || {
        let object = image_prefetches(cluster).get("warm").await.expect("an ImagePrefetch");
        let status = object.status.unwrap_or_default();
        let is_current = status.observed_generation == object.metadata.generation;
        is_current && status.desired_nodes == nodes && status.image_pulled_nodes == nodes
    };
    cluster.written_within(Duration::from_secs(PATIENCE), &format!("{nodes} ready nodes"), is_ready).await;
}

/// Waits until there are exactly so many NodeImageSets.
async fn sets(cluster: &Cluster, count: usize) {
    let is_so =
        async || node_image_sets(cluster).list(&<_>::default()).await.expect("sets").items.len() == count;
    cluster.written_within(Duration::from_secs(PATIENCE), &format!("{count} sets"), is_so).await;
}
