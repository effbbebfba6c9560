//! Connections of the controller that die without a word: no request fails by itself, no watch ends, and the controller finds
//! out all the same (reliability L5, L7).

use std::time::Duration;

use prewarm_embedded::Options;
use prewarm_embedded::faults::{Action, Cut, Faults, Filter, ScriptedFault, Verb};
use prewarm_sim::Cluster;
use serde_json::json;

use crate::support::cluster;

const IMAGE: &str = "nginx:1";
/// A watch may be silent for so long, and then it is opened anew within seconds.
const BLIND: u64 = 130;
/// So soon everything is current again once packets arrive.
const CURRENT: u64 = 30;

fn at(number: u64, action: Action, verb: Verb, resource: &str) -> ScriptedFault {
    ScriptedFault::at(number, action).of(Filter::verb(verb).of(resource))
}

/// A cluster of two nodes, whose controller's requests meet this.
async fn cluster_with(script: Vec<ScriptedFault>) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.publish(IMAGE, Duration::from_secs(1));
    cluster.add_nodes(2).await;
    cluster.faults = Faults::scripted(script);
    cluster.start_controller();
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_any_kind_that_falls_silent_is_opened_anew() {
    for resource in ["nodes", "nodeimages", "imagepulljobs"] {
        let silent = at(1, Action::CutWatch(0, Cut::Silent), Verb::Watch, resource);
        let mut cluster = cluster_with(vec![silent]).await;
        cluster.pass(5).await;
        cluster.add_node("node-3", json!({})).await;
        // It never ends, so that it counts the node whenever that is seen.
        cluster.pull("warm", json!({"image": IMAGE, "completionPolicy": {"type": "Never"}})).await;
        cluster
            .job_within(BLIND, "warm", |job| job.status.as_ref().is_some_and(|status| status.succeeded == 3))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_that_are_never_answered_and_lists_that_stop_in_the_middle_are_asked_for_again() {
    for (action, verb) in
        [(Action::Unanswered, Verb::List), (Action::Stalled, Verb::List), (Action::Unanswered, Verb::Watch)]
    {
        for resource in ["nodes", "nodeimages", "imagepulljobs", "imagelistpulljobs", "secrets"] {
            let cluster = cluster_with(vec![at(1, action, verb, resource)]).await;
            cluster.pull("warm", json!({"image": IMAGE})).await;
            cluster.finished_within(CURRENT, "warm").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn writes_that_are_never_answered_are_sent_again() {
    for resource in ["nodeimages", "imagepulljobs/status"] {
        let cluster = cluster_with(vec![]).await;
        cluster.pass(5).await;
        cluster.faults.add(at(1, Action::Unanswered, Verb::Patch, resource));
        cluster.faults.add(at(1, Action::Unanswered, Verb::Update, resource));
        cluster.pull("warm", json!({"image": IMAGE})).await;
        cluster.finished_within(CURRENT, "warm").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_packets_are_swallowed_is_current_soon_after_they_arrive_again() {
    for outage in [130, 600] {
        let cluster = cluster(2, &[IMAGE]).await;
        cluster.pull("before", json!({"image": IMAGE})).await;
        cluster
            .job_within(5, "before", |job| job.status.as_ref().is_some_and(|status| status.active > 0))
            .await;
        cluster.faults.swallow();
        cluster.pull("during", json!({"image": IMAGE})).await;
        cluster.pass(outage).await;
        assert_eq!(cluster.status("during").await.desired, 0, "nobody has seen it");
        cluster.faults.heal();
        cluster.finished_within(CURRENT, "before").await;
        cluster.finished_within(CURRENT, "during").await;
    }
}

/// The watch is torn at its first event, and by the time it is resumed, the server has forgotten that time.
#[tokio::test(start_paused = true)]
async fn a_watch_whose_history_is_gone_has_caught_up_within_seconds() {
    let mut cluster = Cluster::with(Options { history_changes: 1, ..Options::default() });
    cluster.publish(IMAGE, Duration::from_millis(10));
    cluster.add_nodes(1).await;
    cluster.faults = Faults::scripted(vec![
        at(1, Action::CutWatch(0, Cut::Broken), Verb::Watch, "imagepulljobs"),
        at(2, Action::Latency(Duration::from_secs(2)), Verb::Watch, "imagepulljobs"),
    ]);
    cluster.start_controller();
    cluster.pass(1).await;
    for name in ["one", "two", "three"] {
        cluster.pull(name, json!({"image": IMAGE, "selector": {"names": ["nowhere"]}})).await;
    }
    // The resumed watch takes two seconds to find out, after a pause of less than one.
    cluster.job_within(3 + 5, "three", |job| job.status.is_some()).await;
}
