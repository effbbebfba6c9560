//! Turns over BroadcastJobs.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use prewarm_api::kruise::BroadcastJob;
use serde_json::{Value, json};

use crate::broadcast_job::pod::{Phase, Pod};
use crate::ledger::size::{BroadcastPods, JobStates};
use crate::ledger::{Command, Ledger, Outcome, Settings};
use crate::object::{NodeName, ObjectKey, Uid};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn node(name: &str, beat: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": beat},
        "status": {
            "allocatable": {"pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}],
        },
    }))
    .unwrap()
}

fn job(name: &str, fields: &Value) -> BroadcastJob {
    let mut spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "tool:1"}]}}});
    json_patch::merge(&mut spec, fields);
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}, "spec": spec,
    }))
    .unwrap()
}

/// A ledger that has heard of so many nodes.
fn ledger(nodes: usize) -> Ledger {
    let mut ledger = Ledger::new(Settings::default());
    for number in 0..nodes {
        ledger.hear_node(node(&format!("node-{number:04}"), "2026-11-15T08:00:00Z"));
    }
    ledger.broadcasts.sync();
    ledger
}

/// The pods that are asked for: job, node, and what the answer will be.
fn creations(commands: &[Command]) -> Vec<(Uid, NodeName, Pod)> {
    let pods = commands.iter().filter_map(|command| match command {
        Command::CreatePod { job, node, pod } => {
            let name: Arc<str> = pod["metadata"]["name"].as_str().unwrap().into();
            let pod = Pod {
                uid: name.clone().into(),
                name,
                owner: job.clone(),
                resource_version: "1".to_owned(),
                node: node.clone(),
                phase: Phase::Unfinished,
                is_terminating: false,
                restarts: 0,
                unschedulable: None,
            };
            Some((job.clone(), node.clone(), pod))
        }
        _ => None,
    });
    pods.collect()
}

/// Takes turns until no pod is asked for any more, and says how many each turn asked for.
fn make_all(ledger: &mut Ledger) -> Vec<usize> {
    let mut batches = Vec::new();
    loop {
        let created = creations(&ledger.turn(at(0)));
        if created.is_empty() {
            return batches;
        }
        batches.push(created.len());
        for (job, node, pod) in created {
            ledger.broadcasts.pod_created(&job, &node, "default", Outcome::Written(pod), at(0), 0.5);
        }
    }
}

/// kruise T114, R120.
#[test]
fn pods_are_made_in_batches_that_double() {
    let mut ledger = ledger(10);
    ledger.broadcasts.hear_job(job("sweep", &json!({"parallelism": 20})));
    assert_eq!(make_all(&mut ledger), [1, 2, 4, 3]);
}

#[test]
fn a_refusal_begins_with_one_again_and_waits() {
    let mut ledger = ledger(10);
    ledger.broadcasts.hear_job(job("sweep", &json!({})));
    let first = creations(&ledger.turn(at(0)));
    for (job, node, _) in first {
        let refused = Outcome::Refused("exceeded quota".to_owned());
        ledger.broadcasts.pod_created(&job, &node, "default", refused, at(0), 0.0);
    }
    assert_eq!(creations(&ledger.turn(at(0))), []);
    assert_eq!(creations(&ledger.turn(at(1))).len(), 1);
}

/// A pass costs what has changed: with a thousand nodes and twenty jobs, neither heartbeats nor the passing of time cost
/// a pass or a write, and a new node costs one look for each job.
#[test]
fn a_thousand_nodes_and_twenty_jobs_rest_when_nothing_changes() {
    let mut ledger = ledger(1000);
    for number in 0..20 {
        ledger.broadcasts.hear_job(job(&format!("sweep-{number:02}"), &json!({})));
    }
    assert_eq!(make_all(&mut ledger).iter().sum::<usize>(), 20_000);
    // The statuses that the passes have asked for are under way; nothing else comes.
    let before = ledger.passes().broadcasts;
    for number in 0..1000 {
        ledger.hear_node(node(&format!("node-{number:04}"), "2026-11-15T08:00:10Z"));
    }
    let key = ObjectKey { namespace: "default".to_owned(), name: "sweep-00".to_owned() };
    let visits = ledger.broadcasts.visits(&key).unwrap();
    assert_eq!(creations(&ledger.turn(at(1))), []);
    assert_eq!((ledger.passes().broadcasts, ledger.broadcasts.has_news()), (before, false));
    ledger.hear_node(node("node-late", "2026-11-15T08:00:20Z"));
    assert_eq!(creations(&ledger.turn(at(2))).len(), 20);
    assert_eq!(ledger.broadcasts.visits(&key).unwrap() - visits, 1);
}

#[test]
fn a_pod_that_is_gone_before_its_making_is_answered_does_not_come_back() {
    let mut ledger = ledger(1);
    ledger.broadcasts.hear_job(job("sweep", &json!({})));
    let (job, node, pod) = creations(&ledger.turn(at(0))).remove(0);
    ledger.broadcasts.hear_pod("default", pod.clone());
    ledger.broadcasts.lose_pod("default", &pod.name, Some(&pod.uid));
    ledger.broadcasts.pod_created(&job, &node, "default", Outcome::Written(pod), at(0), 0.5);
    assert_eq!(creations(&ledger.turn(at(0))).len(), 1, "the node is empty");
}

#[test]
fn pods_that_are_heard_of_before_their_job_are_counted() {
    let mut ledger = ledger(2);
    let mut other = self::ledger(2);
    other.broadcasts.hear_job(job("sweep", &json!({})));
    let (_, _, pod) = creations(&other.turn(at(0))).remove(0);
    ledger.broadcasts.hear_pod("default", pod.clone());
    ledger.broadcasts.hear_job(job("sweep", &json!({})));
    let made: Vec<NodeName> = creations(&ledger.turn(at(0))).into_iter().map(|(_, node, _)| node).collect();
    assert_eq!(made.len(), 1);
    assert_ne!(made[0], pod.node);
}

#[test]
fn nothing_is_done_before_everything_was_listed() {
    let mut ledger = Ledger::new(Settings::default());
    ledger.hear_node(node("node-1", "2026-11-15T08:00:00Z"));
    ledger.broadcasts.hear_job(job("sweep", &json!({})));
    // The node gets its NodeImage all the same.
    let is_for_job =
        |command: &Command| matches!(command, Command::CreatePod { .. } | Command::Broadcast { .. });
    assert!(!ledger.turn(at(0)).iter().any(is_for_job));
}

/// The flag of kruise R120.
#[test]
fn pods_are_bound_directly_if_that_is_wanted() {
    let mut ledger = Ledger::new(Settings { assigns_by_scheduler: false, ..Settings::default() });
    ledger.hear_node(node("node-1", "2026-11-15T08:00:00Z"));
    ledger.broadcasts.sync();
    ledger.broadcasts.hear_job(job("sweep", &json!({})));
    let commands = ledger.turn(at(0));
    let pod = commands.iter().find_map(|command| match command {
        Command::CreatePod { pod, .. } => Some(pod["spec"]["nodeName"].clone()),
        _ => None,
    });
    assert_eq!(pod, Some(json!("node-1")));
}

#[test]
fn jobs_and_the_pods_of_unfinished_ones_are_counted_by_state() {
    let mut ledger = ledger(6);
    ledger.broadcasts.hear_job(job("sweep", &json!({"parallelism": 4})));
    make_all(&mut ledger);
    let pods: Vec<Pod> = ledger.broadcasts.jobs["sweep"].roll.clone().into_pods().collect();
    let change = |ledger: &mut Ledger, number: usize, phase: Phase, unschedulable: Option<&str>| {
        let resource_version = "2".to_owned();
        let unschedulable = unschedulable.map(Into::into);
        let pod = Pod { resource_version, phase, unschedulable, ..pods[number].clone() };
        ledger.broadcasts.hear_pod("default", pod);
    };
    change(&mut ledger, 0, Phase::Succeeded, None);
    change(&mut ledger, 1, Phase::Failed, None);
    change(&mut ledger, 2, Phase::Unfinished, Some("0/6 nodes are available"));
    let wanted = BroadcastPods { waiting: 2, unscheduled: 1, active: 1, succeeded: 1, failed: 1 };
    assert_eq!(ledger.broadcasts.size(), (JobStates { running: 1, ..JobStates::default() }, wanted));
    let mut over = job("sweep", &json!({}));
    over.metadata.resource_version = Some("2".to_owned());
    over.status = serde_json::from_value(
        json!({"phase": "failed", "conditions": [{"type": "Failed", "status": "True"}]}),
    )
    .unwrap();
    ledger.broadcasts.hear_job(over);
    let failed = JobStates { failed: 1, ..JobStates::default() };
    assert_eq!(ledger.broadcasts.size(), (failed, BroadcastPods::default()));
}
