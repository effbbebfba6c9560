//! When everything has settled, nobody writes.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::{cluster, entry, give_secret, make_fake, write_images};

/// Writes so far, of the controller and of each agent.
fn writes(cluster: &Cluster) -> BTreeMap<String, u64> {
    let agents = cluster.nodes.values().map(|node| (node.name.clone(), node.faults.writes()));
    agents.chain([("the controller".to_owned(), cluster.faults.writes())]).collect()
}

/// A little of everything: jobs that end and that do not, a list, Secrets that are there and not, pods, entries by hand,
/// a node that failed, a paused job, a node that is silent.
async fn busy_cluster() -> Cluster {
    let mut cluster = cluster(3, &["nginx:1", "redis:7", "reg.example/app:1", "a:1", "b:1"]).await;
    make_fake(&cluster, "fake").await;
    give_secret(&cluster, "registry", "robot", "hunter2").await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "node-2", "containers": [{"name": "main", "image": "app:1"}]},
    });
    let _: Pod = cluster.create(pod).await;
    let never = json!({"type": "Never"});
    cluster.pull("ends", json!({"image": "nginx:1", "selector": {"names": ["node-1", "node-9"]}})).await;
    cluster.pull("stays", json!({"image": "nginx:1", "parallelism": 3, "completionPolicy": never})).await;
    cluster.pull("by-pods", json!({"image": "redis:7", "podSelector": {"matchLabels": {"app": "web"}}, "completionPolicy": never})).await;
    let secrets = json!(["registry", "absent"]);
    cluster.pull("private", json!({"image": "reg.example/app:1", "pullSecrets": secrets, "parallelism": 5, "completionPolicy": never})).await;
    cluster.pull("paused", json!({"image": "b:1", "parallelism": 0})).await;
    cluster.pull("fails", json!({"image": "missing:1", "parallelism": 5, "completionPolicy": never})).await;
    cluster
        .pull_list("stack", json!({"images": ["a:1", "b:1"], "parallelism": 5, "completionPolicy": never}))
        .await;
    write_images(&cluster, "node-3", json!({"redis": {"tags": [entry("7", 90_000)]}})).await;
    cluster.make_node("silent", json!({})).await;
    cluster.add_node("late", json!({"zone": "x"})).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_after_everything_has_settled_nobody_has_written() {
    let cluster = busy_cluster().await;
    // Long enough for verdicts on what is silent, and for the last of the attempts that fail.
    cluster.pass(1800).await;
    let before = writes(&cluster);
    let journal = cluster.faults.journal().len();
    cluster.pass(600).await;
    let late: Vec<String> = cluster.faults.journal()[journal.min(9_999)..]
        .iter()
        .filter(|entry| entry.verb.is_write())
        .map(ToString::to_string)
        .collect();
    assert_eq!(writes(&cluster), before, "{late:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_starts_anew_finds_nothing_to_write() {
    let mut cluster = busy_cluster().await;
    cluster.pass(1800).await;
    let before = writes(&cluster);
    for kill in [false, true] {
        if kill {
            cluster.kill_controller().await;
        } else {
            cluster.stop_controller().await;
        }
        cluster.start_controller();
        cluster.pass(60).await;
        assert_eq!(
            writes(&cluster),
            before,
            "{:#?}",
            cluster
                .faults
                .journal()
                .iter()
                .rev()
                .filter(|entry| entry.verb.is_write())
                .take(5)
                .collect::<Vec<_>>()
        );
    }
}

/// Reading is not free either: an idle controller only renews its watches and looks at the Secrets that jobs name.
#[tokio::test(start_paused = true)]
async fn an_idle_controller_without_secrets_only_renews_its_watches() {
    let cluster = cluster(3, &["nginx:1"]).await;
    cluster.pull("warm", json!({"image": "nginx:1", "parallelism": 3})).await;
    cluster.finished_within(30, "warm").await;
    cluster.pass(10).await;
    let since = cluster.faults.journal().len();
    let hour = Duration::from_hours(1);
    cluster.pass(hour.as_secs()).await;
    let asked = cluster.faults.journal().len() - since;
    assert!(asked <= 8 * 15 + 5, "{asked} requests in an hour");
}
