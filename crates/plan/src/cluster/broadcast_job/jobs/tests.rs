//! Passes over BroadcastJobs.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use prewarm_api::kruise::BroadcastJob;
use serde_json::{Value, json};

use crate::cluster::broadcast_job::pod::{Phase, Pod};
use crate::cluster::command::{Command, Outcome, Ticket, Verb, Write};
use crate::cluster::size::{BroadcastPods, JobStates};
use crate::cluster::{Input, Kernel, Kind, Object, Settings, Subject, Target};
use crate::object::{NodeName, ObjectKey};
use crate::support::world::with;

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

/// A kernel that knows this many nodes.
fn kernel(nodes: usize) -> Kernel {
    let mut kernel = with(Settings::default());
    for number in 0..nodes {
        see(&mut kernel, node(&format!("node-{number:04}"), "2026-11-15T08:00:00Z"));
    }
    kernel
}

fn see(kernel: &mut Kernel, object: impl Into<Object>) {
    kernel.observe(Input::seen(object), at(0));
}

fn see_pod(kernel: &mut Kernel, pod: Pod) {
    kernel.observe(Input::Seen(seen(pod)), at(0));
}

fn seen(pod: Pod) -> Object {
    Object::from((ObjectKey { namespace: "default".to_owned(), name: pod.name.to_string() }, pod))
}

/// The pods that are asked for, as the answer will show them.
fn creations(commands: &[Command]) -> Vec<(Ticket, Pod)> {
    let pods = commands.iter().filter_map(|command| {
        let Command::Write(Write { ticket, verb: Verb::Create(object) }) = command else { return None };
        let Target::Broadcast(job) = &ticket.asker else { return None };
        let name: Arc<str> = ticket.key.name.as_str().into();
        let terms =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let node = object.pointer(&format!("{terms}/0/matchFields/0/values/0"));
        let pod = Pod {
            uid: name.clone().into(),
            name,
            owner: job.clone(),
            resource_version: "1".to_owned(),
            node: node.and_then(Value::as_str).unwrap().into(),
            phase: Phase::Unfinished,
            is_terminating: false,
            restarts: 0,
            unschedulable: None,
        };
        Some((ticket.clone(), pod))
    });
    pods.collect()
}

fn answer(kernel: &mut Kernel, ticket: Ticket, outcome: Outcome<Pod>, jitter: f64) {
    kernel.observe(Input::Settled { ticket, outcome: outcome.map(seen), jitter }, at(0));
}

/// Runs cycles until no pod is asked for any more, and says how many each cycle asked for.
fn make_all(kernel: &mut Kernel) -> Vec<usize> {
    let mut batches = Vec::new();
    loop {
        let created = creations(&kernel.cycle(at(0)));
        if created.is_empty() {
            return batches;
        }
        batches.push(created.len());
        for (ticket, pod) in created {
            answer(kernel, ticket, Outcome::Written(pod), 0.5);
        }
    }
}

/// kruise T114, R120.
#[test]
fn pods_are_made_in_batches_that_double() {
    let mut kernel = self::kernel(10);
    see(&mut kernel, job("sweep", &json!({"parallelism": 20})));
    assert_eq!(make_all(&mut kernel), [1, 2, 4, 3]);
}

#[test]
fn a_refusal_begins_with_one_again_and_waits() {
    let mut kernel = self::kernel(10);
    see(&mut kernel, job("sweep", &json!({})));
    let first = creations(&kernel.cycle(at(0)));
    for (ticket, _) in first {
        answer(&mut kernel, ticket, Outcome::Refused("exceeded quota".to_owned()), 0.0);
    }
    assert_eq!(creations(&kernel.cycle(at(0))), []);
    assert_eq!(creations(&kernel.cycle(at(1))).len(), 1);
}

/// A pass costs what has changed: with a thousand nodes and twenty jobs, neither heartbeats nor the passing of time cost
/// a pass or a write, and a new node costs one look for each job.
#[test]
fn a_thousand_nodes_and_twenty_jobs_rest_when_nothing_changes() {
    let mut kernel = self::kernel(1000);
    for number in 0..20 {
        see(&mut kernel, job(&format!("sweep-{number:02}"), &json!({})));
    }
    assert_eq!(make_all(&mut kernel).iter().sum::<usize>(), 20_000);
    // The statuses that the passes have asked for are under way; nothing else comes.
    let before = kernel.passes.of(Subject::Broadcast);
    for number in 0..1000 {
        see(&mut kernel, node(&format!("node-{number:04}"), "2026-11-15T08:00:10Z"));
    }
    let key = ObjectKey { namespace: "default".to_owned(), name: "sweep-00".to_owned() };
    let visits = kernel.visits(Kind::BroadcastJob, &key).unwrap();
    assert_eq!(creations(&kernel.cycle(at(1))), []);
    assert_eq!((kernel.passes.of(Subject::Broadcast), kernel.backlog()), (before, 0));
    see(&mut kernel, node("node-late", "2026-11-15T08:00:20Z"));
    assert_eq!(creations(&kernel.cycle(at(2))).len(), 20);
    assert_eq!(kernel.visits(Kind::BroadcastJob, &key).unwrap() - visits, 1);
}

#[test]
fn a_pod_that_is_gone_before_its_making_is_answered_does_not_come_back() {
    let mut kernel = self::kernel(1);
    see(&mut kernel, job("sweep", &json!({})));
    let (ticket, pod) = creations(&kernel.cycle(at(0))).remove(0);
    see_pod(&mut kernel, pod.clone());
    let key = ticket.key.clone();
    kernel.observe(Input::Gone { kind: Kind::BroadcastPod, key, uid: Some(pod.uid.clone()) }, at(0));
    answer(&mut kernel, ticket, Outcome::Written(pod), 0.5);
    assert_eq!(creations(&kernel.cycle(at(0))).len(), 1, "the node is empty");
}

#[test]
fn pods_that_are_heard_of_before_their_job_are_counted() {
    let mut kernel = self::kernel(2);
    let mut other = self::kernel(2);
    see(&mut other, job("sweep", &json!({})));
    let (_, pod) = creations(&other.cycle(at(0))).remove(0);
    see_pod(&mut kernel, pod.clone());
    see(&mut kernel, job("sweep", &json!({})));
    let made: Vec<NodeName> = creations(&kernel.cycle(at(0))).into_iter().map(|(_, pod)| pod.node).collect();
    assert_eq!(made.len(), 1);
    assert_ne!(made[0], pod.node);
}

#[test]
fn nothing_is_done_before_everything_was_listed() {
    let mut kernel = Kernel::new(Settings::default());
    for kind in Kind::needed() {
        kernel.observe(Input::Listed { kind, namespace: None, names: BTreeSet::new() }, at(0));
    }
    see(&mut kernel, node("node-1", "2026-11-15T08:00:00Z"));
    see(&mut kernel, job("sweep", &json!({})));
    // The node gets its NodeImage all the same.
    let is_for_job = |command: &Command| matches!(command, Command::Write(Write { ticket, .. }) if matches!(ticket.asker, Target::Broadcast(_)));
    assert!(!kernel.cycle(at(0)).iter().any(is_for_job));
}

/// The flag of kruise R120.
#[test]
fn pods_are_bound_directly_if_that_is_wanted() {
    let mut kernel = with(Settings { assigns_by_scheduler: false, ..Settings::default() });
    see(&mut kernel, node("node-1", "2026-11-15T08:00:00Z"));
    see(&mut kernel, job("sweep", &json!({})));
    let commands = kernel.cycle(at(0));
    let pod = commands.iter().find_map(|command| match command {
        Command::Write(Write { ticket, verb: Verb::Create(pod) }) if ticket.kind == Kind::BroadcastPod => {
            Some(pod["spec"]["nodeName"].clone())
        }
        _ => None,
    });
    assert_eq!(pod, Some(json!("node-1")));
}

#[test]
fn jobs_and_the_pods_of_unfinished_ones_are_counted_by_state() {
    let mut kernel = self::kernel(6);
    see(&mut kernel, job("sweep", &json!({"parallelism": 4})));
    make_all(&mut kernel);
    let pods: Vec<Pod> = kernel.broadcasts.jobs.get("sweep").unwrap().roll.clone().into_pods().collect();
    let change = |kernel: &mut Kernel, number: usize, phase: Phase, unschedulable: Option<&str>| {
        let resource_version = "2".to_owned();
        let unschedulable = unschedulable.map(Into::into);
        let pod = Pod { resource_version, phase, unschedulable, ..pods[number].clone() };
        see_pod(kernel, pod);
    };
    change(&mut kernel, 0, Phase::Succeeded, None);
    change(&mut kernel, 1, Phase::Failed, None);
    change(&mut kernel, 2, Phase::Unfinished, Some("0/6 nodes are available"));
    let wanted = BroadcastPods { waiting: 2, unscheduled: 1, active: 1, succeeded: 1, failed: 1 };
    assert_eq!(kernel.broadcasts.size(), (JobStates { running: 1, ..JobStates::default() }, wanted));
    let mut over = job("sweep", &json!({}));
    over.metadata.resource_version = Some("2".to_owned());
    over.status = serde_json::from_value(
        json!({"phase": "failed", "conditions": [{"type": "Failed", "status": "True"}]}),
    )
    .unwrap();
    see(&mut kernel, over);
    let failed = JobStates { failed: 1, ..JobStates::default() };
    assert_eq!(kernel.broadcasts.size(), (failed, BroadcastPods::default()));
}

/// A pod that names a job as its owner, as its watch shows it.
fn forged(namespace: &str, owner: &str) -> Object {
    let pod = Pod {
        name: "forged".into(),
        uid: "forged".into(),
        owner: owner.into(),
        resource_version: "1".to_owned(),
        node: "node-0000".into(),
        phase: Phase::Failed,
        is_terminating: false,
        restarts: 0,
        unschedulable: None,
    };
    Object::from((ObjectKey { namespace: namespace.to_owned(), name: "forged".to_owned() }, pod))
}

/// UIDs are no secret, and an owner reference has no namespace.
#[test]
fn a_pod_that_somebody_forges_in_another_namespace_counts_for_no_job() {
    let asked = |forger: &str, is_first: bool| {
        let mut kernel = self::kernel(1);
        let sweep = job("sweep", &json!({"failurePolicy": {"type": "FailFast"}}));
        if is_first {
            kernel.observe(Input::Seen(forged(forger, "sweep")), at(0));
            see(&mut kernel, sweep);
        } else {
            see(&mut kernel, sweep);
            kernel.observe(Input::Seen(forged(forger, "sweep")), at(0));
        }
        creations(&kernel.cycle(at(0))).len()
    };
    assert_eq!([asked("other", true), asked("other", false)], [1, 1], "the node gets its pod");
    assert_eq!([asked("default", true), asked("default", false)], [0, 0], "a pod of its own has failed");
}

#[test]
fn a_forged_pod_goes_without_a_trace() {
    let mut kernel = self::kernel(1);
    see(&mut kernel, job("sweep", &json!({})));
    kernel.observe(Input::Seen(forged("other", "sweep")), at(0));
    let key = ObjectKey { namespace: "other".to_owned(), name: "forged".to_owned() };
    kernel.observe(Input::Gone { kind: Kind::BroadcastPod, key, uid: Some("forged".into()) }, at(0));
    assert!(kernel.broadcasts.orphans.is_empty());
    assert_eq!(make_all(&mut kernel), [1]);
}
