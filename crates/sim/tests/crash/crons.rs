//! Stories of AdvancedCronJobs. Their times are few and soon, so that nothing is due when the cluster is watched for writes.

use std::time::Duration;

use futures::FutureExt as _;
use kube::api::{Patch, PatchParams};
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_sim::Cluster;
use serde_json::{Value, json};

use crate::Scenario;
use crate::scenarios::{PATIENCE, no_entries, scenarios};

/// Once, two minutes after the beginning.
const ONCE: &str = "2 8 15 11 *";
/// And once more, two minutes later.
const TWICE: &str = "2,4 8 15 11 *";
const IMAGE: (&str, u64) = ("registry.example/base:1", 500);

scenarios! { CRONS:
    "an image list on a schedule", 1, [IMAGE], once;
    "a scheduled list that is replaced by the next", 1, [IMAGE], replaced;
    "a scheduled list that waits for the one before", 1, [IMAGE], forbidden;
    "a schedule that is paused while it is due", 1, [IMAGE], paused;
    "runs that nobody keeps", 1, [IMAGE], unkept;
    "jobs on a schedule", 1, [], jobs;
}

async fn once(cluster: &mut Cluster) {
    cluster.cron("v1beta1", "base", &json!({"schedule": ONCE})).await;
    ended(cluster, "Complete").await;
}

/// Lists with parallelism 0 do not begin.
fn hanging() -> Value {
    json!({"imageListPullJobTemplate": {"spec": {"parallelism": 0}}})
}

async fn replaced(cluster: &mut Cluster) {
    cluster.cron("v1beta1", "base", &json!({"schedule": TWICE, "template": hanging()})).await;
    runs(cluster, 2).await;
    // Until the jobs of the one list are gone and those of the other are there, also with watches that break.
    cluster
        .written_within(Duration::from_secs(PATIENCE), "the jobs of the second list alone", async || {
            let lists = cluster.lists().list(&<_>::default()).await.expect("lists").items;
            let jobs = cluster.jobs().list(&<_>::default()).await.expect("jobs").items;
            let desired_of_lists =
                lists.iter().map(|list| list.status.as_ref().map_or(0, |status| status.desired));
            let desired_of_jobs =
                jobs.iter().map(|job| job.status.as_ref().map_or(0, |status| status.desired));
            desired_of_lists.eq([1]) && desired_of_jobs.eq([1])
        })
        .await;
}

async fn forbidden(cluster: &mut Cluster) {
    let spec = json!({"schedule": TWICE, "concurrencyPolicy": "Forbid", "template": hanging()});
    cluster.cron("v1beta1", "base", &spec).await;
    reaches(cluster, |cron| condition(cron, "Scheduling") == "Forbidden").await;
    let_go(cluster).await;
    runs(cluster, 2).await;
    let_go(cluster).await;
    ended(cluster, "Complete").await;
}

/// Lets the lists begin that were made not to.
async fn let_go(cluster: &Cluster) {
    let patch = Patch::Merge(json!({"spec": {"parallelism": 1}}));
    for list in cluster.lists().list(&<_>::default()).await.expect("lists").items {
        let name = list.metadata.name.expect("a list has a name");
        cluster.lists().patch(&name, &PatchParams::default(), &patch).await.expect("a list");
    }
}

async fn paused(cluster: &mut Cluster) {
    cluster.cron("v1beta1", "base", &json!({"schedule": TWICE, "paused": true})).await;
    cluster.pass(300).await;
    edit(cluster, json!({"spec": {"paused": false}})).await;
    ended(cluster, "Complete").await;
}

async fn unkept(cluster: &mut Cluster) {
    let limits = json!({"schedule": ONCE, "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0});
    cluster.cron("v1beta1", "base", &limits).await;
    ended(cluster, "Complete").await;
    // What the run has asked of nodes goes last, and with watches that break it is heard late.
    no_entries(cluster).await;
}

async fn jobs(cluster: &mut Cluster) {
    let template = json!({"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}});
    cluster.cron("v1beta1", "base", &json!({"schedule": ONCE, "template": template})).await;
    runs(cluster, 1).await;
    let name = cluster.batch_jobs().list(&<_>::default()).await.expect("Jobs").items.remove(0).metadata.name;
    let ended_well = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(ended_well));
    cluster.batch_jobs().patch_status(&name.expect("a name"), &params, &patch).await.expect("a Job");
    ended(cluster, "Complete").await;
}

async fn edit(cluster: &Cluster, patch: Value) {
    cluster.crons().patch("base", &PatchParams::default(), &Patch::Merge(patch)).await.expect("a cron job");
}

async fn reaches(cluster: &Cluster, is_so: impl Fn(&AdvancedCronJob) -> bool) {
    cluster.cron_within(PATIENCE, "base", is_so).await;
}

/// Waits until the last of so many times is written down: the first at two minutes, the second at four.
async fn runs(cluster: &Cluster, count: i64) {
    let is_last = |cron: &AdvancedCronJob| {
        let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
        last.is_some_and(|time| time.0.as_second().rem_euclid(3600) == count * 120)
    };
    reaches(cluster, is_last).await;
}

async fn ended(cluster: &Cluster, how: &str) {
    reaches(cluster, |cron| {
        condition(cron, "LastRunSucceeded") == how
            && cron.status.as_ref().is_some_and(|status| status.active.is_none())
    })
    .await;
}

/// The reason of a condition.
pub fn condition<'a>(cron: &'a AdvancedCronJob, type_: &str) -> &'a str {
    let mut conditions = cron.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.find(|one| one.type_ == type_).map_or("", |one| &one.reason)
}
