//! People who delete, edit and make again what a job is working with: what is wanted comes back, what is gone leaves
//! nothing behind.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use serde_json::json;

use crate::support::{
    asked_for_pods, cluster, config_secrets, copies, give_secret, gone_within, node_image, owners,
    silent_cluster, tag, told_within, untold_within,
};

const IMAGE: &str = "nginx:1";

fn never(image: &str) -> serde_json::Value {
    json!({"image": image, "parallelism": 5, "completionPolicy": {"type": "Never"}})
}

fn succeeded(count: i32) -> impl Fn(&ImagePullJob) -> bool {
    move |job| job.status.as_ref().is_some_and(|status| status.succeeded == count)
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_made_again_under_its_name_is_another_job() {
    let cluster = cluster(2, &[IMAGE, "nginx:2"]).await;
    cluster.pull("warm", never(IMAGE)).await;
    cluster.job_within(30, "warm", succeeded(2)).await;
    cluster.delete_job("warm").await;
    gone_within(&cluster, 5, "warm").await;
    let other = cluster.pull("warm", never("nginx:2")).await.metadata.uid;
    cluster.job_within(30, "warm", succeeded(2)).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await, None);
    let owner = tag(&cluster, "node-1", "nginx:2").await.unwrap().owner_references.unwrap().remove(0);
    assert_eq!(owner.uid, other);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_image_is_made_again_with_what_jobs_want() {
    let cluster = cluster(2, &[IMAGE]).await;
    cluster.pull("warm", never(IMAGE)).await;
    cluster.job_within(30, "warm", succeeded(2)).await;
    let before = node_image(&cluster, "node-1").await.metadata.uid;
    cluster.node_images().delete("node-1", &DeleteParams::default()).await.unwrap();
    cluster.pass(10).await;
    let after: NodeImage = node_image(&cluster, "node-1").await;
    assert_ne!(after.metadata.uid, before);
    assert_eq!(owners(&cluster, "node-1", IMAGE).await, ["warm"]);
    cluster.job_within(10, "warm", succeeded(2)).await;
    assert_eq!(cluster.nodes["node-1"].pulls(IMAGE), 1, "the image is there");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_copy_of_a_secret_is_made_again_unless_its_source_is_gone_too() {
    let cluster = silent_cluster(&["a"]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let mut spec = never(IMAGE);
    spec["pullSecrets"] = json!(["registry"]);
    cluster.pull("warm", spec).await;
    told_within(&cluster, 10, "a", IMAGE).await;
    let copy = copies(&cluster).await.remove(0);
    let name = copy.metadata.name.clone().unwrap();
    config_secrets(&cluster).delete(&name, &DeleteParams::default()).await.unwrap();
    cluster.pass(15).await;
    assert_eq!(copies(&cluster).await[0].data, copy.data);
    let sources: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    sources.delete("registry", &DeleteParams::default()).await.unwrap();
    cluster.pass(15).await;
    assert_eq!(
        copies(&cluster).await[0].data,
        copy.data,
        "whoever replaces a Secret deletes it for a moment"
    );
    cluster.pass(45).await;
    assert!(copies(&cluster).await.is_empty());
    cluster.delete_job("warm").await;
    gone_within(&cluster, 10, "warm").await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_somebody_takes_off_is_put_back() {
    let cluster = silent_cluster(&["a"]).await;
    let mut private = never(IMAGE);
    private["pullSecrets"] = json!(["registry"]);
    cluster.pull("warm", private).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    cluster.edit("warm", json!({"metadata": {"finalizers": null}})).await;
    cluster.pass(3).await;
    let job = cluster.jobs().get("warm").await.unwrap();
    assert_eq!(job.metadata.finalizers.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_wipes_is_written_again() {
    let cluster = cluster(2, &[IMAGE]).await;
    cluster.pull("warm", never(IMAGE)).await;
    cluster.job_within(30, "warm", succeeded(2)).await;
    let wipe = Patch::Merge(json!({"status": {"desired": 9, "succeeded": 0, "message": "hello"}}));
    cluster.jobs().patch_status("warm", &PatchParams::default(), &wipe).await.unwrap();
    let status = cluster.job_within(5, "warm", succeeded(2)).await.status.unwrap();
    assert_eq!((status.desired, status.message.as_deref()), (2, Some("job is running, progress 100.0%")));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_takes_its_jobs_entries_and_copies_along() {
    let cluster = silent_cluster(&["a"]).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    let _: Namespace = cluster.create_in_cluster(namespace).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry", "namespace": "team"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{}"},
    });
    let _: Secret = cluster.create(secret).await;
    let mut spec = never(IMAGE);
    spec["pullSecrets"] = json!(["registry"]);
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": "warm", "namespace": "team"}, "spec": spec,
    });
    let _: ImagePullJob = cluster.create(job).await;
    told_within(&cluster, 10, "a", IMAGE).await;
    assert_eq!(copies(&cluster).await.len(), 1);
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces.delete("team", &DeleteParams::background()).await.unwrap();
    untold_within(&cluster, 30, "a", IMAGE).await;
    let wait = Duration::from_secs(10);
    cluster.within(wait, "an end of the copy", async || copies(&cluster).await.is_empty()).await;
    let jobs: Api<ImagePullJob> = Api::namespaced(cluster.client.clone(), "team");
    assert!(jobs.get_opt("warm").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_selects_by_names_instead_of_pods_watches_no_pods() {
    let cluster = cluster(2, &[IMAGE]).await;
    let mut spec = never(IMAGE);
    spec["podSelector"] = json!({"matchLabels": {"app": "web"}});
    cluster.pull("warm", spec).await;
    cluster.pass(5).await;
    assert_eq!(cluster.status("warm").await.desired, 0);
    cluster.edit("warm", json!({"spec": {"podSelector": null, "selector": {"names": ["node-2"]}}})).await;
    cluster.job_within(10, "warm", succeeded(1)).await;
    let since = cluster.faults.journal().len();
    cluster.pass(900).await;
    assert!(asked_for_pods(&cluster, since).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_while_it_pulls_cancels_the_pull() {
    let cluster = cluster(1, &[IMAGE]).await;
    let node = &cluster.nodes["node-1"];
    node.runtime.image(IMAGE).hangs();
    cluster.pull("warm", never(IMAGE)).await;
    node.runtime.started(IMAGE).await;
    cluster.delete_job("warm").await;
    gone_within(&cluster, 5, "warm").await;
    untold_within(&cluster, 5, "node-1", IMAGE).await;
    let wait = Duration::from_secs(5);
    let is_over = async || {
        let calls = node.runtime.calls_of(IMAGE);
        calls.iter().all(|call| call.outcome != prewarm_runtime::fake::Outcome::Running)
    };
    cluster.within(wait, "an end of the pull", is_over).await;
    assert!(!node.runtime.has(IMAGE));
}
