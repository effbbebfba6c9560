//! Copies of the Secrets that jobs name (kruise 7.7, S5), and what a late one does (kruise W12).

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::names::{SECRET_MODE_ANNOTATION, SECRET_REFERENCES_ANNOTATION, SECRET_SOURCE_ANNOTATION};
use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    annotation, asked, cluster, condition, config_secrets, copies, give_secret, gone_within, notes,
    secrets_of, silent_cluster, tag, told_within,
};

const IMAGE: &str = "reg.example/app:1";
const NAME: &str = "reg.example/app";

/// A Secret in the config namespace with these annotations.
async fn put_copy(cluster: &Cluster, name: &str, annotations: Value) -> Secret {
    cluster
        .create(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": "kruise-daemon-config", "annotations": annotations},
            "stringData": {".dockerconfigjson": "{}"},
        }))
        .await
}

fn of(source: &str, references: &str) -> Value {
    json!({
        SECRET_SOURCE_ANNOTATION: source, SECRET_REFERENCES_ANNOTATION: references,
        SECRET_MODE_ANNOTATION: "batch",
    })
}

async fn names(cluster: &Cluster) -> Vec<String> {
    copies(cluster).await.into_iter().filter_map(|copy| copy.metadata.name).collect()
}

async fn references(cluster: &Cluster, name: &str) -> Option<String> {
    annotation(&config_secrets(cluster).get(name).await.unwrap(), SECRET_REFERENCES_ANNOTATION)
}

/// A job of the namespace `default` with this Secret that never ends by itself.
async fn pull(cluster: &Cluster, name: &str, secrets: &[&str]) {
    let spec = json!({"image": IMAGE, "pullSecrets": secrets, "completionPolicy": {"type": "Never"}});
    cluster.pull(name, spec).await;
}

/// kruise T70, T76.
#[tokio::test(start_paused = true)]
async fn a_copy_has_what_its_source_has_and_says_whose_it_is() {
    let cluster = silent_cluster(&["a"]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let source: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    let extra = json!({"metadata": {"labels": {"team": "red"}, "annotations": {"note": "mine"}}});
    source.patch("registry", &PatchParams::default(), &Patch::Merge(extra)).await.unwrap();
    pull(&cluster, "warm", &["registry"]).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    let copy = copies(&cluster).await.remove(0);
    let source = source.get("registry").await.unwrap();
    assert_eq!(
        (&copy.type_, &copy.data, &copy.metadata.labels),
        (&source.type_, &source.data, &source.metadata.labels)
    );
    assert_eq!(annotation(&copy, SECRET_SOURCE_ANNOTATION).as_deref(), Some("default/registry"));
    assert_eq!(annotation(&copy, SECRET_REFERENCES_ANNOTATION).as_deref(), Some("default/warm"));
    assert_eq!(annotation(&copy, SECRET_MODE_ANNOTATION).as_deref(), Some("batch"));
    assert_eq!(annotation(&copy, "note").as_deref(), Some("mine"));
    let name = copy.metadata.name.unwrap();
    let digits = name.strip_prefix("registry-").unwrap();
    assert!(digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
}

/// kruise T71, T76, R61: several jobs share one copy, and nothing is written when nothing changes.
#[tokio::test(start_paused = true)]
async fn jobs_with_one_source_share_one_copy() {
    let cluster = silent_cluster(&["a"]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    for job in ["one", "two", "three"] {
        pull(&cluster, job, &["registry"]).await;
    }
    cluster.pass(10).await;
    let name = names(&cluster).await.remove(0);
    assert_eq!(names(&cluster).await.len(), 1);
    assert_eq!(references(&cluster, &name).await.as_deref(), Some("default/one,default/three,default/two"));
    let version = copies(&cluster).await[0].metadata.resource_version.clone();
    cluster.pass(120).await;
    assert_eq!(copies(&cluster).await[0].metadata.resource_version, version);
    cluster.delete_job("three").await;
    gone_within(&cluster, 10, "three").await;
    assert_eq!(references(&cluster, &name).await.as_deref(), Some("default/one,default/two"));
}

/// kruise T60, T63, T67, T68, T73: what a job holds is released at its end, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_job_that_ends_or_goes_releases_its_copies_alone() {
    for end in ["deleted", "finished"] {
        let cluster = cluster(1, &["reg.example/app:1"]).await;
        for secret in ["mine", "shared", "theirs"] {
            give_secret(&cluster, secret, "robot", "hunter2").await;
        }
        pull(&cluster, "stays", &["shared", "theirs"]).await;
        let spec = json!({"image": IMAGE, "parallelism": 0, "pullSecrets": ["mine", "shared"]});
        cluster.pull("ends", spec).await;
        cluster.pass(10).await;
        assert_eq!(copies(&cluster).await.len(), 3);
        if end == "deleted" {
            cluster.delete_job("ends").await;
        } else {
            cluster.edit("ends", json!({"spec": {"parallelism": 1}})).await;
            cluster.finished_within(30, "ends").await;
        }
        cluster.pass(5).await;
        let left: Vec<_> = copies(&cluster).await;
        let sources: Vec<_> =
            left.iter().filter_map(|copy| annotation(copy, SECRET_SOURCE_ANNOTATION)).collect();
        assert_eq!(sources, ["default/shared", "default/theirs"], "{end}");
        for copy in &left {
            assert_eq!(annotation(copy, SECRET_REFERENCES_ANNOTATION).as_deref(), Some("default/stays"));
        }
    }
}

/// kruise T62–T65, T68, T71: copies that are there already.
#[tokio::test(start_paused = true)]
async fn a_copy_that_exists_is_used_and_what_is_none_is_left_alone() {
    let mut cluster = silent_cluster(&["a"]).await;
    cluster.stop_controller().await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    put_copy(&cluster, "registry-000001", of("default/registry", "default/other")).await;
    put_copy(&cluster, "registry-000002", of("default/registry", "default/warm")).await;
    put_copy(&cluster, "unrelated", json!({"note": "a person's own"})).await;
    pull(&cluster, "warm", &["registry"]).await;
    pull(&cluster, "new", &["registry"]).await;
    cluster.start_controller();
    told_within(&cluster, 10, "a", IMAGE).await;
    cluster.pass(10).await;
    assert_eq!(names(&cluster).await, ["registry-000001", "registry-000002", "unrelated"]);
    assert_eq!(references(&cluster, "registry-000001").await.as_deref(), Some("default/new"));
    assert_eq!(references(&cluster, "registry-000002").await.as_deref(), Some("default/warm"));
    let source: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    let data = source.get("registry").await.unwrap().data;
    for name in ["registry-000001", "registry-000002"] {
        assert_eq!(config_secrets(&cluster).get(name).await.unwrap().data, data, "brought up to date");
    }
    let mut used: Vec<_> =
        secrets_of(&cluster, "a", NAME).await.into_iter().filter_map(|secret| secret.name).collect();
    used.sort();
    assert_eq!(used, ["registry-000001", "registry-000002"]);
}

/// kruise T68, T77: a copy whose annotation lists nobody, or nobody who lives, goes.
#[tokio::test(start_paused = true)]
async fn a_copy_that_nobody_uses_is_deleted() {
    let mut cluster = silent_cluster(&["a"]).await;
    cluster.stop_controller().await;
    put_copy(&cluster, "one-000001", of("default/one", "")).await;
    put_copy(&cluster, "two-000001", of("default/two", "default/gone,default/too")).await;
    put_copy(&cluster, "not-a-copy", json!({SECRET_REFERENCES_ANNOTATION: "default/gone"})).await;
    cluster.start_controller();
    cluster.pass(10).await;
    assert_eq!(names(&cluster).await, ["not-a-copy"]);
}

/// kruise T69.
#[tokio::test(start_paused = true)]
async fn jobs_of_the_config_namespace_use_the_secrets_themselves() {
    let cluster = silent_cluster(&["a"]).await;
    put_copy(&cluster, "registry", json!({})).await;
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": "warm", "namespace": "kruise-daemon-config"},
        "spec": {"image": IMAGE, "pullSecrets": ["registry"], "completionPolicy": {}},
    });
    let _: prewarm_api::kruise::ImagePullJob = cluster.create(job).await;
    told_within(&cluster, 10, "a", IMAGE).await;
    let used = secrets_of(&cluster, "a", NAME).await.remove(0);
    assert_eq!((used.name.as_deref(), used.mode), (Some("registry"), None));
    assert_eq!(names(&cluster).await, ["registry"]);
}

/// kruise T61, T75.
#[tokio::test(start_paused = true)]
async fn a_job_without_secrets_reads_and_writes_none() {
    let cluster = cluster(1, &[IMAGE]).await;
    let since = cluster.faults.journal().len();
    cluster.pull("warm", json!({"image": IMAGE})).await;
    cluster.finished_within(30, "warm").await;
    cluster.delete_job("warm").await;
    gone_within(&cluster, 5, "warm").await;
    let about: Vec<_> =
        asked(&cluster, since, "/secrets").into_iter().filter(|entry| entry.verb != Verb::Watch).collect();
    assert!(about.is_empty(), "{about:?}");
}

/// kruise T66, T68, T76: errors are tried again.
#[tokio::test(start_paused = true)]
async fn troubles_with_copies_are_said_and_tried_again() {
    let cluster = cluster(1, &[IMAGE]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let creations = Filter::verb(Verb::Create).of("secrets");
    cluster.faults.add(ScriptedFault::always(Action::InternalError).of(creations));
    cluster.pull("warm", json!({"image": IMAGE, "pullSecrets": ["registry"]})).await;
    cluster.pass(20).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await, None, "nothing is pulled without it");
    let status = cluster.status("warm").await;
    let ready = condition(status.conditions.as_ref(), "SecretsReady").unwrap();
    assert_eq!((ready.0.as_str(), ready.1.as_str()), ("False", "WaitingForSecrets"));
    assert!(ready.2.contains("500"), "{}", ready.2);
    cluster.faults.clear_script();
    let deletions = Filter::verb(Verb::Delete).of("secrets");
    cluster.faults.add(ScriptedFault::at(1, Action::InternalError).of(deletions));
    cluster.finished_within(400, "warm").await;
    let wait = Duration::from_secs(10);
    cluster.within(wait, "an end of the copy", async || copies(&cluster).await.is_empty()).await;
}

/// kruise T74.
#[tokio::test(start_paused = true)]
async fn without_the_config_namespace_a_job_with_secrets_says_so_and_waits() {
    let cluster = cluster(1, &[IMAGE]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client.clone());
    namespaces.delete("kruise-daemon-config", &DeleteParams::default()).await.unwrap();
    cluster.pull("warm", json!({"image": IMAGE, "pullSecrets": ["registry"]})).await;
    cluster.pass(20).await;
    let status = cluster.status("warm").await;
    let (holds, _, message) = condition(status.conditions.as_ref(), "SecretsReady").unwrap();
    assert!(holds == "False" && message.contains("kruise-daemon-config"), "{message}");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-daemon-config"}});
    let _: k8s_openapi::api::core::v1::Namespace = cluster.create_in_cluster(namespace).await;
    assert_eq!(cluster.finished_within(400, "warm").await.status.unwrap().succeeded, 1);
}

/// kruise T72: the pull goes on without it, and people are told.
#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_told_and_does_not_hold_up_the_pull() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.pull("warm", json!({"image": IMAGE, "pullSecrets": ["absent"]})).await;
    let status = cluster.finished_within(30, "warm").await.status.unwrap();
    assert_eq!(status.succeeded, 1);
    let (holds, reason, message) = condition(status.conditions.as_ref(), "SecretsReady").unwrap();
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "SecretMissing"));
    cluster.pass(5).await;
    assert_eq!(notes(&cluster, "ImagePullJob", "warm", "SecretMissing").await, [message]);
}

/// kruise W12, R63.
#[tokio::test(start_paused = true)]
async fn a_secret_that_comes_late_has_failed_nodes_tried_once_more() {
    let cluster = cluster(3, &[IMAGE]).await;
    for node in cluster.nodes.values() {
        node.runtime.image(IMAGE).needs("robot", "hunter2");
    }
    let spec = json!({
        "image": IMAGE, "parallelism": 3, "pullSecrets": ["registry"], "pullPolicy": {"backoffLimit": 0},
        "completionPolicy": {"type": "Never"},
    });
    cluster.pull("warm", spec).await;
    cluster.job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.failed == 3)).await;
    cluster.pass(300).await;
    let before = cluster.nodes["node-1"].pulls(IMAGE);
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    cluster
        .job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 3))
        .await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().version, 1);
    assert_eq!(cluster.nodes["node-1"].pulls(IMAGE), before + 1);
}

/// kruise W12: once. A Secret that does not help is no reason to ask for ever.
#[tokio::test(start_paused = true)]
async fn a_late_secret_that_does_not_help_is_tried_once() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).needs("robot", "hunter2");
    let spec = json!({
        "image": IMAGE, "pullSecrets": ["registry"], "pullPolicy": {"backoffLimit": 0},
        "completionPolicy": {"type": "Never"},
    });
    cluster.pull("warm", spec).await;
    cluster.job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.failed == 1)).await;
    give_secret(&cluster, "registry", "robot", "wrong").await;
    cluster.pass(3600).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().version, 1);
}
