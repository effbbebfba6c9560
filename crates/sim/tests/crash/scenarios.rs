//! Stories, each about one thing that jobs do.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::kruise::ImagePullJob;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::Scenario;

/// How long a story waits for what must come, in its own time. With a dead controller's Lease or a paused write it may
/// take longer than usual.
pub const PATIENCE: u64 = 600;

/// Names scenarios, and which way they are played.
macro_rules! scenarios {
    ($all:ident: $($name:expr, $nodes:literal, $images:expr, $play:ident;)*) => {
        pub const $all: &[Scenario] = &[$(
            Scenario { name: $name, nodes: $nodes, images: &$images, play: |cluster| $play(cluster).boxed_local() },
        )*];
    };
}

pub(crate) use scenarios;

scenarios! { SCENARIOS:
    "one node after the other", 3, [("app:1", 1000)], one_after_the_other;
    "all nodes at once", 3, [("app:1", 1000)], all_at_once;
    "an image that cannot be pulled", 2, [("other:1", 10)], not_found;
    "a job deleted while nodes pull", 2, [("app:1", 60_000)], deleted_early;
    "a job deleted when it is over", 2, [("app:1", 100)], deleted_late;
    "a job that goes by its TTL", 2, [("app:1", 100)], goes_by_ttl;
    "a job that takes too long", 2, [("app:1", 900_000)], too_late;
    "a job that is paused and resumed", 3, [("app:1", 1000)], paused;
    "two jobs that want the same", 2, [("app:1", 60_000)], sharing;
    "a job that wants the newest of what is there", 2, [("app:1", 500)], always_joins;
    "a private image", 2, [("reg.example/app:1", 500)], private;
    "a secret that comes late", 1, [("reg.example/app:1", 500)], late_secret;
    "a job that never ends", 2, [("app:1", 500)], never_ends;
    "an image that a node loses", 1, [("app:1", 500)], lost_image;
    "a node that joins", 1, [("app:1", 500)], node_joins;
    "a node that leaves", 2, [("app:1", 30_000)], node_leaves;
    "a node that stops matching", 2, [("app:1", 240_000)], stops_matching;
    "nodes by their pods", 2, [("app:1", 500)], by_pods;
    "a list of images", 2, [("one:1", 200), ("two:1", 300), ("three:1", 400)], list;
    "a list that changes", 2, [("one:1", 200), ("two:1", 300), ("three:1", 400)], list_changes;
    "a list that is deleted", 1, [("one:1", 200), ("two:1", 300)], list_deleted;
    "an entry by hand that a job joins and leaves", 1, [("app:1", 500)], by_hand;
}

async fn one_after_the_other(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1"})).await;
    cluster.finished_within(PATIENCE, "warm").await;
}

async fn all_at_once(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 3})).await;
    cluster.finished_within(PATIENCE, "warm").await;
}

async fn not_found(cluster: &mut Cluster) {
    let policy = json!({"backoffLimit": 1});
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 2, "pullPolicy": policy})).await;
    cluster.finished_within(PATIENCE, "warm").await;
}

async fn deleted_early(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 2})).await;
    active(cluster, "warm", 2).await;
    cluster.delete_job("warm").await;
    no_entries(cluster).await;
    job_gone(cluster, "warm").await;
}

async fn deleted_late(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 2})).await;
    cluster.finished_within(PATIENCE, "warm").await;
    cluster.delete_job("warm").await;
    no_entries(cluster).await;
    job_gone(cluster, "warm").await;
}

async fn goes_by_ttl(cluster: &mut Cluster) {
    let policy = json!({"ttlSecondsAfterFinished": 20});
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 2, "completionPolicy": policy})).await;
    job_gone(cluster, "warm").await;
    no_entries(cluster).await;
}

async fn too_late(cluster: &mut Cluster) {
    let spec = json!({
        "image": "app:1", "parallelism": 0, "pullPolicy": {"timeoutSeconds": 80},
        "completionPolicy": {"activeDeadlineSeconds": 100},
    });
    cluster.pull("warm", spec).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).0 == 2).await;
    // The nodes begin later than the job, so that the job's deadline comes before theirs, also while a new leader is sought.
    cluster.pass(30).await;
    cluster.edit("warm", json!({"spec": {"parallelism": 2}})).await;
    cluster.finished_within(PATIENCE, "warm").await;
    cluster.pass(120).await;
}

async fn paused(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 0})).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).0 == 3).await;
    cluster.edit("warm", json!({"spec": {"parallelism": 2}})).await;
    cluster.finished_within(PATIENCE, "warm").await;
}

async fn sharing(cluster: &mut Cluster) {
    cluster.pull("first", json!({"image": "app:1", "parallelism": 2})).await;
    active(cluster, "first", 2).await;
    cluster.pull("second", json!({"image": "app:1", "parallelism": 2})).await;
    cluster.finished_within(PATIENCE, "first").await;
    cluster.finished_within(PATIENCE, "second").await;
}

async fn always_joins(cluster: &mut Cluster) {
    cluster.pull("first", json!({"image": "app:1", "parallelism": 2})).await;
    cluster.finished_within(PATIENCE, "first").await;
    cluster.pull("second", json!({"image": "app:1", "parallelism": 2, "imagePullPolicy": "Always"})).await;
    cluster.finished_within(PATIENCE, "second").await;
}

async fn private(cluster: &mut Cluster) {
    lock(cluster);
    secret(cluster, "login", "right").await;
    cluster
        .pull("warm", json!({"image": "reg.example/app:1", "parallelism": 2, "pullSecrets": ["login"]}))
        .await;
    cluster.finished_within(PATIENCE, "warm").await;
}

async fn late_secret(cluster: &mut Cluster) {
    lock(cluster);
    let spec = json!({
        "image": "reg.example/app:1", "pullSecrets": ["login"], "completionPolicy": {"type": "Never"},
        "pullPolicy": {"backoffLimit": 0},
    });
    cluster.pull("warm", spec).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).3 == 1).await;
    secret(cluster, "login", "right").await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).2 == 1).await;
}

async fn never_ends(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "completionPolicy": {"type": "Never"}})).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).2 == 2).await;
}

async fn lost_image(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "completionPolicy": {"type": "Never"}})).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).2 == 1).await;
    cluster.pass(60).await;
    cluster.nodes["node-1"].runtime.remove("docker.io/library/app:1");
    let is_back = |node: &prewarm_sim::Node| node.runtime.has("app:1");
    cluster
        .within(Duration::from_secs(PATIENCE), "the image", async || is_back(&cluster.nodes["node-1"]))
        .await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).2 == 1).await;
}

async fn node_joins(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "completionPolicy": {"type": "Never"}})).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).2 == 1).await;
    cluster.add_node("node-2", json!({})).await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).2 == 2).await;
}

async fn node_leaves(cluster: &mut Cluster) {
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 2})).await;
    active(cluster, "warm", 2).await;
    cluster.delete_node("node-2").await;
    cluster.finished_within(PATIENCE, "warm").await;
}

async fn stops_matching(cluster: &mut Cluster) {
    label(cluster, "node-1", "gpu").await;
    // Until the controller has heard it, also with watches that break: a job that selects no node is over.
    cluster.pass(60).await;
    let selector = json!({"matchLabels": {"pool": "gpu"}});
    cluster.pull("warm", json!({"image": "app:1", "parallelism": 1, "selector": selector})).await;
    active(cluster, "warm", 1).await;
    label(cluster, "node-2", "gpu").await;
    cluster.job_within(PATIENCE, "warm", |job| status(job).0 == 2).await;
    label(cluster, "node-2", "cpu").await;
    let job = cluster.finished_within(PATIENCE, "warm").await;
    assert_eq!(status(&job).0, 1);
}

async fn by_pods(cluster: &mut Cluster) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"nodeName": "node-2", "containers": [{"name": "main", "image": "web:1"}]},
    });
    let _: Pod = cluster.create(pod).await;
    let selector = json!({"matchLabels": {"app": "web"}});
    cluster.node_image_within(PATIENCE, "node-2", |image| image.is_some()).await;
    cluster.pull("warm", json!({"image": "app:1", "podSelector": selector})).await;
    let job = cluster.finished_within(PATIENCE, "warm").await;
    assert_eq!(status(&job), (1, 0, 1, 0));
}

async fn list(cluster: &mut Cluster) {
    cluster.pull_list("stack", json!({"images": ["one:1", "two:1", "three:1"], "parallelism": 2})).await;
    list_completed(cluster, 3).await;
}

async fn list_changes(cluster: &mut Cluster) {
    let spec = json!({"images": ["one:1", "two:1"], "parallelism": 2, "completionPolicy": {"type": "Never"}});
    cluster.pull_list("stack", spec).await;
    list_completed(cluster, 2).await;
    edit_list(cluster, json!({"spec": {"images": ["two:1", "three:1"]}})).await;
    list_completed(cluster, 2).await;
    jobs(cluster, 2, &["two:1", "three:1"]).await;
    edit_list(cluster, json!({"spec": {"pullPolicy": {"backoffLimit": 7}}})).await;
    cluster
        .written_within(Duration::from_secs(PATIENCE), "new children", async || {
            let jobs = cluster.jobs().list(&kube::api::ListParams::default()).await.expect("jobs").items;
            jobs.len() == 2
                && jobs.iter().all(|job| job.spec.pull_policy.backoff_limit == 7 && status(job).2 == 2)
        })
        .await;
    list_completed(cluster, 2).await;
}

async fn list_deleted(cluster: &mut Cluster) {
    cluster.pull_list("stack", json!({"images": ["one:1", "two:1"]})).await;
    list_completed(cluster, 2).await;
    cluster.lists().delete("stack", &DeleteParams::background()).await.expect("a list to delete");
    jobs(cluster, 0, &[]).await;
    no_entries(cluster).await;
}

async fn by_hand(cluster: &mut Cluster) {
    cluster.node_image_within(PATIENCE, "node-1", |image| image.is_some()).await;
    let entry = json!({"tag": "1", "pullPolicy": {"ttlSecondsAfterFinished": 86400}});
    let patch = json!({"spec": {"images": {"app": {"tags": [entry]}}}});
    cluster
        .node_images()
        .patch("node-1", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("an entry");
    cluster.pull("warm", json!({"image": "app:1"})).await;
    cluster.finished_within(PATIENCE, "warm").await;
    cluster.delete_job("warm").await;
    job_gone(cluster, "warm").await;
    cluster
        .node_image_within(PATIENCE, "node-1", |image| {
            let tag =
                image.and_then(|image| image.spec.images.get("app")).and_then(|image| image.tags.first());
            tag.is_some_and(|tag| tag.owner_references.as_ref().is_none_or(Vec::is_empty))
        })
        .await;
}

/// Desired, active, succeeded, failed.
fn status(job: &ImagePullJob) -> (i32, i32, i32, i32) {
    let status = job.status.clone().unwrap_or_default();
    (status.desired, status.active, status.succeeded, status.failed)
}

/// Waits until so many nodes of a job pull, and their agents have begun.
async fn active(cluster: &Cluster, name: &str, count: i32) {
    cluster.job_within(PATIENCE, name, |job| status(job).1 == count).await;
    cluster
        .written_within(Duration::from_secs(PATIENCE), "the beginning of the pulls", async || {
            let images = cluster
                .node_images()
                .list(&kube::api::ListParams::default())
                .await
                .expect("NodeImages")
                .items;
            let pulling: i32 =
                images.iter().filter_map(|image| image.status.as_ref()).map(|status| status.pulling).sum();
            pulling == count
        })
        .await;
}

async fn job_gone(cluster: &Cluster, name: &str) {
    cluster
        .written_within(Duration::from_secs(PATIENCE), "the end of the job's object", async || {
            cluster.jobs().get_opt(name).await.expect("the API answers").is_none()
        })
        .await;
}

pub async fn no_entries(cluster: &Cluster) {
    for node in cluster.nodes.keys() {
        cluster
            .node_image_within(PATIENCE, node, |image| {
                image.is_some_and(|image| image.spec.images.is_empty())
            })
            .await;
    }
}

async fn list_completed(cluster: &Cluster, completed: i32) {
    cluster
        .written_within(Duration::from_secs(PATIENCE), "the end of the list", async || {
            let list = cluster.lists().get("stack").await.expect("a list");
            list.status.is_some_and(|status| status.completed == completed && status.succeeded == completed)
        })
        .await;
}

async fn edit_list(cluster: &Cluster, patch: Value) {
    cluster
        .lists()
        .patch("stack", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("a list to edit");
}

/// Waits until there are exactly so many jobs, for these images.
async fn jobs(cluster: &Cluster, count: usize, images: &[&str]) {
    cluster
        .written_within(Duration::from_secs(PATIENCE), "the children", async || {
            let jobs = cluster.jobs().list(&kube::api::ListParams::default()).await.expect("jobs").items;
            jobs.len() == count && jobs.iter().all(|job| images.contains(&job.spec.image.as_str()))
        })
        .await;
}

async fn label(cluster: &Cluster, node: &str, pool: &str) {
    let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.client.clone());
    let patch = json!({"metadata": {"labels": {"pool": pool}}});
    api.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a Node to label");
}

/// Makes the image private on every node.
pub fn lock(cluster: &Cluster) {
    for node in cluster.nodes.values() {
        node.runtime.image("reg.example/app:1").needs("robot", "right");
    }
}

/// Makes a Secret with a password for the registry of that image.
pub async fn secret(cluster: &Cluster, name: &str, password: &str) {
    let config = json!({"auths": {"reg.example": {"username": "robot", "password": password}}});
    let data = STANDARD.encode(config.to_string());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": data},
    });
    let _: Secret = cluster.create(secret).await;
}
