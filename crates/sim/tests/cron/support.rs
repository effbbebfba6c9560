//! How these tests begin, and what they look at.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use prewarm_api::kruise::{AdvancedCronJob, AdvancedCronJobStatus, ImageListPullJob, SkipReason};
use prewarm_embedded::Options;
use prewarm_embedded::faults::Verb;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

pub const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
/// The image of every list, unless a test says otherwise.
pub const IMAGE: &str = "registry.example/base:1";
pub const HOUR: u64 = 3600;

/// A cluster with a controller and so many nodes, which pull their image within so many seconds.
pub async fn cluster(nodes: usize, seconds: u64) -> Cluster {
    cluster_with(Options::default(), nodes, seconds).await
}

/// The same with these options of the API.
pub async fn cluster_with(options: Options, nodes: usize, seconds: u64) -> Cluster {
    let mut cluster = Cluster::with(options);
    cluster.publish(IMAGE, Duration::from_secs(seconds));
    cluster.add_nodes(nodes).await;
    cluster.start_controller();
    // Nodes without a NodeImage would be left out.
    for number in 1..=nodes {
        cluster.node_image_within(120, &format!("node-{number}"), |image| image.is_some()).await;
    }
    cluster
}

pub fn status(cron: &AdvancedCronJob) -> AdvancedCronJobStatus {
    cron.status.clone().unwrap_or_default()
}

/// The time of the last run.
pub fn last(cron: &AdvancedCronJob) -> Option<Timestamp> {
    status(cron).last_schedule_time.map(|time| time.0)
}

/// Status, reason and message of a condition.
pub fn condition(cron: &AdvancedCronJob, type_: &str) -> (String, String, String) {
    let found = status(cron).conditions.unwrap_or_default().into_iter().find(|one| one.type_ == type_);
    found.map(|one| (one.status, one.reason, one.message)).unwrap_or_default()
}

/// How many runs were skipped, by reason.
pub fn skipped(cron: &AdvancedCronJob) -> Vec<(SkipReason, i64)> {
    let mut skipped: Vec<(SkipReason, i64)> =
        status(cron).skipped_runs.unwrap_or_default().iter().map(|runs| (runs.reason, runs.count)).collect();
    skipped.sort();
    skipped
}

/// The runs of a cron job that makes image lists, oldest first.
pub async fn runs(cluster: &Cluster) -> Vec<ImageListPullJob> {
    let mut runs = cluster.lists().list(&ListParams::default()).await.unwrap().items;
    runs.sort_by_key(|run| run.metadata.name.clone());
    runs
}

/// Merges into a cron job, as a person does.
pub async fn edit(cluster: &Cluster, name: &str, patch: Value) {
    cluster.crons().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Ends a Job of Kubernetes, as its controller does.
pub async fn end_job(cluster: &Cluster, name: &str, condition: &str) {
    let now = cluster.clock.now().to_string();
    let ended = json!({"type": condition, "status": "True", "message": "as the test wants it"});
    let patch = json!({"status": {"startTime": now, "conditions": [ended]}});
    let patch = Patch::Merge(patch);
    cluster.batch_jobs().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Deletes a run, as a person does.
pub async fn delete_run(cluster: &Cluster, name: &str) {
    cluster.lists().delete(name, &DeleteParams::background()).await.unwrap();
}

/// Reasons and notes of the events about a cron job, oldest first.
pub async fn told(cluster: &Cluster, name: &str) -> Vec<(String, String)> {
    let mut events = cluster.events().await;
    events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
    let is_about = |event: &k8s_openapi::api::events::v1::Event| {
        let about = event.regarding.as_ref();
        about.and_then(|about| about.name.as_deref()) == Some(name)
            && about.and_then(|about| about.kind.as_deref()) == Some("AdvancedCronJob")
    };
    let events = events.into_iter().filter(is_about);
    events.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

/// The reasons alone, in alphabetical order: much happens at one instant of paused time.
pub async fn reasons(cluster: &Cluster, name: &str) -> Vec<String> {
    let mut reasons: Vec<String> = told(cluster, name).await.into_iter().map(|(reason, _)| reason).collect();
    reasons.sort();
    reasons
}

/// How often the controller has written to something whose path has this in it.
pub fn writes_to(cluster: &Cluster, verb: Verb, path: &str) -> usize {
    let journal = cluster.faults.journal();
    journal.iter().filter(|entry| entry.verb == verb && entry.path.contains(path)).count()
}

/// Lets the clock come to this minute of an hour, to its beginning.
pub async fn until_minute(cluster: &Cluster, minute: i64) {
    let second = cluster.clock.now().as_second();
    // The clock is a fraction of a second ahead of its seconds.
    let left = (minute * 60 - second - 1).rem_euclid(3600) + 1;
    cluster.pass(u64::try_from(left).unwrap()).await;
}

/// Lets the next full hour come, and a minute more.
pub async fn past_the_hour(cluster: &Cluster) {
    until_minute(cluster, 0).await;
    cluster.pass(60).await;
}
