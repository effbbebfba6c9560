//! How these tests begin, and what they look at.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use prewarm_api::kruise::{BroadcastJob, BroadcastJobPhase};
use prewarm_embedded::faults::Verb;
use prewarm_sim::{Act, Cluster, Player};
use serde_json::{Value, json};

pub const SECOND: Duration = Duration::from_secs(1);

/// A cluster with a controller, so many nodes without agents, and pods that end well after two seconds.
pub async fn cluster(nodes: usize) -> (Cluster, Player) {
    let mut cluster = Cluster::new();
    for number in 1..=nodes {
        cluster.make_node(&format!("node-{number}"), json!({})).await;
    }
    let player = cluster.play(Act::Succeeds(2 * SECOND));
    cluster.start_controller();
    cluster.pass(1).await;
    (cluster, player)
}

/// Desired, active, succeeded, failed.
pub fn counters(job: &BroadcastJob) -> [i32; 4] {
    let status = job.status.clone().unwrap_or_default();
    [status.desired, status.active, status.succeeded, status.failed]
}

pub fn phase(job: &BroadcastJob) -> Option<BroadcastJobPhase> {
    job.status.as_ref().and_then(|status| status.phase)
}

/// Waits for a phase.
pub async fn reaches(cluster: &Cluster, name: &str, wanted: BroadcastJobPhase) -> BroadcastJob {
    cluster.broadcast_within(60, name, |job| phase(job) == Some(wanted)).await
}

/// Waits until the counters of a job are these.
pub async fn counts(cluster: &Cluster, name: &str, wanted: [i32; 4]) -> BroadcastJob {
    cluster.broadcast_within(60, name, |job| counters(job) == wanted).await
}

/// Status and message of a condition.
pub fn condition(job: &BroadcastJob, type_: &str) -> Option<(String, String)> {
    let conditions = job.status.clone()?.conditions?;
    let found = conditions.into_iter().find(|condition| condition.type_ == type_)?;
    Some((found.status, found.message.unwrap_or_default()))
}

pub async fn pods(cluster: &Cluster) -> Vec<Pod> {
    cluster.pods().list(&ListParams::default()).await.unwrap().items
}

/// How many pods the controller has asked for.
pub fn pods_asked_for(cluster: &Cluster) -> usize {
    let journal = cluster.faults.journal();
    journal.iter().filter(|entry| entry.verb == Verb::Create && entry.path.contains("/pods")).count()
}

/// Merges into a BroadcastJob, as a person does.
pub async fn edit(cluster: &Cluster, name: &str, patch: Value) {
    cluster.broadcasts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Merges into a Node.
pub async fn edit_node(cluster: &Cluster, name: &str, patch: Value) {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Reasons and notes of the events about a job, oldest first.
pub async fn told(cluster: &Cluster, name: &str) -> Vec<(String, String)> {
    let mut events = cluster.events().await;
    events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
    let events = events
        .into_iter()
        .filter(|event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(name));
    events.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

/// The reasons alone.
pub async fn reasons(cluster: &Cluster, name: &str) -> Vec<String> {
    told(cluster, name).await.into_iter().map(|(reason, _)| reason).collect()
}
