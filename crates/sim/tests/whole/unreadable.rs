//! Objects that a newer version wrote and this one cannot read: they and what they asked for are left as they are.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use prewarm_api::kruise::ImagePullJob;
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::{cluster, copies, give_secret, notes, owners};

const IMAGE: &str = "nginx:1";

/// Applies the definition of a newer version, which knows one more way to complete.
async fn renew_definition(cluster: &Cluster) {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let name = "imagepulljobs.apps.kruise.io";
    let mut definition = api.get(name).await.unwrap();
    for version in &mut definition.spec.versions {
        let mut schema =
            version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()).unwrap();
        for field in ["spec", "completionPolicy", "type"] {
            schema = schema.properties.as_mut().and_then(|fields| fields.get_mut(field)).unwrap();
        }
        schema.enum_ = None;
    }
    api.replace(name, &PostParams::default(), &definition).await.unwrap();
}

/// A newer client sets how a job completes.
async fn complete(cluster: &Cluster, way: &str) {
    let api: Api<DynamicObject> =
        Api::default_namespaced_with(cluster.client.clone(), &ApiResource::erase::<ImagePullJob>(&()));
    let patch = Patch::Merge(json!({"spec": {"completionPolicy": {"type": way}}}));
    api.patch("warm", &PatchParams::default(), &patch).await.unwrap();
}

/// Two nodes that are warmed by a job with a Secret, whose kind has a newer definition.
async fn warmed() -> Cluster {
    let cluster = cluster(2, &[IMAGE]).await;
    renew_definition(&cluster).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let spec = json!({
        "image": IMAGE, "parallelism": 2, "pullSecrets": ["registry"], "completionPolicy": {"type": "Never"},
    });
    cluster.pull("warm", spec).await;
    cluster
        .job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 2))
        .await;
    cluster
}

async fn assert_kept(cluster: &Cluster) {
    for node in ["node-1", "node-2"] {
        assert_eq!(owners(cluster, node, IMAGE).await, ["warm"], "{node}");
    }
    assert_eq!(copies(cluster).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_becomes_unreadable_keeps_its_entries_and_its_copy_and_is_told_once() {
    let cluster = warmed().await;
    complete(&cluster, "Sometimes").await;
    cluster.pass(3600).await;
    assert_kept(&cluster).await;
    let told = notes(&cluster, "ImagePullJob", "warm", "Unreadable").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("Sometimes"), "{told:?}");
    let metrics = cluster.controller_metrics();
    assert!(
        metrics.contains("prewarm_controller_unreadable_objects{kind=\"image_pull_job\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_starts_leaves_what_it_cannot_read_and_goes_on_when_it_can() {
    let mut cluster = warmed().await;
    cluster.kill_controller().await;
    complete(&cluster, "Sometimes").await;
    cluster.start_controller();
    cluster.pass(3600).await;
    assert_kept(&cluster).await;
    cluster.delete_node("node-2").await;
    complete(&cluster, "Never").await;
    cluster.job_within(60, "warm", |job| job.status.as_ref().is_some_and(|status| status.desired == 1)).await;
}
