//! Decisions about a BroadcastJob.

use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::{BroadcastJob, BroadcastJobPhase, BroadcastJobStatus};
use serde_json::{Value, json};

use super::pod::{Phase, Pod};
use super::roll::{NodeStanding, Roll};
use super::{Decision, Observed, decide};
use crate::object::NodeName;

mod ends;
mod fits;
mod pauses;
mod runs;
mod shapes;

const NOW: i64 = 1_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A job with these fields of its spec, that began a minute ago.
fn job(fields: &Value) -> BroadcastJob {
    let mut spec = json!({
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "tool:1"}]}},
    });
    json_patch::merge(&mut spec, fields);
    let object = json!({
        "metadata": {"name": "sweep", "namespace": "default", "uid": "job-1", "generation": 1},
        "spec": spec,
        "status": {"startTime": at(NOW - 60).to_string(), "phase": "running"},
    });
    serde_json::from_value(object).unwrap()
}

fn with_status(mut job: BroadcastJob, change: impl FnOnce(&mut BroadcastJobStatus)) -> BroadcastJob {
    change(job.status.get_or_insert_default());
    job
}

/// A pod of the job on a node. `state` is a phase, `leaving`, `restarted N`, or `unschedulable`.
fn pod(node: &str, state: &str) -> Pod {
    let restarts = state.strip_prefix("restarted ").map_or(0, |times| times.parse().unwrap());
    let name = format!("sweep-{node}");
    Pod {
        uid: format!("uid-{name}").into(),
        name: name.into(),
        owner: "job-1".into(),
        resource_version: "1".to_owned(),
        node: node.into(),
        phase: match state {
            "Succeeded" => Phase::Succeeded,
            "Failed" => Phase::Failed,
            _ => Phase::Unfinished,
        },
        is_terminating: state == "leaving",
        restarts,
        unschedulable: (state == "unschedulable").then(|| "0/3 nodes are available: too many pods".into()),
    }
}

/// Nodes that fit, and pods by node and state.
fn roll(job: &BroadcastJob, nodes: &[&str], pods: &[(&str, &str)]) -> Roll {
    let mut roll = Roll::new(job.spec.failure_policy.restart_limit.unwrap_or(0));
    for node in nodes {
        roll.set_node(&NodeName::from(*node), NodeStanding::Fits);
    }
    for (node, state) in pods {
        roll.put(pod(node, state));
    }
    roll
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("node-{number}")).collect()
}

fn observed(job: &BroadcastJob) -> Observed<'_> {
    Observed { job, refusal: None, creating: 0, has_warned_of_too_many: false, now: at(NOW) }
}

fn decided(job: &BroadcastJob, nodes: &[&str], pods: &[(&str, &str)]) -> Decision {
    decide(&observed(job), &roll(job, nodes, pods))
}

/// Desired, active, succeeded, failed.
fn counters(decision: &Decision) -> [i32; 4] {
    let status = decision.status.clone().expect("a new status");
    [status.desired, status.active, status.succeeded, status.failed]
}

fn phase(decision: &Decision) -> Option<BroadcastJobPhase> {
    decision.status.as_ref().and_then(|status| status.phase)
}

/// Status, reason and message of a condition.
fn condition(decision: &Decision, type_: &str) -> Option<(String, String, String)> {
    let conditions = decision.status.clone()?.conditions?;
    let found = conditions.into_iter().find(|condition| condition.type_ == type_)?;
    Some((found.status, found.reason.unwrap_or_default(), found.message.unwrap_or_default()))
}

fn reasons(decision: &Decision) -> Vec<&'static str> {
    decision.notices.iter().map(|notices| notices.reason).collect()
}

fn deleted(decision: &Decision) -> Vec<&str> {
    decision.delete.iter().map(|(name, _)| &**name).collect()
}
