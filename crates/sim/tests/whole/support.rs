//! How these tests begin, what they write in other hands, and what they look at.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams, TypeMeta,
};
use prewarm_api::condition::Condition;
use prewarm_api::kruise::{ImageTagSpec, ImageTagStatus, NodeImage, SecretReference};
use prewarm_api::names::{BROADCAST_JOB_UID_LABEL, DEFAULT_CONFIG_NAMESPACE, FAKE_NODE_IMAGE_LABEL};
use prewarm_embedded::faults::Entry;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

/// The versions in which people write jobs.
pub const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];

/// A cluster with a controller, so many nodes with agents, and images that take a second each.
pub async fn cluster(nodes: usize, images: &[&str]) -> Cluster {
    let mut cluster = Cluster::new();
    for image in images {
        cluster.publish(image, Duration::from_secs(1));
    }
    cluster.add_nodes(nodes).await;
    cluster.start_controller();
    cluster.pass(1).await;
    cluster
}

/// A cluster whose nodes have no agents: the test reports for them.
pub async fn silent_cluster(nodes: &[&str]) -> Cluster {
    let mut cluster = Cluster::new();
    for node in nodes {
        cluster.make_node(node, json!({})).await;
    }
    cluster.start_controller();
    cluster.pass(1).await;
    cluster
}

/// Makes an ImagePullJob or an ImageListPullJob through one of the two versions.
pub async fn make(cluster: &Cluster, version: &str, kind: &str, name: &str, spec: Value) {
    let plural = format!("{}s", kind.to_lowercase());
    let resource = ApiResource {
        group: "apps.kruise.io".to_owned(),
        version: version.to_owned(),
        api_version: format!("apps.kruise.io/{version}"),
        kind: kind.to_owned(),
        plural,
    };
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client.clone(), &resource);
    let object = DynamicObject {
        types: Some(TypeMeta { api_version: resource.api_version.clone(), kind: kind.to_owned() }),
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: json!({ "spec": spec }),
    };
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(made.types.unwrap().api_version, resource.api_version);
}

/// A NodeImage that no Node has.
pub async fn make_fake(cluster: &Cluster, name: &str) {
    let _: NodeImage = cluster
        .create_in_cluster(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
            "metadata": {"name": name, "labels": {FAKE_NODE_IMAGE_LABEL: "true"}}, "spec": {},
        }))
        .await;
}

/// A selector of all nodes except those of `make_fake`.
pub fn real_nodes() -> Value {
    json!({"matchExpressions": [{"key": FAKE_NODE_IMAGE_LABEL, "operator": "DoesNotExist"}]})
}

/// Name and tag of an image such as `nginx:1`.
pub fn parts(image: &str) -> (&str, &str) {
    image.rsplit_once(':').unwrap()
}

pub async fn node_image(cluster: &Cluster, node: &str) -> NodeImage {
    cluster.node_images().get(node).await.unwrap()
}

/// What a node is told about an image.
pub async fn tag(cluster: &Cluster, node: &str, image: &str) -> Option<ImageTagSpec> {
    let (name, tag) = parts(image);
    let object = node_image(cluster, node).await;
    object.spec.images.get(name)?.tags.iter().find(|entry| entry.tag == tag).cloned()
}

/// What a node reports about an image.
pub async fn tag_status(cluster: &Cluster, node: &str, image: &str) -> Option<ImageTagStatus> {
    let (name, tag) = parts(image);
    let object = node_image(cluster, node).await;
    object.status?.image_statuses?.get(name)?.tags.iter().find(|entry| entry.tag == tag).cloned()
}

/// The Secrets that a node uses for an image.
pub async fn secrets_of(cluster: &Cluster, node: &str, name: &str) -> Vec<SecretReference> {
    let object = node_image(cluster, node).await;
    object.spec.images.get(name).and_then(|image| image.pull_secrets.clone()).unwrap_or_default()
}

/// The names of the jobs that want an image on a node.
pub async fn owners(cluster: &Cluster, node: &str, image: &str) -> Vec<String> {
    let tag = tag(cluster, node, image).await;
    let owners = tag.and_then(|tag| tag.owner_references).unwrap_or_default();
    owners.into_iter().filter_map(|owner| owner.name).collect()
}

/// Merges into the spec of a NodeImage, as a person does.
pub async fn write_images(cluster: &Cluster, node: &str, images: Value) {
    let patch = Patch::Merge(json!({"spec": {"images": images}}));
    cluster.node_images().patch(node, &PatchParams::default(), &patch).await.unwrap();
}

/// One entry by hand.
pub fn entry(tag: &str, ttl: i32) -> Value {
    json!({"tag": tag, "pullPolicy": {"ttlSecondsAfterFinished": ttl}})
}

/// Reports for a node without an agent: this image, in the version that is asked for, is in this phase.
pub async fn report(cluster: &Cluster, node: &str, image: &str, phase: &str) {
    let version = tag(cluster, node, image).await.map_or(0, |tag| tag.version);
    report_version(cluster, node, image, phase, version).await;
}

/// Reports some version.
pub async fn report_version(cluster: &Cluster, node: &str, image: &str, phase: &str, version: i64) {
    let (name, tag) = parts(image);
    let now = cluster.clock.now().to_string();
    let mut status = json!({"tag": tag, "phase": phase, "version": version, "startTime": now});
    if matches!(phase, "Succeeded" | "Failed") {
        status["completionTime"] = json!(now);
    }
    let patch = json!({"status": {"desired": 1, "imageStatuses": {name: {"tags": [status]}}}});
    let api = cluster.node_images();
    api.patch_status(node, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Status, reason and message of a condition.
pub fn condition(conditions: Option<&Vec<Condition>>, type_: &str) -> Option<(String, String, String)> {
    let found = conditions?.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

/// Gives a Secret for `reg.example`, or replaces it.
pub async fn give_secret(cluster: &Cluster, name: &str, user: &str, password: &str) {
    let config = json!({"auths": {"reg.example": {"username": user, "password": password}}}).to_string();
    give_data(cluster, name, "kubernetes.io/dockerconfigjson", ".dockerconfigjson", &config).await;
}

/// Gives a Secret of any type in the namespace `default`, or replaces it.
pub async fn give_data(cluster: &Cluster, name: &str, type_: &str, key: &str, value: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": type_,
        "stringData": {key: value},
    });
    let api: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    if api.get_opt(name).await.unwrap().is_some() {
        api.patch(name, &PatchParams::default(), &Patch::Merge(secret)).await.unwrap();
    } else {
        let _: Secret = cluster.create(secret).await;
    }
}

/// The Secrets where agents may read them.
pub fn config_secrets(cluster: &Cluster) -> Api<Secret> {
    Api::namespaced(cluster.client.clone(), DEFAULT_CONFIG_NAMESPACE)
}

pub async fn copies(cluster: &Cluster) -> Vec<Secret> {
    config_secrets(cluster).list(&ListParams::default()).await.unwrap().items
}

/// One annotation of a Secret.
pub fn annotation(secret: &Secret, name: &str) -> Option<String> {
    secret.metadata.annotations.as_ref()?.get(name).cloned()
}

/// The notes of events with this reason about an object, oldest first.
pub async fn notes(cluster: &Cluster, kind: &str, name: &str, reason: &str) -> Vec<String> {
    let events = cluster.events().await.into_iter().filter(|event| {
        let about = event.regarding.clone().unwrap_or_default();
        about.kind.as_deref() == Some(kind)
            && about.name.as_deref() == Some(name)
            && event.reason.as_deref() == Some(reason)
    });
    events.filter_map(|event| event.note).collect()
}

/// The controller's requests whose path has this in it, since this many entries.
pub fn asked(cluster: &Cluster, since: usize, part: &str) -> Vec<Entry> {
    let journal = cluster.faults.journal();
    journal.into_iter().skip(since).filter(|entry| entry.path.contains(part)).collect()
}

/// The controller's requests for pods by which jobs select, since this many entries. Those of BroadcastJobs have a label.
pub fn asked_for_pods(cluster: &Cluster, since: usize) -> Vec<Entry> {
    let pods = asked(cluster, since, "/pods").into_iter();
    pods.filter(|entry| !entry.path.contains(BROADCAST_JOB_UID_LABEL)).collect()
}

/// Waits until a job is gone.
pub async fn gone_within(cluster: &Cluster, seconds: u64, name: &str) {
    let wait = Duration::from_secs(seconds);
    cluster
        .within(wait, "the end of the job", async || cluster.jobs().get_opt(name).await.unwrap().is_none())
        .await;
}

/// Waits until a node is told nothing about an image.
pub async fn untold_within(cluster: &Cluster, seconds: u64, node: &str, image: &str) {
    let wait = Duration::from_secs(seconds);
    cluster.within(wait, "an end of the entry", async || tag(cluster, node, image).await.is_none()).await;
}

/// Waits until a node is told about an image.
pub async fn told_within(cluster: &Cluster, seconds: u64, node: &str, image: &str) -> ImageTagSpec {
    let wait = Duration::from_secs(seconds);
    cluster.within(wait, "an entry", async || tag(cluster, node, image).await.is_some()).await;
    tag(cluster, node, image).await.unwrap()
}
