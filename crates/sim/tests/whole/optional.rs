//! Kinds that are left out: everything else works, and a kind is picked up when it appears.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use prewarm_embedded::faults::{Action, Faults, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::json;

/// All that can be left out.
const OPTIONAL: [&str; 3] = ["imagelistpulljobs", "broadcastjobs", "advancedcronjobs"];
/// So long until a kind that appears is looked for again.
const LOOKED_FOR: u64 = 40;

fn definitions(cluster: &Cluster) -> Api<CustomResourceDefinition> {
    Api::all(cluster.client.clone())
}

async fn undefine(cluster: &Cluster, plural: &str) {
    let name = format!("{plural}.apps.kruise.io");
    definitions(cluster).delete(&name, &DeleteParams::default()).await.unwrap();
}

async fn define(cluster: &Cluster, plural: &str) {
    let definition = prewarm_api::crd::all().iter().find(|crd| crd.spec.names.plural == plural).unwrap();
    definitions(cluster).create(&PostParams::default(), definition).await.unwrap();
}

/// Two nodes and an image, without any controller.
async fn furnished() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.publish("a:1", Duration::from_secs(1));
    cluster.add_nodes(2).await;
    cluster
}

async fn a_job_works(cluster: &Cluster, name: &str) {
    cluster.pull(name, json!({"image": "a:1", "parallelism": 2})).await;
    let status = cluster.finished_within(60, name).await.status.unwrap();
    assert_eq!((status.desired, status.succeeded), (2, 2));
}

async fn a_list_works(cluster: &Cluster, seconds: u64) {
    cluster.pull_list("stack", json!({"images": ["a:1"], "parallelism": 2})).await;
    let is_over = async || {
        let list = cluster.lists().get("stack").await.unwrap();
        list.status.is_some_and(|status| status.succeeded == 1)
    };
    cluster.within(Duration::from_secs(seconds), "the end of the list", is_over).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_other_definitions_a_job_works_and_they_are_picked_up_when_they_appear() {
    let mut cluster = furnished().await;
    for plural in OPTIONAL {
        undefine(&cluster, plural).await;
    }
    cluster.start_controller();
    a_job_works(&cluster, "warm").await;
    // What is not there is asked for now and then.
    let before = cluster.faults.journal().len();
    cluster.pass(600).await;
    let asked = cluster.faults.journal().len() - before;
    assert!(asked < 10 * 60, "{asked} requests in ten minutes");
    for plural in OPTIONAL {
        define(&cluster, plural).await;
    }
    a_list_works(&cluster, LOOKED_FOR + 20).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_takes_its_objects_along_and_nothing_else() {
    let mut cluster = furnished().await;
    cluster.start_controller();
    a_list_works(&cluster, 60).await;
    undefine(&cluster, "imagelistpulljobs").await;
    cluster.pass(LOOKED_FOR).await;
    a_job_works(&cluster, "warm").await;
    define(&cluster, "imagelistpulljobs").await;
    cluster.pass(LOOKED_FOR).await;
    a_list_works(&cluster, 60).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_rights_to_the_other_kinds_a_job_works() {
    let mut cluster = furnished().await;
    let refused = |verb, plural| ScriptedFault::always(Action::Forbidden).of(Filter::verb(verb).of(plural));
    let refused =
        OPTIONAL.iter().flat_map(|plural| [Verb::List, Verb::Watch].map(|verb| refused(verb, plural)));
    cluster.faults = Faults::scripted(refused.collect());
    cluster.start_controller();
    a_job_works(&cluster, "warm").await;
}

#[tokio::test(start_paused = true)]
async fn without_the_definition_of_jobs_entries_by_hand_are_pulled() {
    let mut cluster = furnished().await;
    undefine(&cluster, "imagepulljobs").await;
    cluster.start_controller();
    cluster.node_image_within(60, "node-1", |image| image.is_some()).await;
    let spec = json!({"spec": {"images": {"a": {"tags": [{"tag": "1", "version": 1, "pullPolicy": {"ttlSecondsAfterFinished": 600}}]}}}});
    let patch = kube::api::Patch::Merge(spec);
    cluster.node_images().patch("node-1", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let is_pulled = async || cluster.nodes["node-1"].runtime.has("a:1");
    cluster.within(Duration::from_mins(1), "the entry by hand", is_pulled).await;
}
