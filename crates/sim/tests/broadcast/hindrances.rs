//! What keeps pods from running, and how people learn of it.

use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_embedded::faults::{Action, Faults, Filter, ScriptedFault, Verb};
use prewarm_sim::{Act, Cluster};
use serde_json::json;

use crate::support::{SECOND, cluster, condition, edit, edit_node, pods_asked_for, reaches, reasons, told};

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_place_is_named_in_the_schedulers_words() {
    let (cluster, player) = cluster(1).await;
    player.act("node-1", Act::Waits);
    cluster.broadcast("sweep", json!({})).await;
    let job = cluster.broadcast_within(10, "sweep", |job| condition(job, "PodsScheduled").is_some()).await;
    let (status, message) = condition(&job, "PodsScheduled").unwrap();
    assert_eq!(status, "False");
    assert!(message.ends_with("finds no place: 0/1 nodes are available: 1 Too many pods."), "{message}");
    cluster.pass(2).await;
    assert_eq!(told(&cluster, "sweep").await, [("PodUnschedulable".to_owned(), message)]);
    player.act("node-1", Act::Succeeds(SECOND));
    let done = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert!(condition(&done, "Complete").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_refused_pod_is_named_in_the_servers_words_and_tried_again_with_pauses() {
    let mut cluster = Cluster::new();
    cluster.make_node("node-1", json!({})).await;
    let player = cluster.play(Act::Succeeds(SECOND));
    let refused = ScriptedFault::always(Action::Forbidden).of(Filter::writes().of("pods"));
    cluster.faults = Faults::scripted(vec![refused]);
    cluster.start_controller();
    cluster.broadcast("sweep", json!({})).await;
    let job = cluster.broadcast_within(10, "sweep", |job| condition(job, "PodsCreated").is_some()).await;
    let (status, message) = condition(&job, "PodsCreated").unwrap();
    assert_eq!(status, "False");
    assert!(message.starts_with("pod for node node-1: "), "{message}");
    cluster.pass(120).await;
    let posts = pods_asked_for(&cluster);
    assert!(posts < 20, "{posts} requests in two minutes");
    assert_eq!(reasons(&cluster, "sweep").await, ["PodRefused"]);
    assert_eq!(player.pods_by_node().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fits_no_node_says_why_and_begins_when_one_does() {
    let (cluster, _player) = cluster(1).await;
    cluster.broadcast("sweep", json!({"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}})).await;
    let job = cluster.broadcast_within(10, "sweep", |job| condition(job, "NodesFound").is_some()).await;
    let expected = "the pod fits no node: 1 node: labels do not match nodeSelector or node affinity";
    assert_eq!(condition(&job, "NodesFound").unwrap(), ("False".to_owned(), expected.to_owned()));
    cluster.pass(60).await;
    edit_node(&cluster, "node-1", json!({"metadata": {"labels": {"pool": "gpu"}}})).await;
    let done = reaches(&cluster, "sweep", BroadcastJobPhase::Completed).await;
    assert_eq!(condition(&done, "NodesFound").unwrap().0, "True");
}

#[tokio::test(start_paused = true)]
async fn more_pods_than_a_lowered_parallelism_allows_are_told_and_left() {
    let (cluster, player) = cluster(3).await;
    for node in ["node-1", "node-2", "node-3"] {
        player.act(node, Act::Hangs);
    }
    cluster.broadcast("sweep", json!({})).await;
    cluster
        .broadcast_within(10, "sweep", |job| job.status.as_ref().is_some_and(|status| status.active == 3))
        .await;
    edit(&cluster, "sweep", json!({"spec": {"parallelism": 1}})).await;
    cluster.pass(30).await;
    assert_eq!(reasons(&cluster, "sweep").await, ["TooManyActivePods"]);
    assert_eq!(player.pods_by_node().values().sum::<usize>(), 3);
}

/// Whoever does not use BroadcastJobs need not give the rights to them.
#[tokio::test(start_paused = true)]
async fn jobs_that_pull_images_need_no_rights_to_broadcast_jobs() {
    let mut cluster = Cluster::new();
    cluster.publish("app:1", SECOND);
    cluster.add_nodes(1).await;
    let list = ScriptedFault::always(Action::Forbidden).of(Filter::verb(Verb::List).of("broadcastjobs"));
    let watch = ScriptedFault::always(Action::Forbidden).of(Filter::verb(Verb::Watch).of("broadcastjobs"));
    cluster.faults = Faults::scripted(vec![list, watch]);
    cluster.start_controller();
    cluster.pull("warm", json!({"image": "app:1"})).await;
    cluster.finished_within(60, "warm").await;
}
