//! The end-to-end cases of an ImagePullJob (kruise 7.1), in both versions.

use std::time::Duration;

use prewarm_api::kruise::ImagePullJob;
use prewarm_api::names::{SECRET_REFERENCES_ANNOTATION, SECRET_SOURCE_ANNOTATION};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    VERSIONS, annotation, cluster, copies, give_data, give_secret, gone_within, make, make_fake, real_nodes,
    tag, untold_within,
};

const PRIVATE: &str = "reg.example/app:1";

/// Three nodes whose registry gives the image only to one account, and a NodeImage without a node.
async fn private_cluster() -> Cluster {
    let cluster = cluster(3, &[PRIVATE, "reg.example/open:1", "nginx:1"]).await;
    for node in cluster.nodes.values() {
        node.runtime.image(PRIVATE).needs("robot", "hunter2");
    }
    make_fake(&cluster, "fake").await;
    cluster
}

fn private_spec(completion: &Value) -> Value {
    json!({
        "image": PRIVATE, "selector": real_nodes(), "pullSecrets": ["registry"], "parallelism": 4,
        "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2}, "completionPolicy": completion,
    })
}

fn desired(count: i32) -> impl Fn(&ImagePullJob) -> bool {
    move |job| job.status.as_ref().is_some_and(|status| status.desired == count)
}

fn succeeded(count: i32) -> impl Fn(&ImagePullJob) -> bool {
    move |job| job.status.as_ref().is_some_and(|status| status.succeeded == count)
}

async fn no_copies_within(cluster: &Cluster, seconds: u64) {
    let wait = Duration::from_secs(seconds);
    cluster.within(wait, "an end of the copies", async || copies(cluster).await.is_empty()).await;
}

/// The one copy of the Secret, which lists the job.
async fn assert_copied(cluster: &Cluster, seconds: u64, password: &str) {
    let wait = Duration::from_secs(seconds);
    cluster
        .within(wait, "the copy", async || {
            let copies = copies(cluster).await;
            let holds = |copy: &k8s_openapi::api::core::v1::Secret| {
                let data = copy.data.as_ref().and_then(|data| data.get(".dockerconfigjson"));
                data.is_some_and(|data| String::from_utf8_lossy(&data.0).contains(password))
            };
            matches!(copies.as_slice(), [copy] if holds(copy))
        })
        .await;
    let copies = copies(cluster).await;
    assert_eq!(annotation(&copies[0], SECRET_SOURCE_ANNOTATION).as_deref(), Some("default/registry"));
    assert_eq!(annotation(&copies[0], SECRET_REFERENCES_ANNOTATION).as_deref(), Some("default/warm"));
}

/// kruise T1.
#[tokio::test(start_paused = true)]
async fn a_job_with_a_secret_pulls_everywhere_and_leaves_nothing_when_its_time_is_over() {
    for version in VERSIONS {
        let cluster = private_cluster().await;
        give_secret(&cluster, "registry", "robot", "hunter2").await;
        let completion =
            json!({"type": "Always", "activeDeadlineSeconds": 50, "ttlSecondsAfterFinished": 20});
        make(&cluster, version, "ImagePullJob", "warm", private_spec(&completion)).await;
        cluster.job_within(3, "warm", desired(3)).await;
        assert_copied(&cluster, 10, "hunter2").await;
        let job = cluster.finished_within(180, "warm").await;
        assert!(succeeded(3)(&job), "{version}: {job:#?}");
        gone_within(&cluster, 25, "warm").await;
        untold_within(&cluster, 25, "node-1", PRIVATE).await;
        no_copies_within(&cluster, 10).await;
    }
}

/// kruise T2.
#[tokio::test(start_paused = true)]
async fn without_a_ttl_the_entry_stays_and_the_copy_of_the_secret_goes() {
    let cluster = private_cluster().await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    make(&cluster, "v1beta1", "ImagePullJob", "warm", private_spec(&json!({"type": "Always"}))).await;
    cluster.finished_within(180, "warm").await;
    no_copies_within(&cluster, 10).await;
    cluster.pass(25).await;
    assert!(tag(&cluster, "node-1", PRIVATE).await.is_some());
}

/// kruise T3.
#[tokio::test(start_paused = true)]
async fn a_changed_secret_is_copied_again_while_a_job_never_ends() {
    for version in VERSIONS {
        let cluster = private_cluster().await;
        give_secret(&cluster, "registry", "robot", "hunter1").await;
        let mut spec = private_spec(&json!({"type": "Never"}));
        spec["image"] = json!("reg.example/open:1");
        make(&cluster, version, "ImagePullJob", "warm", spec).await;
        assert_copied(&cluster, 10, "hunter1").await;
        give_secret(&cluster, "registry", "robot", "hunter2").await;
        assert_copied(&cluster, 10, "hunter2").await;
        cluster.job_within(180, "warm", succeeded(3)).await;
        cluster.delete_job("warm").await;
        untold_within(&cluster, 25, "node-1", "reg.example/open:1").await;
        no_copies_within(&cluster, 10).await;
    }
}

/// kruise T4.
#[tokio::test(start_paused = true)]
async fn a_secret_of_the_old_type_in_the_other_format_is_no_hindrance() {
    for version in VERSIONS {
        let cluster = private_cluster().await;
        let text =
            json!({"auths": {"reg.example": {"username": "robot", "password": "hunter2"}}}).to_string();
        give_data(&cluster, "registry", "kubernetes.io/dockercfg", ".dockercfg", &text).await;
        let completion =
            json!({"type": "Always", "activeDeadlineSeconds": 50, "ttlSecondsAfterFinished": 20});
        let mut spec = private_spec(&completion);
        spec["image"] = json!("nginx:1");
        make(&cluster, version, "ImagePullJob", "warm", spec).await;
        let job = cluster.finished_within(180, "warm").await;
        assert!(succeeded(3)(&job), "{version}: {job:#?}");
        gone_within(&cluster, 25, "warm").await;
        untold_within(&cluster, 10, "node-1", "nginx:1").await;
    }
}

/// kruise T5.
#[tokio::test(start_paused = true)]
async fn a_job_for_one_named_node_pulls_there_alone_until_it_is_deleted() {
    for version in VERSIONS {
        let cluster = private_cluster().await;
        let spec = json!({"image": "nginx:1", "selector": {"names": ["node-2"]}, "completionPolicy": {"type": "Always"}});
        make(&cluster, version, "ImagePullJob", "warm", spec).await;
        cluster.job_within(3, "warm", desired(1)).await;
        assert!(succeeded(1)(&cluster.finished_within(180, "warm").await));
        let has: Vec<bool> = cluster.nodes.values().map(|node| node.runtime.has("nginx:1")).collect();
        assert_eq!(has, [false, true, false], "{version}");
        assert!(tag(&cluster, "node-2", "nginx:1").await.is_some());
        cluster.delete_job("warm").await;
        untold_within(&cluster, 10, "node-2", "nginx:1").await;
    }
}

/// kruise T6.
#[tokio::test(start_paused = true)]
async fn a_job_without_selector_takes_every_node_image_and_never_means_never() {
    for version in VERSIONS {
        let cluster = private_cluster().await;
        let spec = json!({"image": "nginx:1", "parallelism": 4, "completionPolicy": {"type": "Never"}});
        make(&cluster, version, "ImagePullJob", "warm", spec).await;
        cluster.job_within(3, "warm", desired(4)).await;
        cluster.job_within(120, "warm", succeeded(3)).await;
        cluster.pass(60).await;
        assert_eq!(cluster.status("warm").await.completion_time, None, "{version}");
    }
}

/// kruise T7.
#[tokio::test(start_paused = true)]
async fn a_second_job_for_the_same_image_and_node_succeeds_too() {
    for version in VERSIONS {
        let cluster = private_cluster().await;
        let spec = json!({"image": "nginx:1", "selector": {"names": ["node-1"]}, "completionPolicy": {"type": "Never"}});
        make(&cluster, version, "ImagePullJob", "first", spec.clone()).await;
        cluster.job_within(60, "first", succeeded(1)).await;
        make(&cluster, version, "ImagePullJob", "second", spec).await;
        cluster.job_within(60, "second", succeeded(1)).await;
        assert!(succeeded(1)(&cluster.jobs().get("first").await.unwrap()), "{version}");
    }
}
