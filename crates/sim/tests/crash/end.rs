//! How a cluster ends, without what differs from run to run: times, versions, made-up names.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImagePullJob, NodeImage};
use prewarm_api::names::{DEFAULT_CONFIG_NAMESPACE, SECRET_REFERENCES_ANNOTATION};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_runtime::fake::{Call, Outcome};
use prewarm_sim::Cluster;

use crate::crons::condition;

/// The state that matters.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    jobs: BTreeMap<String, String>,
    lists: BTreeMap<String, String>,
    entries: BTreeMap<String, String>,
    copies: BTreeSet<String>,
    broadcasts: BTreeMap<String, String>,
    crons: BTreeMap<String, String>,
    batch_jobs: BTreeSet<String>,
    /// How many pods there are in each phase.
    pods: BTreeMap<String, usize>,
    prefetches: BTreeMap<String, String>,
    sets: BTreeMap<String, String>,
    /// How often each node pulled each image, or found with the registry's help that it has it.
    pulls: BTreeMap<String, usize>,
    /// Which nodes asked mirrors for which images. How often depends on when they had them.
    mirrored: BTreeSet<String>,
}

impl End {
    pub async fn of(cluster: &Cluster) -> Self {
        let all = ListParams::default();
        let jobs = cluster.jobs().list(&all).await.expect("jobs").items;
        let lists = cluster.lists().list(&all).await.expect("lists").items;
        let images = cluster.node_images().list(&all).await.expect("NodeImages").items;
        let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), DEFAULT_CONFIG_NAMESPACE);
        let secrets = secrets.list(&all).await.expect("Secrets").items;
        let references =
            |secret: Secret| secret.metadata.annotations?.get(SECRET_REFERENCES_ANNOTATION).cloned();
        let prefetches = prefetches(cluster).await;
        let is_asked_again = !prefetches.is_empty();
        Self {
            jobs: jobs.iter().map(|job| (name_of(job), job_in_words(job))).collect(),
            lists: lists
                .iter()
                .map(|list| {
                    let status = list.status.clone().unwrap_or_default();
                    let words = format!(
                        "{} desired, {} completed, {} succeeded, finished {}",
                        status.desired,
                        status.completed,
                        status.succeeded,
                        status.completion_time.is_some()
                    );
                    (list.metadata.name.clone().unwrap_or_default(), words)
                })
                .collect(),
            entries: images.iter().flat_map(entries).collect(),
            broadcasts: broadcasts(cluster).await,
            crons: crons(cluster).await,
            batch_jobs: batch_jobs(cluster).await,
            pods: pods(cluster).await,
            copies: secrets.into_iter().filter_map(references).collect(),
            prefetches,
            sets: sets(cluster).await,
            pulls: pulls(cluster, |call| !is_asked_again || takes_time(call)),
            mirrored: mirrored(cluster),
        }
    }
}

async fn broadcasts(cluster: &Cluster) -> BTreeMap<String, String> {
    let jobs = cluster.broadcasts().list(&ListParams::default()).await.expect("BroadcastJobs").items;
    let in_words = |job: BroadcastJob| {
        let status = job.status.unwrap_or_default();
        let words = format!(
            "{} desired, {} active, {} succeeded, {} failed, {:?}, paused {}, for {:?} failures",
            status.desired,
            status.active,
            status.succeeded,
            status.failed,
            status.phase,
            job.spec.paused,
            status.paused_failures
        );
        (job.metadata.name.unwrap_or_default(), words)
    };
    jobs.into_iter().map(in_words).collect()
}

async fn crons(cluster: &Cluster) -> BTreeMap<String, String> {
    let crons = cluster.crons().list(&ListParams::default()).await.expect("AdvancedCronJobs").items;
    let in_words = |cron: AdvancedCronJob| {
        // A controller that did not replace a run itself can only say that it is gone.
        let last_run = condition(&cron, "LastRunSucceeded").replace("Deleted", "Replaced");
        let scheduling = condition(&cron, "Scheduling").to_owned();
        let status = cron.status.unwrap_or_default();
        let active: Vec<_> = status.active.into_iter().flatten().filter_map(|run| run.name).collect();
        let words = format!(
            "{:?}, last {:?}, active {active:?}, skipped {:?}, {scheduling}, {last_run}",
            status.type_, status.last_schedule_time, status.skipped_runs
        );
        (cron.metadata.name.unwrap_or_default(), words)
    };
    crons.into_iter().map(in_words).collect()
}

async fn prefetches(cluster: &Cluster) -> BTreeMap<String, String> {
    let api: Api<ImagePrefetch> = Api::all(cluster.client.clone());
    let in_words = |prefetch: ImagePrefetch| {
        let status = prefetch.status.unwrap_or_default();
        let words = format!(
            "{} desired, {} pulled, {} pulling, {} failed, of this generation {}, on {:?}, {:?}",
            status.desired_nodes,
            status.image_pulled_nodes,
            status.image_pulling_nodes,
            status.image_pull_failed_nodes,
            status.observed_generation == prefetch.metadata.generation,
            status.selected_nodes,
            reasons(status.conditions)
        );
        (prefetch.metadata.name.unwrap_or_default(), words)
    };
    let all = api.list(&ListParams::default()).await.expect("ImagePrefetches").items;
    all.into_iter().map(in_words).collect()
}

async fn sets(cluster: &Cluster) -> BTreeMap<String, String> {
    let api: Api<NodeImageSet> = Api::all(cluster.client.clone());
    let in_words = |set: NodeImageSet| {
        let status = set.status.unwrap_or_default();
        let images = status.container_image_statuses.into_iter().flatten();
        let told: Vec<_> = images.map(|image| (image.image_ref, image.last_state, image.error)).collect();
        let reasons = reasons(status.conditions);
        let words = format!("{:?}, {:?}, {told:?}, {reasons:?}", set.metadata.labels, set.spec);
        (set.metadata.name.unwrap_or_default(), words)
    };
    let all = api.list(&ListParams::default()).await.expect("NodeImageSets").items;
    all.into_iter().map(in_words).collect()
}

fn reasons(conditions: Option<Vec<Condition>>) -> Vec<String> {
    let in_words = |one: Condition| format!("{}={} {}", one.type_, one.status, one.reason);
    conditions.into_iter().flatten().map(in_words).collect()
}

async fn batch_jobs(cluster: &Cluster) -> BTreeSet<String> {
    let jobs = cluster.batch_jobs().list_metadata(&ListParams::default()).await.expect("Jobs").items;
    jobs.into_iter().filter_map(|job| job.metadata.name).collect()
}

async fn pods(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut pods = BTreeMap::new();
    for pod in cluster.pods().list(&ListParams::default()).await.expect("pods").items {
        *pods.entry(pod.status.and_then(|status| status.phase).unwrap_or_default()).or_default() += 1;
    }
    pods
}

/// Children have names that are made up; their image tells them apart.
fn name_of(job: &ImagePullJob) -> String {
    let is_child = job.metadata.owner_references.is_some();
    if is_child {
        format!("child for {}", job.spec.image)
    } else {
        job.metadata.name.clone().unwrap_or_default()
    }
}

fn job_in_words(job: &ImagePullJob) -> String {
    let status = job.status.clone().unwrap_or_default();
    format!(
        "{} desired, {} active, {} succeeded, {} failed, {:?}, failed {:?}, finalizers {:?}",
        status.desired,
        status.active,
        status.succeeded,
        status.failed,
        status.message,
        status.failed_nodes,
        job.metadata.finalizers
    )
}

fn entries(image: &NodeImage) -> Vec<(String, String)> {
    let node = image.metadata.name.clone().unwrap_or_default();
    let statuses = image.status.clone().unwrap_or_default().image_statuses.unwrap_or_default();
    let mut entries = Vec::new();
    for (name, spec) in &image.spec.images {
        for tag in &spec.tags {
            let status =
                statuses.get(name).and_then(|image| image.tags.iter().find(|status| status.tag == tag.tag));
            // A tag that one job leaves before the next one joins begins anew, with a higher version; what counts is that
            // nothing is pulled again for it.
            let phase = status.filter(|status| status.version == tag.version).map(|status| status.phase);
            let owners = tag.owner_references.as_ref().map_or(0, Vec::len);
            let words = format!(
                "{owners} owners, manual {}, asks {:?} for {:?}, {phase:?}",
                tag.manual, tag.registry_policy, tag.digest
            );
            entries.push((format!("{node} {name}:{}", tag.tag), words));
        }
    }
    entries
}

/// For ImagePrefetches only downloads count: a controller that begins between a grant and its NodeImageSet cannot know whether the
/// registry was asked in this generation, and asks once more. That costs one request, since the node has the image.
fn pulls(cluster: &Cluster, counts: impl Fn(&Call) -> bool) -> BTreeMap<String, usize> {
    let mut pulls = BTreeMap::new();
    for node in cluster.nodes.values() {
        for call in
            node.runtime.calls().iter().filter(|call| call.outcome == Outcome::Succeeded && counts(call))
        {
            *pulls.entry(format!("{} {}", node.name, call.reference)).or_default() += 1;
        }
    }
    pulls
}

fn takes_time(call: &Call) -> bool {
    call.ended.is_some_and(|ended| ended > call.started)
}

fn mirrored(cluster: &Cluster) -> BTreeSet<String> {
    let asked = |node: &prewarm_sim::Node| {
        let name = node.name.clone();
        node.runtime.brought().into_iter().map(move |image| format!("{name} {image}"))
    };
    cluster.nodes.values().flat_map(asked).collect()
}
