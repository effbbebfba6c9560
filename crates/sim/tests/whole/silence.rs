//! Nodes that do not answer (kruise R16–R19), and what a late answer does.

use kube::api::{Patch, PatchParams};
use prewarm_api::kruise::PullPhase;
use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::support::{
    cluster, entry, node_image, notes, report, silent_cluster, tag, tag_status, told_within, write_images,
};

const IMAGE: &str = "nginx:1";
const SILENT: &str = "node has not responded for a long time";
const LATE: &str = "pulling exceeds the activeDeadlineSeconds";

async fn is_judged(cluster: &Cluster, message: &str) -> bool {
    let status = tag_status(cluster, "node-1", IMAGE).await;
    status
        .is_some_and(|status| status.phase == PullPhase::Failed && status.message.as_deref() == Some(message))
}

/// An entry by hand with a deadline of a minute.
async fn ask_with_deadline(cluster: &Cluster) {
    let mut entry = entry("1", 36_000);
    entry["pullPolicy"]["activeDeadlineSeconds"] = json!(60);
    write_images(cluster, "node-1", json!({"nginx": {"tags": [entry]}})).await;
    cluster.pass(2).await;
}

async fn report_as(cluster: &Cluster, status: Value) {
    let patch = json!({"status": {"desired": 1, "imageStatuses": {"nginx": {"tags": [status]}}}});
    let api = cluster.node_images();
    api.patch_status("node-1", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// kruise R16, R18.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_silent_for_ten_minutes_has_failed_and_everybody_is_told() {
    let cluster = silent_cluster(&["node-1"]).await;
    cluster.pull("warm", json!({"image": IMAGE})).await;
    told_within(&cluster, 5, "node-1", IMAGE).await;
    cluster.pass(590).await;
    assert_eq!(tag_status(&cluster, "node-1", IMAGE).await, None);
    assert_eq!(cluster.status("warm").await.active, 1);
    let job = cluster.finished_within(15, "warm").await.status.unwrap();
    assert_eq!((job.failed, job.failed_nodes), (1, Some(vec!["node-1".to_owned()])));
    let verdict = tag_status(&cluster, "node-1", IMAGE).await.unwrap();
    assert_eq!((verdict.phase, verdict.message.as_deref()), (PullPhase::Failed, Some(SILENT)));
    assert_eq!(verdict.version, tag(&cluster, "node-1", IMAGE).await.unwrap().version);
    assert!(verdict.completion_time.is_some());
    let counts = node_image(&cluster, "node-1").await.status.unwrap();
    assert_eq!((counts.desired, counts.failed, counts.succeeded), (1, 1, 0));
    cluster.pass(5).await;
    for (kind, name) in [("ImagePullJob", "warm"), ("NodeImage", "node-1")] {
        let told = notes(&cluster, kind, name, "PullImageFailed").await;
        assert_eq!(told, [format!("nginx:1 on node node-1: {SILENT}")], "{kind}");
    }
}

/// kruise R17: the deadline counts from the begin of the pull.
#[tokio::test(start_paused = true)]
async fn a_pull_that_never_ends_has_failed_ten_minutes_after_its_deadline() {
    let cluster = silent_cluster(&["node-1"]).await;
    ask_with_deadline(&cluster).await;
    cluster.pass(500).await;
    report(&cluster, "node-1", IMAGE, "Pulling").await;
    cluster.pass(650).await;
    assert!(!is_judged(&cluster, LATE).await);
    cluster.pass(15).await;
    assert!(is_judged(&cluster, LATE).await, "{:#?}", tag_status(&cluster, "node-1", IMAGE).await);
}

/// kruise R17: waiting is no fault of a node that still reports.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_on_a_node_that_reports_has_not_failed() {
    let cluster = silent_cluster(&["node-1"]).await;
    ask_with_deadline(&cluster).await;
    for round in 0..20 {
        report_as(&cluster, json!({"tag": "1", "phase": "Waiting", "message": format!("round {round}")}))
            .await;
        cluster.pass(100).await;
    }
    assert!(!is_judged(&cluster, LATE).await);
    cluster.pass(480).await;
    assert!(!is_judged(&cluster, LATE).await);
    cluster.pass(40).await;
    assert!(is_judged(&cluster, LATE).await, "{:#?}", tag_status(&cluster, "node-1", IMAGE).await);
}

#[tokio::test(start_paused = true)]
async fn an_agents_later_result_replaces_the_verdict() {
    let cluster = cluster(1, &[IMAGE]).await;
    let node = &cluster.nodes["node-1"];
    let reports = Filter::verb(Verb::Patch).of("nodeimages/status");
    node.faults.add(ScriptedFault::always(Action::Refused).of(reports));
    cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": {"type": "Never"}})).await;
    cluster.job_within(700, "warm", |job| job.status.as_ref().is_some_and(|status| status.failed == 1)).await;
    assert!(is_judged(&cluster, SILENT).await);
    assert!(node.runtime.has(IMAGE));
    node.faults.clear_script();
    cluster
        .job_within(120, "warm", |job| {
            job.status.as_ref().is_some_and(|status| status.succeeded == 1 && status.failed == 0)
        })
        .await;
    assert_eq!(tag_status(&cluster, "node-1", IMAGE).await.unwrap().message, None);
    assert_eq!(node.pulls(IMAGE), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_back_after_the_verdict_gives_its_own_answer() {
    let mut cluster = cluster(1, &[IMAGE]).await;
    cluster.nodes.get_mut("node-1").unwrap().kill().await;
    cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": {"type": "Never"}})).await;
    cluster.job_within(700, "warm", |job| job.status.as_ref().is_some_and(|status| status.failed == 1)).await;
    cluster.nodes.get_mut("node-1").unwrap().start();
    cluster
        .job_within(60, "warm", |job| {
            job.status.as_ref().is_some_and(|status| status.succeeded == 1 && status.failed == 0)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_verdict_never_replaces_a_report() {
    let cluster = silent_cluster(&["node-1"]).await;
    cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": {"type": "Never"}})).await;
    told_within(&cluster, 5, "node-1", IMAGE).await;
    report(&cluster, "node-1", IMAGE, "Succeeded").await;
    let reported = tag_status(&cluster, "node-1", IMAGE).await;
    cluster.pass(3600).await;
    assert_eq!(tag_status(&cluster, "node-1", IMAGE).await, reported);
}

/// design 7, kruise W6.
#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_holds_its_place_for_thirty_seconds() {
    let mut cluster = cluster(1, &[IMAGE]).await;
    cluster.make_node("dead", json!({})).await;
    cluster.pass(1).await;
    cluster.pull("warm", json!({"image": IMAGE, "parallelism": 1})).await;
    told_within(&cluster, 5, "dead", IMAGE).await;
    cluster.pass(25).await;
    assert_eq!(tag(&cluster, "node-1", IMAGE).await, None, "parallelism is 1");
    told_within(&cluster, 10, "node-1", IMAGE).await;
    cluster
        .job_within(10, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 1))
        .await;
    assert!(tag(&cluster, "dead", IMAGE).await.is_some(), "the grant stays");
    cluster.add_node("node-2", json!({})).await;
    cluster
        .job_within(10, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 2))
        .await;
    let end = cluster.finished_within(600, "warm").await.status.unwrap();
    assert_eq!((end.succeeded, end.failed), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_silence_survives_a_restart_of_the_controller() {
    let mut cluster = silent_cluster(&["node-1"]).await;
    cluster.pull("warm", json!({"image": IMAGE})).await;
    told_within(&cluster, 5, "node-1", IMAGE).await;
    cluster.pass(300).await;
    cluster.kill_controller().await;
    cluster.start_controller();
    cluster.finished_within(310, "warm").await;
    assert!(is_judged(&cluster, SILENT).await);
}
