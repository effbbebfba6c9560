//! What a job writes into the NodeImages (kruise 7.6). Nobody works on these nodes, so nothing else moves.

use prewarm_api::kruise::{ImageTagSpec, SecretReference};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    copies, give_secret, node_image, owners, report, report_version, secrets_of, silent_cluster, tag,
    told_within, write_images,
};

const IMAGE: &str = "nginx:1";

async fn generation(cluster: &Cluster) -> i64 {
    node_image(cluster, "node-1").await.metadata.generation.unwrap()
}

/// Replaces the entry of the image.
async fn rewrite(cluster: &Cluster, tag: &ImageTagSpec, secrets: Value) {
    write_images(cluster, "node-1", json!({"nginx": {"tags": [tag], "pullSecrets": secrets}})).await;
}

/// A job with these Secrets, whose node is told.
async fn granted(secrets: &[&str]) -> Cluster {
    let cluster = silent_cluster(&["node-1"]).await;
    for secret in secrets {
        give_secret(&cluster, secret, "robot", "hunter2").await;
    }
    cluster.pull("warm", json!({"image": IMAGE, "pullSecrets": secrets})).await;
    told_within(&cluster, 10, "node-1", IMAGE).await;
    cluster
}

/// kruise T50.
#[tokio::test(start_paused = true)]
async fn a_new_entry_has_version_0_its_job_and_the_copy_of_its_secret() {
    let cluster = granted(&["registry"]).await;
    let entry = tag(&cluster, "node-1", IMAGE).await.unwrap();
    let job = cluster.jobs().get("warm").await.unwrap();
    assert_eq!(entry.version, 0);
    let owner = &entry.owner_references.as_ref().unwrap()[0];
    assert_eq!(owner.api_version.as_deref(), Some("apps.kruise.io/v1beta1"));
    assert_eq!(
        (owner.kind.as_deref(), owner.namespace.as_deref(), owner.name.as_deref(), &owner.uid),
        (Some("ImagePullJob"), Some("default"), Some("warm"), &job.metadata.uid)
    );
    let copy = copies(&cluster).await.remove(0).metadata.name;
    let expected = SecretReference {
        namespace: Some("kruise-daemon-config".into()),
        name: copy,
        mode: Some("batch".into()),
    };
    assert_eq!(secrets_of(&cluster, "node-1", "nginx").await, [expected]);
    assert_eq!(entry.pull_policy.timeout_seconds, 600);
    assert!(entry.created_at.is_some());
}

/// kruise T51, T55.
#[tokio::test(start_paused = true)]
async fn an_entry_that_is_as_it_should_be_is_not_written_again() {
    for secrets in [&["registry"][..], &[]] {
        let cluster = granted(secrets).await;
        let before = generation(&cluster).await;
        cluster.edit("warm", json!({"metadata": {"labels": {"look": "again"}}})).await;
        cluster.edit("warm", json!({"spec": {"parallelism": 7}})).await;
        cluster.pass(60).await;
        assert_eq!(generation(&cluster).await, before);
    }
}

/// kruise T52, T45.
#[tokio::test(start_paused = true)]
async fn a_secret_that_an_entry_lacks_is_added_without_another_round() {
    let cluster = granted(&["registry"]).await;
    let before = tag(&cluster, "node-1", IMAGE).await.unwrap();
    let secrets = secrets_of(&cluster, "node-1", "nginx").await;
    rewrite(&cluster, &before, Value::Null).await;
    cluster.pass(3).await;
    assert_eq!(secrets_of(&cluster, "node-1", "nginx").await, secrets);
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap(), before);
    let status = cluster.status("warm").await;
    assert_eq!((status.desired, status.active), (1, 1), "counted once");
}

/// kruise T53.
#[tokio::test(start_paused = true)]
async fn one_of_two_secrets_that_is_missing_is_appended() {
    let cluster = granted(&["one", "two"]).await;
    let before = tag(&cluster, "node-1", IMAGE).await.unwrap();
    let secrets = secrets_of(&cluster, "node-1", "nginx").await;
    assert_eq!(secrets.len(), 2);
    rewrite(&cluster, &before, json!([secrets[1]])).await;
    cluster.pass(3).await;
    let after = secrets_of(&cluster, "node-1", "nginx").await;
    assert_eq!(after, [secrets[1].clone(), secrets[0].clone()]);
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().version, 0);
}

/// An entry in version 3 that a first job has, reported like this, with a second job after it.
async fn joined(phase: Option<&str>) -> Cluster {
    let cluster = granted(&["registry"]).await;
    let mut entry = tag(&cluster, "node-1", IMAGE).await.unwrap();
    entry.version = 3;
    let secrets = secrets_of(&cluster, "node-1", "nginx").await;
    rewrite(&cluster, &entry, json!(secrets)).await;
    if let Some(phase) = phase {
        report(&cluster, "node-1", IMAGE, phase).await;
    }
    cluster.pass(2).await;
    give_secret(&cluster, "other", "robot", "hunter3").await;
    cluster.pull("second", json!({"image": IMAGE, "pullSecrets": ["other"]})).await;
    cluster.pass(10).await;
    assert_eq!(owners(&cluster, "node-1", IMAGE).await, ["warm", "second"]);
    // The copy of a job that is over is gone, and so is the reference to it.
    let is_over = matches!(phase, Some("Succeeded" | "Failed"));
    let expected = if is_over { 1 } else { 2 };
    assert_eq!(secrets_of(&cluster, "node-1", "nginx").await.len(), expected, "{phase:?}: they are merged");
    cluster
}

/// kruise T54.
#[tokio::test(start_paused = true)]
async fn a_job_that_joins_what_has_failed_begins_the_next_version() {
    let cluster = joined(Some("Failed")).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().version, 4);
}

/// kruise T54, as it is here: only what has ended badly is begun again.
#[tokio::test(start_paused = true)]
async fn a_job_that_joins_what_goes_on_or_has_succeeded_begins_nothing() {
    for phase in [None, Some("Waiting"), Some("Pulling"), Some("Succeeded")] {
        let cluster = joined(phase).await;
        assert_eq!(tag(&cluster, "node-1", IMAGE).await.unwrap().version, 3, "{phase:?}");
    }
}

/// kruise T56.
#[tokio::test(start_paused = true)]
async fn a_new_entry_comes_after_the_version_that_the_node_reported_last() {
    let cluster = silent_cluster(&["node-1"]).await;
    report_version(&cluster, "node-1", IMAGE, "Succeeded", 5).await;
    cluster.pull("warm", json!({"image": IMAGE})).await;
    assert_eq!(told_within(&cluster, 10, "node-1", IMAGE).await.version, 6);
}

/// kruise T57.
#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_daily_pull_is_half_an_hour_or_one_attempt() {
    for (timeout, deadline) in [(None, 1800), (Some(60), 1800), (Some(5000), 5000)] {
        let cluster = silent_cluster(&["node-1"]).await;
        let mut spec = json!({"image": IMAGE, "completionPolicy": {"type": "Never"}});
        if let Some(timeout) = timeout {
            spec["pullPolicy"] = json!({ "timeoutSeconds": timeout });
        }
        cluster.pull("warm", spec).await;
        let policy = told_within(&cluster, 10, "node-1", IMAGE).await.pull_policy;
        assert_eq!(policy.active_deadline_seconds, Some(deadline));
        assert!((85_800..87_000).contains(&policy.ttl_seconds_after_finished), "{policy:?}");
    }
}

/// kruise R54, section 0.
#[tokio::test(start_paused = true)]
async fn how_long_the_entry_of_a_job_that_ends_stays() {
    let cases = [
        (json!({"ttlSecondsAfterFinished": 1000, "activeDeadlineSeconds": 2000}), 1000),
        (json!({"activeDeadlineSeconds": 2000}), 2000),
        (json!({}), 600 * 3),
    ];
    for (completion, base) in cases {
        let cluster = silent_cluster(&["node-1"]).await;
        cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": completion})).await;
        let policy = told_within(&cluster, 10, "node-1", IMAGE).await.pull_policy;
        let ttl = policy.ttl_seconds_after_finished;
        assert!((base + 300..base + 600).contains(&ttl), "{ttl} of {base}");
    }
}

/// kruise R55.
#[tokio::test(start_paused = true)]
async fn an_edited_image_is_asked_for_beside_the_one_before() {
    let cluster = silent_cluster(&["node-1", "node-2"]).await;
    cluster.pull("warm", json!({"image": IMAGE})).await;
    told_within(&cluster, 10, "node-1", IMAGE).await;
    report(&cluster, "node-1", IMAGE, "Succeeded").await;
    told_within(&cluster, 10, "node-2", IMAGE).await;
    cluster.edit("warm", json!({"spec": {"image": "nginx:2", "imagePullPolicy": "Always"}})).await;
    let new = told_within(&cluster, 40, "node-1", "nginx:2").await;
    assert_eq!(new.image_pull_policy, prewarm_api::kruise::ImagePullPolicy::Always);
    let tags: Vec<String> = node_image(&cluster, "node-1").await.spec.images["nginx"]
        .tags
        .iter()
        .map(|tag| tag.tag.clone())
        .collect();
    assert_eq!(tags, ["1", "2"], "sorted, and the old one stays");
}
