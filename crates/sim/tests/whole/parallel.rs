//! How many nodes pull at once, in which order, and what a node that cannot be written does to the others (kruise
//! R50–R52, W5).

use std::collections::BTreeSet;
use std::time::Duration;

use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    VERSIONS, cluster, condition, make, report, silent_cluster, tag, tag_status, told_within,
};

const IMAGE: &str = "nginx:1";

/// The most nodes that were told and not done at any moment until the job is over.
async fn most_at_once(cluster: &Cluster, name: &str) -> usize {
    let mut most = 0;
    loop {
        let mut at_work = 0;
        for node in cluster.nodes.keys() {
            let is_told = tag(cluster, node, IMAGE).await.is_some();
            let status = tag_status(cluster, node, IMAGE).await;
            at_work += usize::from(is_told && status.is_none_or(|status| status.completion_time.is_none()));
        }
        most = most.max(at_work);
        if cluster.status(name).await.completion_time.is_some() {
            return most;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The nodes that are told, among these.
async fn told(cluster: &Cluster, nodes: &[&str]) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    for node in nodes {
        if tag(cluster, node, IMAGE).await.is_some() {
            told.insert((*node).to_owned());
        }
    }
    told
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn parallelism_is_one_if_absent_and_a_number_or_a_text_otherwise() {
    let cases = [(Value::Null, 1), (json!(3), 3), (json!("2"), 2), (json!(100), 6)];
    for version in VERSIONS {
        for (parallelism, expected) in &cases {
            let cluster = cluster(6, &[IMAGE]).await;
            let mut spec = json!({"image": IMAGE, "completionPolicy": {}});
            if !parallelism.is_null() {
                spec["parallelism"] = parallelism.clone();
            }
            make(&cluster, version, "ImagePullJob", "warm", spec).await;
            assert_eq!(most_at_once(&cluster, "warm").await, *expected, "{parallelism}");
            assert_eq!(cluster.status("warm").await.succeeded, 6);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn zero_pauses_and_more_resumes() {
    let cluster = silent_cluster(&["a", "b", "c"]).await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 1})).await;
    told_within(&cluster, 5, "a", IMAGE).await;
    cluster.edit("warm", json!({"spec": {"parallelism": 0}})).await;
    report(&cluster, "a", IMAGE, "Succeeded").await;
    cluster.pass(60).await;
    assert_eq!(told(&cluster, &["b", "c"]).await, set(&[]), "what runs may end, nothing else begins");
    let status = cluster.status("warm").await;
    let paused = condition(status.conditions.as_ref(), "Progressing").unwrap();
    assert_eq!((status.succeeded, paused.0.as_str(), paused.1.as_str()), (1, "False", "Paused"));
    cluster.edit("warm", json!({"spec": {"parallelism": "2"}})).await;
    told_within(&cluster, 5, "b", IMAGE).await;
    told_within(&cluster, 5, "c", IMAGE).await;
}

#[tokio::test(start_paused = true)]
async fn lowering_cancels_nothing_and_no_node_begins_until_there_is_room() {
    let nodes = ["a", "b", "c", "d", "e"];
    let cluster = silent_cluster(&nodes).await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 3})).await;
    told_within(&cluster, 5, "c", IMAGE).await;
    for node in ["a", "b", "c"] {
        report(&cluster, node, IMAGE, "Pulling").await;
    }
    cluster.edit("warm", json!({"spec": {"parallelism": 1}})).await;
    cluster.pass(60).await;
    assert_eq!(told(&cluster, &nodes).await, set(&["a", "b", "c"]));
    assert_eq!(cluster.status("warm").await.active, 3);
    report(&cluster, "a", IMAGE, "Succeeded").await;
    report(&cluster, "b", IMAGE, "Succeeded").await;
    cluster.pass(10).await;
    assert_eq!(told(&cluster, &nodes).await, set(&["a", "b", "c"]));
    report(&cluster, "c", IMAGE, "Succeeded").await;
    told_within(&cluster, 5, "d", IMAGE).await;
    assert_eq!(tag(&cluster, "e", IMAGE).await, None);
}

#[tokio::test(start_paused = true)]
async fn ready_nodes_come_first_then_zones_take_turns_then_names() {
    let cluster = silent_cluster(&[]).await;
    let zone = |zone: &str| json!({"topology.kubernetes.io/zone": zone});
    for (name, in_zone) in [("a", "x"), ("b", "x"), ("c", "x"), ("d", "y"), ("e", "y"), ("f", "z")] {
        cluster.make_node(name, zone(in_zone)).await;
    }
    cluster.pass(1).await;
    cluster.set_ready("a", false).await;
    cluster.pass(1).await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 1})).await;
    let mut order = Vec::new();
    for _ in 0..6 {
        let next = cluster
            .within(Duration::from_secs(5), "the next node", async || {
                told(&cluster, &["a", "b", "c", "d", "e", "f"]).await.len() > order.len()
            })
            .await;
        assert!(next < Duration::from_secs(2));
        let now = told(&cluster, &["a", "b", "c", "d", "e", "f"]).await;
        let node = now.into_iter().find(|node| !order.contains(node)).unwrap();
        report(&cluster, &node, IMAGE, "Succeeded").await;
        order.push(node);
    }
    assert_eq!(order, ["b", "d", "f", "c", "e", "a"]);
}

/// kruise W5.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_written_holds_up_no_other() {
    let cluster = cluster(4, &[IMAGE]).await;
    let writes = Filter::verb(Verb::Patch).of("nodeimages").named("node-1");
    cluster.faults.add(ScriptedFault::always(Action::InternalError).of(writes));
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 2})).await;
    cluster
        .job_within(60, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 3))
        .await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await, None);
    cluster.faults.clear_script();
    let end = cluster.finished_within(600, "warm").await.status.unwrap();
    assert_eq!(end.succeeded, 4);
}

/// kruise W5: with a parallelism of one, too.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_written_holds_its_place_no_longer_than_a_silent_one() {
    let cluster = cluster(3, &[IMAGE]).await;
    let writes = Filter::verb(Verb::Patch).of("nodeimages").named("node-1");
    cluster.faults.add(ScriptedFault::always(Action::InternalError).of(writes));
    cluster.pull("warm", json!({"image": IMAGE})).await;
    cluster
        .job_within(60, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 2))
        .await;
}

/// A rolling job is as fast as its nodes: nothing is polled.
#[tokio::test(start_paused = true)]
async fn a_rolling_job_takes_little_more_than_its_pulls() {
    let cluster = cluster(40, &[IMAGE]).await;
    let begin = tokio::time::Instant::now();
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 4})).await;
    assert_eq!(cluster.finished_within(60, "warm").await.status.unwrap().succeeded, 40);
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(11), "{took:?} of ten seconds");
}
