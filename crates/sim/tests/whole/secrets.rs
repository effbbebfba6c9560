//! Copies of the Secrets that jobs name (kruise 7.7, S5), and what a late one does (kruise W12).
//!
//! Long because each test is a story of its own with one cluster.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use prewarm_api::names::{SECRET_MODE_ANNOTATION, SECRET_REFERENCES_ANNOTATION, SECRET_SOURCE_ANNOTATION};
use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    annotation, asked, cluster, condition, config_secrets, copies, give_data, give_secret, gone_within,
    notes, secrets_of, silent_cluster, tag, told_within,
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
async fn a_copy_has_what_its_job_needs_and_says_whose_it_is() {
    let cluster = silent_cluster(&["a"]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let source: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    let extra = json!({"metadata": {"labels": {"team": "red"}, "annotations": {"note": "mine"}}});
    source.patch("registry", &PatchParams::default(), &Patch::Merge(extra)).await.unwrap();
    pull(&cluster, "warm", &["registry"]).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    let copy = copies(&cluster).await.remove(0);
    let source = source.get("registry").await.unwrap();
    assert_eq!((&copy.type_, &copy.data), (&source.type_, &source.data));
    assert_eq!(copy.metadata.labels, None, "labels of deployment tools would claim it");
    assert_eq!(annotation(&copy, SECRET_SOURCE_ANNOTATION).as_deref(), Some("default/registry"));
    assert_eq!(annotation(&copy, SECRET_REFERENCES_ANNOTATION).as_deref(), Some("default/warm"));
    assert_eq!(annotation(&copy, SECRET_MODE_ANNOTATION).as_deref(), Some("batch"));
    assert_eq!(annotation(&copy, "note"), None);
    let name = copy.metadata.name.unwrap();
    let digits = name.strip_prefix("registry-").unwrap();
    assert!(digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
}

/// Only the entries for the registries of the jobs' images, and nothing else of the Secret.
#[tokio::test(start_paused = true)]
async fn a_copy_holds_the_entries_for_the_registries_of_its_jobs_alone() {
    let cluster = silent_cluster(&["a"]).await;
    let config = r#"{"HttpHeaders":{"x":"hunter2-0"},"auths":{"reg.example":{"auth":"cjE6aHVudGVyMi0x"},
        "quay.io":{"auth":"cjI6aHVudGVyMi0y"},"ghcr.io":{"auth":"cjM6aHVudGVyMi0z"}}}"#;
    give_data(&cluster, "registry", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", config).await;
    let source: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    let extra = json!({"stringData": {"tls.key": "hunter2-4"}});
    source.patch("registry", &PatchParams::default(), &Patch::Merge(extra)).await.unwrap();
    pull(&cluster, "warm", &["registry"]).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    let held = async || {
        let data = copies(&cluster).await.remove(0).data.unwrap();
        let text =
            |(key, value): (String, k8s_openapi::ByteString)| (key, String::from_utf8(value.0).unwrap());
        data.into_iter().map(text).collect::<Vec<_>>()
    };
    let key = ".dockerconfigjson".to_owned();
    let reg = r#"{"auths":{"reg.example":{"auth":"cjE6aHVudGVyMi0x"}}}"#.to_owned();
    assert_eq!(held().await, [(key.clone(), reg.clone())]);
    let spec =
        json!({"image": "quay.io/app:1", "pullSecrets": ["registry"], "completionPolicy": {"type": "Never"}});
    cluster.pull("other", spec).await;
    told_within(&cluster, 5, "a", "quay.io/app:1").await;
    let both =
        r#"{"auths":{"quay.io":{"auth":"cjI6aHVudGVyMi0y"},"reg.example":{"auth":"cjE6aHVudGVyMi0x"}}}"#;
    assert_eq!(held().await, [(key.clone(), both.to_owned())], "before the node is told of the second job");
    cluster.delete_job("other").await;
    cluster.pass(10).await;
    assert_eq!(held().await, [(key, reg)]);
}

/// Whoever may create jobs but not read Secrets cannot have a database's password put where agents read.
#[tokio::test(start_paused = true)]
async fn a_secret_of_another_type_is_reported_and_not_copied() {
    let cluster = cluster(1, &[IMAGE]).await;
    give_data(&cluster, "database", "Opaque", "password", "hunter2").await;
    cluster.pull("warm", json!({"image": IMAGE, "pullSecrets": ["database"]})).await;
    let status = cluster.finished_within(30, "warm").await.status.unwrap();
    assert_eq!(status.succeeded, 1, "the pull goes on without it");
    let (holds, reason, message) = condition(status.conditions.as_ref(), "SecretsReady").unwrap();
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "SecretUnusable"));
    assert!(
        message.contains("database: its type is not") && message.contains("kubectl create secret"),
        "{message}"
    );
    cluster.pass(5).await;
    assert_eq!(notes(&cluster, "ImagePullJob", "warm", "SecretUnusable").await, [message]);
    let written = cluster
        .faults
        .journal()
        .iter()
        .filter(|entry| entry.verb == Verb::Create && entry.path.contains("/secrets"))
        .count();
    assert_eq!(written, 0);
}

#[tokio::test(start_paused = true)]
async fn a_copy_goes_within_a_minute_of_its_source() {
    let cluster = silent_cluster(&["a"]).await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    pull(&cluster, "warm", &["registry"]).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    let source: Api<Secret> = Api::default_namespaced(cluster.client.clone());
    source.delete("registry", &DeleteParams::default()).await.unwrap();
    let minute = Duration::from_mins(1);
    cluster.within(minute, "an end of the copy", async || copies(&cluster).await.is_empty()).await;
    let (holds, reason, _) =
        condition(cluster.status("warm").await.conditions.as_ref(), "SecretsReady").unwrap();
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "SecretMissing"));
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
        cluster.pass(6).await;
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

/// kruise S7, W30: a job that may not have the image does not succeed because another one may.
#[tokio::test(start_paused = true)]
async fn a_pull_with_one_jobs_credentials_is_no_success_of_another() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).needs("robot", "hunter2");
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    give_secret(&cluster, "wrong", "robot", "hunter3").await;
    pull(&cluster, "warm", &["registry"]).await;
    cluster
        .job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 1))
        .await;
    for (name, secrets) in [("rider", json!([])), ("guesser", json!(["wrong"]))] {
        let spec = json!({
            "image": IMAGE, "imagePullPolicy": "Always", "pullSecrets": secrets, "pullPolicy": {"backoffLimit": 0},
        });
        cluster.pull(name, spec).await;
        let status = cluster.finished_within(60, name).await.status.unwrap();
        assert_eq!((status.succeeded, status.failed), (0, 1), "{name}");
    }
    let twin = json!({"image": IMAGE, "imagePullPolicy": "Always", "pullSecrets": ["registry"]});
    cluster.pull("twin", twin).await;
    assert_eq!(cluster.finished_within(60, "twin").await.status.unwrap().succeeded, 1);
    cluster.pull("content", json!({"image": IMAGE})).await;
    let status = cluster.finished_within(60, "content").await.status.unwrap();
    assert_eq!(status.succeeded, 1, "what is present is enough for IfNotPresent");
    let status = cluster.status("warm").await;
    assert_eq!((status.succeeded, status.failed), (1, 0));
}

/// kruise S7: also if it joins while the image is being pulled.
#[tokio::test(start_paused = true)]
async fn a_job_that_joins_a_running_pull_of_another_is_asked_for_afterwards() {
    let cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes["node-1"].runtime.image(IMAGE).needs("robot", "hunter2").takes(Duration::from_mins(1));
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    pull(&cluster, "warm", &["registry"]).await;
    cluster.nodes["node-1"].runtime.started(IMAGE).await;
    cluster.pass(5).await;
    let spec = json!({"image": IMAGE, "imagePullPolicy": "Always", "pullPolicy": {"backoffLimit": 0}});
    cluster.pull("rider", spec).await;
    let status = cluster.finished_within(120, "rider").await.status.unwrap();
    assert_eq!((status.succeeded, status.failed), (0, 1));
    cluster
        .job_within(30, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 1))
        .await;
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
