//! What cannot run is told, never silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::{DeleteParams, ListParams};
use prewarm_api::kruise::SkipReason;
use prewarm_embedded::Options;
use prewarm_embedded::faults::{Action, Filter, ScriptedFault, Verb};
use serde_json::json;

use crate::support::{
    HOUR, IMAGE, VERSIONS, cluster, cluster_with, condition, edit, last, past_the_hour, reasons, runs,
    skipped, told, until_minute, writes_to,
};

/// kruise T106: what the server takes and no parser can read is a condition and an event.
#[tokio::test(start_paused = true)]
async fn a_schedule_that_cannot_run_is_told() {
    let cluster = cluster(0, 1).await;
    let table = [
        ("backwards", json!({"schedule": "30-10 * * * *"}), "NotASchedule"),
        ("never", json!({"schedule": "0 0 30 2 *"}), "NeverDue"),
        ("nowhere", json!({"schedule": "0 * * * *", "timeZone": "Mars/Olympus"}), "UnknownTimeZone"),
        ("inside", json!({"schedule": "TZ=Mars/Olympus 0 * * * *"}), "NotASchedule"),
    ];
    for (version, (name, spec, reason)) in
        VERSIONS.iter().flat_map(|version| table.iter().map(move |row| (version, row)))
    {
        let name = format!("{name}-{version}");
        cluster.cron(version, &name, spec).await;
        let cron = cluster.cron_within(5, &name, |cron| condition(cron, "Scheduling").0 == "False").await;
        assert_eq!(condition(&cron, "Scheduling").1, *reason, "{name}");
        cluster.pass(5).await;
        assert_eq!(reasons(&cluster, &name).await, [*reason]);
    }
    let before = cluster.faults.writes();
    cluster.pass(3 * HOUR).await;
    assert_eq!((cluster.faults.writes(), runs(&cluster).await.len()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn a_mended_schedule_runs() {
    let cluster = cluster(1, 1).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *", "timeZone": "Mars/Olympus"})).await;
    cluster.pass(5).await;
    edit(&cluster, "base", json!({"spec": {"timeZone": "Europe/Berlin"}})).await;
    let cron = cluster.cron_within(2 * HOUR, "base", |cron| last(cron).is_some()).await;
    assert_eq!(condition(&cron, "Scheduling").1, "OnSchedule");
}

/// A child that the server refuses is named with the server's words, and tried again.
#[tokio::test(start_paused = true)]
async fn a_refused_run_is_told_in_the_servers_words() {
    let cluster = cluster(1, 1).await;
    let filter = Filter::verb(Verb::Create).of("imagelistpulljobs");
    cluster.faults.add(ScriptedFault::always(Action::Forbidden).of(filter));
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *"})).await;
    past_the_hour(&cluster).await;
    let cron = cluster.cron_within(5, "base", |cron| condition(cron, "Scheduling").1 == "Refused").await;
    let (_, _, message) = condition(&cron, "Scheduling");
    assert!(
        message.contains("does not take ImageListPullJob base-") && message.contains("quota"),
        "{message}"
    );
    cluster.pass(HOUR + 600).await;
    let all = told(&cluster, "base").await;
    assert_eq!(all.len(), 2, "once for each run: {all:?}");
    assert!(all.iter().all(|(reason, note)| reason == "RunRefused" && note.contains("quota")), "{all:?}");
    assert!(writes_to(&cluster, Verb::Create, "/imagelistpulljobs") < 60, "the pauses grow");
    cluster.faults.clear_script();
    // Whoever edits it need not wait for the pause to end.
    edit(&cluster, "base", json!({"spec": {"successfulJobsHistoryLimit": 5}})).await;
    let cron = cluster.cron_within(5, "base", |cron| last(cron).is_some()).await;
    assert_eq!(skipped(&cron), [(SkipReason::Refused, 1)]);
    assert_eq!(condition(&cron, "Scheduling").1, "OnSchedule");
}

/// kruise W22.
#[tokio::test(start_paused = true)]
async fn a_status_that_meets_a_conflict_is_written_again() {
    let cluster = cluster(1, 1).await;
    let filter = Filter::verb(Verb::Patch).of("advancedcronjobs");
    cluster.faults.add(ScriptedFault::at(2, Action::Conflict).of(filter));
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *"})).await;
    until_minute(&cluster, 0).await;
    let cron = cluster.cron_within(5, "base", |cron| last(cron).is_some()).await;
    assert_eq!(runs(&cluster).await.len(), 1);
    assert_eq!(condition(&cron, "Scheduling").1, "OnSchedule");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_taken_is_told() {
    let cluster = cluster(1, 1).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *"})).await;
    let now = cluster.clock.now().as_second();
    let due = now - now.rem_euclid(3600) + 3600;
    cluster.pull_list(&format!("base-{due}"), json!({"images": [crate::support::IMAGE]})).await;
    let cron =
        cluster.cron_within(2 * HOUR, "base", |cron| condition(cron, "Scheduling").1 == "Refused").await;
    let (_, _, message) = condition(&cron, "Scheduling");
    assert!(message.ends_with("one of this name is there already, and not of this cron job"), "{message}");
    cluster.cron_within(2 * HOUR, "base", |cron| last(cron).is_some()).await;
}

/// What the controller has made itself it knows by the answer: a watch that says nothing does not hold up the run.
#[tokio::test(start_paused = true)]
async fn a_list_has_its_children_at_once_although_its_watch_is_blocked() {
    let cluster = cluster(1, 1).await;
    let filter = Filter::verb(Verb::Watch).of("imagelistpulljobs");
    cluster.faults.add(ScriptedFault::always(Action::DelayWatch(Duration::from_secs(100 * HOUR))).of(filter));
    // By then the watch has been opened anew.
    cluster.pass(600).await;
    cluster.cron("v1beta1", "base", &json!({"schedule": "0 * * * *"})).await;
    until_minute(&cluster, 0).await;
    let limit = Duration::from_mins(1);
    cluster.within(limit, "the run", async || !runs(&cluster).await.is_empty()).await;
    let children = async || !cluster.jobs().list(&ListParams::default()).await.unwrap().items.is_empty();
    cluster.within(Duration::from_secs(1), "a child of the run", children).await;
}

/// A run that goes while its kind is being listed anew leaves no trace on any watch: only its absence from the list tells.
#[tokio::test(start_paused = true)]
async fn a_run_that_goes_while_its_kind_is_listed_anew_is_not_waited_for() {
    let forgetful = Options { history_changes: 1, ..Options::default() };
    let cluster = cluster_with(forgetful, 1, 10 * HOUR).await;
    let forbid = json!({"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"});
    cluster.cron("v1beta1", "base", &forbid).await;
    let is_blocked = Arc::new(AtomicBool::new(true));
    for verb in [Verb::Watch, Verb::List] {
        let is_blocked = is_blocked.clone();
        let fault = ScriptedFault::when(move |_| is_blocked.load(Ordering::Relaxed), Action::InternalError);
        cluster.faults.add(fault.of(Filter::verb(verb).of("imagelistpulljobs")));
    }
    // By then the watch has ended and cannot be opened again.
    cluster.pass(600).await;
    until_minute(&cluster, 0).await;
    let first = cluster.cron_within(60, "base", |cron| last(cron).is_some()).await;
    let run = runs(&cluster).await.remove(0).metadata.name.unwrap();
    cluster.lists().delete(&run, &DeleteParams::default()).await.unwrap();
    // The server forgets that there ever was a run.
    for name in ["one", "two"] {
        cluster.pull_list(name, json!({"images": [IMAGE]})).await;
    }
    is_blocked.store(false, Ordering::Relaxed);
    cluster.cron_within(2 * HOUR, "base", |cron| last(cron) > last(&first)).await;
}
