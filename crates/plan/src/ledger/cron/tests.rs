//! Turns over AdvancedCronJobs.

use jiff::{SignedDuration, Timestamp};
use prewarm_api::kruise::{AdvancedCronJob, ImageListPullJob, SkipReason, TemplateKind};
use serde_json::{Value, json};

use crate::advanced_cron_job::child::Child;
use crate::advanced_cron_job::runs::{Fate, Runs};
use crate::ledger::cron::RunKey;
use crate::ledger::size::JobStates;
use crate::ledger::{Command, Ledger, Outcome, Settings, Write};
use crate::object::{ObjectKey, Uid};

fn at(second: i64) -> Timestamp {
    let midnight: Timestamp = "2026-11-17T00:00:00Z".parse().unwrap();
    midnight + SignedDuration::from_secs(second)
}

fn cron(name: &str, fields: &Value) -> AdvancedCronJob {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2026-11-17T00:00:00Z"},
        "spec": {"schedule": "0 * * * *", "template": {"imageListPullJobTemplate": {
            "spec": {"images": ["a"], "completionPolicy": {}}}}},
    });
    json_patch::merge(&mut object, fields);
    serde_json::from_value(object).unwrap()
}

/// A ledger that knows all runs there are: none.
fn ledger() -> Ledger {
    let mut ledger = Ledger::new(Settings::default());
    for kind in [TemplateKind::ImageListPullJob, TemplateKind::BroadcastJob] {
        ledger.crons.sync(kind);
    }
    ledger
}

/// What a turn asks for, in short.
fn turn(ledger: &mut Ledger, second: i64) -> Vec<String> {
    carry_out(ledger, second, true)
}

/// Takes a turn and answers what it asks for.
fn carry_out(ledger: &mut Ledger, second: i64, is_taken: bool) -> Vec<String> {
    let mut asked = Vec::new();
    for command in ledger.turn(at(second)) {
        match command {
            Command::Cron { uid, key, write: Write::Status(operations) } => {
                asked.push(format!("status of {}", key.name));
                let version = (1000 + second).to_string();
                let mut object = held(ledger, &uid);
                object.status = serde_json::from_value(operations[2]["value"].clone()).unwrap();
                object.metadata.resource_version = Some(version);
                ledger.crons.cron_outcome(&key, &uid, Outcome::Written(object), at(second), 0.5);
            }
            Command::CreateRun { cron, key, run } => {
                asked.push(format!("create {}", key.key.name));
                let outcome = if is_taken {
                    Outcome::Written(Some(child(*run, "1")))
                } else {
                    Outcome::Refused("exceeded quota".to_owned())
                };
                ledger.crons.run_created(&cron, &key, outcome, at(second), 0.0);
            }
            Command::DeleteRun { cron, key, uid } => {
                asked.push(format!("delete {}", key.key.name));
                ledger.crons.run_deleted(&cron, &key, &uid, Outcome::Gone, at(second), 0.5);
            }
            Command::Tell(telling) => asked.push(telling.reason.to_owned()),
            other => panic!("{other:?}"),
        }
    }
    asked
}

fn held(ledger: &Ledger, uid: &Uid) -> AdvancedCronJob {
    ledger.crons.entries[uid].object.clone()
}

fn list(mut run: Value, version: &str) -> ImageListPullJob {
    run["metadata"]["uid"] = run["metadata"]["name"].clone();
    run["metadata"]["resourceVersion"] = json!(version);
    serde_json::from_value(run).unwrap()
}

fn child(run: Value, version: &str) -> Child {
    Child::of_list(&list(run, version)).unwrap()
}

/// Turns until nothing is asked for any more.
fn settle(ledger: &mut Ledger, second: i64) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let asked = turn(ledger, second);
        if asked.is_empty() {
            return all;
        }
        all.extend(asked);
    }
}

#[test]
fn a_run_costs_itself_one_status_and_one_event() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    assert_eq!(settle(&mut ledger, 1), ["status of hourly"]);
    assert_eq!(ledger.wake_at(), Some(at(3600)));
    assert_eq!(settle(&mut ledger, 3600), ["create hourly-1794877200", "status of hourly", "RunScheduled"]);
    assert_eq!(ledger.wake_at(), Some(at(7200)));
}

/// kruise W21: whatever becomes of a run wakes its cron job.
#[test]
fn runs_wake_their_cron_job_also_when_they_are_deleted() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({"spec": {"concurrencyPolicy": "Forbid"}})));
    settle(&mut ledger, 3600);
    assert_eq!(settle(&mut ledger, 7200), ["status of hourly"], "it waits");
    let key = ObjectKey { namespace: "default".to_owned(), name: "hourly-1794877200".to_owned() };
    ledger.lose_list(&key, Some("hourly-1794877200"));
    assert!(ledger.has_news());
    assert_eq!(
        settle(&mut ledger, 7300),
        ["create hourly-1794880800", "status of hourly", "status of hourly", "RunDeleted", "RunScheduled"]
    );
}

#[test]
fn nothing_is_done_before_all_runs_of_its_kind_are_known() {
    let mut ledger = Ledger::new(Settings::default());
    ledger.crons.sync(TemplateKind::BroadcastJob);
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    let jobs = json!({"spec": {"template": {"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}}}});
    ledger.crons.hear_cron(cron("jobs", &jobs));
    assert_eq!(turn(&mut ledger, 3600), Vec::<String>::new());
    ledger.crons.sync(TemplateKind::ImageListPullJob);
    assert_eq!(turn(&mut ledger, 3600), ["create hourly-1794877200", "status of hourly"]);
    assert_eq!(ledger.crons.job_namespaces(), ["default".to_owned()].into());
    ledger.crons.sync_jobs("default");
    assert!(ledger.has_news());
}

#[test]
fn a_refused_run_is_tried_again_after_a_pause() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 1);
    assert_eq!(carry_out(&mut ledger, 3600, false), ["create hourly-1794877200"]);
    assert_eq!(carry_out(&mut ledger, 3600, false), ["status of hourly"]);
    assert_eq!(carry_out(&mut ledger, 3600, false), ["RunRefused"]);
    assert_eq!(carry_out(&mut ledger, 3600, false), Vec::<String>::new());
    assert_eq!(settle(&mut ledger, 3601), ["create hourly-1794877200", "status of hourly", "RunScheduled"]);
}

#[test]
fn an_edited_cron_job_is_tried_at_once() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 1);
    carry_out(&mut ledger, 3600, false);
    carry_out(&mut ledger, 3600, false);
    let mut edited = held(&ledger, &"hourly".into());
    edited.metadata.resource_version = Some("9999".to_owned());
    edited.spec.successful_jobs_history_limit = 7;
    ledger.crons.hear_cron(edited);
    assert!(turn(&mut ledger, 3600).contains(&"create hourly-1794877200".to_owned()));
}

#[test]
fn a_replaced_run_is_told_and_the_next_one_is_made() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 3600);
    assert_eq!(
        settle(&mut ledger, 7200),
        [
            "delete hourly-1794877200",
            "create hourly-1794880800",
            "status of hourly",
            "RunReplaced",
            "status of hourly",
            "RunScheduled"
        ]
    );
}

#[test]
fn a_run_whose_deletion_meets_a_conflict_is_deleted_again() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 3600);
    let commands = ledger.turn(at(7200));
    let Some(Command::DeleteRun { cron, key, uid }) = commands.into_iter().next() else {
        panic!("a deletion")
    };
    let still = ledger.crons.runs_of("hourly").values().next().cloned();
    ledger.crons.run_deleted(&cron, &key, &uid, Outcome::Collided(Box::new(still)), at(7200), 0.0);
    assert_eq!(turn(&mut ledger, 7201), ["delete hourly-1794877200"]);
}

#[test]
fn a_run_of_that_name_that_belongs_to_somebody_else_is_a_refusal() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 1);
    let commands = ledger.turn(at(3600));
    let Some(Command::CreateRun { cron, key, .. }) = commands.into_iter().next() else { panic!("a run") };
    ledger.crons.run_created(&cron, &key, Outcome::Collided(Box::new(None)), at(3600), 0.0);
    assert_eq!(turn(&mut ledger, 3600), ["status of hourly"]);
    let status = held(&ledger, &"hourly".into()).status.unwrap();
    let message = &status.conditions.unwrap()[0].message;
    assert!(message.ends_with("one of this name is there already, and not of this cron job"), "{message}");
}

#[test]
fn a_run_that_is_gone_before_its_making_is_answered_does_not_come_back() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 1);
    let commands = ledger.turn(at(3600));
    let Some(Command::CreateRun { cron, key, run }) = commands.into_iter().next() else { panic!("a run") };
    let object = list(*run, "5");
    let made = Child::of_list(&object);
    ledger.hear_list(object);
    let RunKey { key: place, .. } = &key;
    ledger.lose_list(place, Some("hourly-1794877200"));
    ledger.crons.run_created(&cron, &key, Outcome::Written(made), at(3600), 0.5);
    assert_eq!(ledger.crons.runs_of("hourly").len(), 0);
}

/// A pass costs what has changed.
#[test]
fn a_thousand_cron_jobs_rest_between_their_runs() {
    let mut ledger = ledger();
    for number in 0..1000 {
        ledger.crons.hear_cron(cron(&format!("cron-{number:04}"), &json!({})));
    }
    settle(&mut ledger, 1);
    let before = ledger.passes().crons;
    for second in 2..3600 {
        assert_eq!(turn(&mut ledger, second), Vec::<String>::new());
    }
    assert_eq!(ledger.passes().crons, before);
    let asked = settle(&mut ledger, 3600);
    assert_eq!(asked.iter().filter(|one| one.starts_with("create")).count(), 1000);
    assert_eq!(asked.len(), 3000, "a run, a status and an event each");
}

#[test]
fn runs_are_counted_once_their_status_is_written() {
    let mut ledger = ledger();
    ledger.crons.hear_cron(cron("hourly", &json!({})));
    settle(&mut ledger, 1);
    carry_out(&mut ledger, 3600, true);
    assert_eq!(ledger.crons.take_runs(), Runs::new(), "it is made and not written down");
    settle(&mut ledger, 3600);
    assert_eq!(ledger.crons.take_runs(), Runs::from([(Fate::OnTime, 1)]));
    // Two times pass without a controller; the later one happens and replaces the run before.
    settle(&mut ledger, 3 * 3600 + 5);
    let wanted = [(Fate::OnTime, 1), (Fate::Replaced, 1), (Fate::Skipped(SkipReason::Missed), 1)];
    assert_eq!(ledger.crons.take_runs(), Runs::from(wanted));
    assert_eq!(ledger.crons.size(), JobStates { running: 1, ..JobStates::default() });
}

#[test]
fn a_run_that_is_made_more_than_a_minute_after_its_time_is_late() {
    let mut run = child(
        json!({"metadata": {"name": "x", "creationTimestamp": at(61), "ownerReferences": [
        {"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "c", "uid": "c", "controller": true},
    ]}, "spec": {"images": ["a"], "completionPolicy": {}}}),
        "1",
    );
    assert_eq!(Fate::of_begun(at(0), &run), Fate::Late);
    run.began_at = Some(at(60));
    assert_eq!(Fate::of_begun(at(0), &run), Fate::OnTime);
}
