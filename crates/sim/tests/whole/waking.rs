//! What wakes a job (kruise 7.8): every change that concerns it, and nothing else.

use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    give_secret, node_image, owners, report, secrets_of, silent_cluster, tag, told_within, write_images,
};

/// Two jobs for two tags of one image, and one for another image, all told on the one node.
async fn three_jobs() -> Cluster {
    let cluster = silent_cluster(&["a"]).await;
    for (name, image) in [("one", "nginx:1"), ("two", "nginx:2"), ("other", "redis:7")] {
        cluster.pull(name, json!({"image": image, "completionPolicy": {"type": "Never"}})).await;
        told_within(&cluster, 5, "a", image).await;
    }
    cluster.pass(5).await;
    cluster
}

async fn versions(cluster: &Cluster) -> Vec<String> {
    let mut versions = Vec::new();
    for name in ["one", "two", "other"] {
        versions.push(cluster.jobs().get(name).await.unwrap().metadata.resource_version.unwrap());
    }
    versions
}

/// Which of the three jobs were written since.
async fn written_since(cluster: &Cluster, before: &[String]) -> Vec<bool> {
    cluster.pass(5).await;
    versions(cluster).await.iter().zip(before).map(|(now, then)| now != then).collect()
}

fn job_passes(cluster: &Cluster) -> u64 {
    let metrics = cluster.controller_metrics();
    let line =
        metrics.lines().find(|line| line.contains("passes") && line.contains("image_pull_job\"")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// kruise T80, T83, T86.
#[tokio::test(start_paused = true)]
async fn a_reported_tag_concerns_its_own_job_alone() {
    let cluster = three_jobs().await;
    let (before, passes) = (versions(&cluster).await, job_passes(&cluster));
    let statuses = json!({"nginx": {"tags": [{"tag": "1", "phase": "Pulling", "startTime": cluster.clock.now().to_string()}]}});
    set_statuses(&cluster, statuses).await;
    assert_eq!(written_since(&cluster, &before).await, [false, false, false], "active it was before");
    assert!(job_passes(&cluster) - passes <= 1, "one look at one job");
    let passes = job_passes(&cluster);
    let now = cluster.clock.now().to_string();
    let done = json!({"tag": "1", "phase": "Succeeded", "startTime": now, "completionTime": now});
    set_statuses(&cluster, json!({"nginx": {"tags": [done]}})).await;
    assert_eq!(written_since(&cluster, &before).await, [true, false, false]);
    assert!(job_passes(&cluster) - passes <= 3, "the change, the echo of the write");
}

async fn set_statuses(cluster: &Cluster, statuses: Value) {
    let patch = kube::api::Patch::Merge(json!({"status": {"desired": 3, "imageStatuses": statuses}}));
    let api = cluster.node_images();
    api.patch_status("a", &kube::api::PatchParams::default(), &patch).await.unwrap();
}

/// kruise T81.
#[tokio::test(start_paused = true)]
async fn a_change_that_changes_nothing_wakes_nobody() {
    let cluster = three_jobs().await;
    let (before, passes) = (versions(&cluster).await, job_passes(&cluster));
    let patch = kube::api::Patch::Merge(json!({"metadata": {"annotations": {"note": "hello"}}}));
    cluster.node_images().patch("a", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let images = node_image(&cluster, "a").await.spec.images;
    let mut tags = images["nginx"].tags.clone();
    tags.reverse();
    write_images(&cluster, "a", json!({"nginx": {"tags": tags}})).await;
    assert_eq!(written_since(&cluster, &before).await, [false, false, false]);
    assert_eq!(job_passes(&cluster), passes, "reordered is the same");
}

/// kruise T84.
#[tokio::test(start_paused = true)]
async fn secrets_that_leave_an_image_concern_all_its_jobs() {
    let cluster = silent_cluster(&["a"]).await;
    for (name, secret) in [("one", "first"), ("two", "second")] {
        give_secret(&cluster, secret, "robot", "hunter2").await;
        let image = if name == "one" { "nginx:1" } else { "nginx:2" };
        cluster.pull(name, json!({"image": image, "pullSecrets": [secret]})).await;
        told_within(&cluster, 5, "a", image).await;
    }
    assert_eq!(secrets_of(&cluster, "a", "nginx").await.len(), 2);
    write_images(&cluster, "a", json!({"nginx": {"pullSecrets": null}})).await;
    cluster.pass(5).await;
    assert_eq!(secrets_of(&cluster, "a", "nginx").await.len(), 2);
}

/// kruise T85.
#[tokio::test(start_paused = true)]
async fn a_tag_that_somebody_deletes_is_asked_for_again_by_its_job() {
    let cluster = three_jobs().await;
    let (one, two) =
        (tag(&cluster, "a", "nginx:1").await.unwrap(), tag(&cluster, "a", "nginx:2").await.unwrap());
    write_images(&cluster, "a", json!({"nginx": {"tags": [two]}})).await;
    cluster.pass(5).await;
    assert!(tag(&cluster, "a", "nginx:1").await.unwrap().created_at > one.created_at);
    assert_eq!(owners(&cluster, "a", "nginx:1").await, ["one"]);
    assert_eq!(tag(&cluster, "a", "nginx:2").await.unwrap(), two);
}

/// kruise T87.
#[tokio::test(start_paused = true)]
async fn an_image_that_somebody_deletes_is_asked_for_again_by_all_its_jobs() {
    let cluster = three_jobs().await;
    let redis = tag(&cluster, "a", "redis:7").await;
    let (one, two) =
        (tag(&cluster, "a", "nginx:1").await.unwrap(), tag(&cluster, "a", "nginx:2").await.unwrap());
    write_images(&cluster, "a", json!({"nginx": null})).await;
    cluster.pass(5).await;
    for (image, before) in [("nginx:1", one), ("nginx:2", two)] {
        assert!(tag(&cluster, "a", image).await.unwrap().created_at > before.created_at);
    }
    assert_eq!(tag(&cluster, "a", "redis:7").await, redis);
}

/// kruise T80: an entry that appears and one that changes.
#[tokio::test(start_paused = true)]
async fn an_entry_that_changes_its_version_is_another_round_for_its_job() {
    let cluster = three_jobs().await;
    report(&cluster, "a", "nginx:1", "Succeeded").await;
    cluster.pass(3).await;
    assert_eq!(cluster.status("one").await.succeeded, 1);
    let mut tags = node_image(&cluster, "a").await.spec.images["nginx"].tags.clone();
    tags[0].version = 9;
    write_images(&cluster, "a", json!({"nginx": {"tags": tags}})).await;
    cluster.pass(3).await;
    let status = cluster.status("one").await;
    assert_eq!((status.active, status.succeeded), (1, 0));
    report(&cluster, "a", "nginx:1", "Succeeded").await;
    cluster.pass(3).await;
    assert_eq!(cluster.status("one").await.succeeded, 1);
    assert_eq!(tag(&cluster, "a", "nginx:1").await.unwrap().version, 9);
}
