//! A pass costs what has changed.

use serde_json::json;

use crate::support::{cluster, counts};

/// The number behind a metric with this label.
fn metric(text: &str, name: &str, label: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name) && line.contains(label));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no {name} {label}"))
}

#[tokio::test(start_paused = true)]
async fn heartbeats_of_nodes_wake_no_job() {
    let (cluster, _player) = cluster(3).await;
    cluster.broadcast("sweep", json!({"completionPolicy": {"type": "Never"}})).await;
    cluster.pass(20).await;
    let passes = || metric(&cluster.controller_metrics(), "prewarm_controller_passes_total", "broadcast_job");
    let (before, written) = (passes(), cluster.faults.writes());
    for _ in 0..10 {
        cluster.pass(10).await;
        for node in ["node-1", "node-2", "node-3"] {
            cluster.set_ready(node, true).await;
        }
    }
    assert_eq!((passes(), cluster.faults.writes()), (before, written));
}

/// The kernel alone is held to a thousand nodes and twenty jobs.
#[tokio::test(start_paused = true)]
async fn jobs_settle_and_then_nobody_writes() {
    let (cluster, player) = cluster(40).await;
    for number in 0..5 {
        let policy = json!({"type": if number % 2 == 0 { "Never" } else { "Always" }});
        cluster.broadcast(&format!("sweep-{number}"), json!({"completionPolicy": policy})).await;
    }
    for number in 0..5 {
        counts(&cluster, &format!("sweep-{number}"), [40, 0, 40, 0]).await;
    }
    cluster.pass(5).await;
    drop(player);
    let before = cluster.faults.writes();
    cluster.pass(600).await;
    assert_eq!(cluster.faults.writes(), before);
}
