//! Passes over AdvancedCronJobs.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use prewarm_api::kruise::{AdvancedCronJob, ImageListPullJob, SkipReason};
use serde_json::{Value, json};

use crate::cluster::advanced_cron_job::child::Child;
use crate::cluster::advanced_cron_job::runs::{Fate, Runs};
use crate::cluster::command::{Command, Outcome, Read, Ticket, Verb, Write};
use crate::cluster::size::JobStates;
use crate::cluster::{Input, Kernel, Kind, Object, Settings, Subject, Target};
use crate::object::{ObjectKey, OwnerKey, Uid};
use crate::support::world::kernel;

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

fn see(kernel: &mut Kernel, object: impl Into<Object>) {
    kernel.observe(Input::seen(object), at(0));
}

fn listed(kernel: &mut Kernel, kind: Kind, namespace: Option<&str>) {
    let namespace = namespace.map(str::to_owned);
    kernel.observe(Input::Listed { kind, namespace, names: BTreeSet::new() }, at(0));
}

/// What a cycle asks for, in short.
fn cycle(kernel: &mut Kernel, second: i64) -> Vec<String> {
    carry_out(kernel, second, true)
}

/// Runs a cycle and answers what it asks for. What lists do for their children is of no interest.
fn carry_out(kernel: &mut Kernel, second: i64, is_taken: bool) -> Vec<String> {
    let mut asked = Vec::new();
    for command in kernel.cycle(at(second)) {
        match command {
            Command::Record(event) => asked.push(event.notice.reason.to_owned()),
            Command::Write(write) if matches!(write.ticket.asker, Target::Cron(_)) => {
                let Write { ticket, verb } = write;
                let (words, outcome, jitter) = outcome(kernel, &ticket, verb, second, is_taken);
                asked.push(words);
                kernel.observe(Input::Settled { ticket, outcome, jitter }, at(second));
            }
            Command::Write(write) if matches!(write.ticket.asker, Target::List(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    asked
}

fn outcome(
    kernel: &Kernel,
    ticket: &Ticket,
    verb: Verb,
    second: i64,
    is_taken: bool,
) -> (String, Outcome<Object>, f64) {
    let name = &ticket.key.name;
    match verb {
        Verb::PatchStatus(operations) => {
            let mut object = held(kernel, name);
            object.status = serde_json::from_value(operations[2]["value"].clone()).unwrap();
            object.metadata.resource_version = Some((1000 + second).to_string());
            (format!("status of {name}"), Outcome::Written(object.into()), 0.5)
        }
        Verb::Create(run) if is_taken => {
            (format!("create {name}"), Outcome::Written(list(*run, "1").into()), 0.0)
        }
        Verb::Create(_) => (format!("create {name}"), Outcome::Refused("exceeded quota".to_owned()), 0.0),
        Verb::Delete => (format!("delete {name}"), Outcome::Gone, 0.5),
        verb => panic!("{verb:?}"),
    }
}

fn held(kernel: &Kernel, uid: &str) -> AdvancedCronJob {
    kernel.crons.all.get(uid).unwrap().object.clone()
}

/// What a run is made by.
fn creation(kernel: &mut Kernel, second: i64) -> (Ticket, Value) {
    let Some(Command::Write(Write { ticket, verb: Verb::Create(run) })) =
        kernel.cycle(at(second)).into_iter().next()
    else {
        panic!("a run")
    };
    (ticket, *run)
}

fn list(mut run: Value, version: &str) -> ImageListPullJob {
    run["metadata"]["uid"] = run["metadata"]["name"].clone();
    run["metadata"]["resourceVersion"] = json!(version);
    serde_json::from_value(run).unwrap()
}

fn child(run: Value, version: &str) -> Child {
    Child::of_list(&list(run, version)).unwrap()
}

/// Runs cycles until nothing is asked for any more.
fn settle(kernel: &mut Kernel, second: i64) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let asked = cycle(kernel, second);
        if asked.is_empty() {
            return all;
        }
        all.extend(asked);
    }
}

#[test]
fn a_run_costs_itself_one_status_and_one_event() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    assert_eq!(settle(&mut kernel, 1), ["status of hourly"]);
    assert_eq!(kernel.wake_at(), Some(at(3600)));
    assert_eq!(settle(&mut kernel, 3600), ["create hourly-1794877200", "status of hourly", "RunScheduled"]);
    assert_eq!(kernel.wake_at(), Some(at(7200)));
}

/// kruise W21: whatever becomes of a run wakes its cron job.
#[test]
fn runs_wake_their_cron_job_also_when_they_are_deleted() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({"spec": {"concurrencyPolicy": "Forbid"}})));
    settle(&mut kernel, 3600);
    assert_eq!(settle(&mut kernel, 7200), ["status of hourly"], "it waits");
    let key = ObjectKey { namespace: "default".to_owned(), name: "hourly-1794877200".to_owned() };
    let uid = Some("hourly-1794877200".into());
    kernel.observe(Input::Gone { kind: Kind::ImageListPullJob, key, uid }, at(0));
    assert!(kernel.backlog() > 0);
    assert_eq!(
        settle(&mut kernel, 7300),
        ["create hourly-1794880800", "status of hourly", "status of hourly", "RunDeleted", "RunScheduled"]
    );
}

#[test]
fn nothing_is_done_before_all_runs_of_its_kind_are_known() {
    let mut kernel = Kernel::new(Settings::default());
    for kind in Kind::needed().filter(|kind| *kind != Kind::ImageListPullJob) {
        listed(&mut kernel, kind, None);
    }
    listed(&mut kernel, Kind::BroadcastJob, None);
    // A list that may not be read is left alone; a cron job that makes some is, too.
    kernel.observe(Input::Forbidden(Kind::ImageListPullJob), at(0));
    see(&mut kernel, cron("hourly", &json!({})));
    let jobs = json!({"spec": {"template": {"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}}}});
    see(&mut kernel, cron("jobs", &jobs));
    assert_eq!(cycle(&mut kernel, 3600), Vec::<String>::new());
    listed(&mut kernel, Kind::ImageListPullJob, None);
    assert_eq!(cycle(&mut kernel, 3600), ["create hourly-1794877200", "status of hourly"]);
    assert_eq!(kernel.watched_namespaces(Kind::Job), ["default".to_owned()].into());
    listed(&mut kernel, Kind::Job, Some("default"));
    assert!(kernel.backlog() > 0);
}

#[test]
fn a_refused_run_is_tried_again_after_a_pause() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 1);
    assert_eq!(carry_out(&mut kernel, 3600, false), ["create hourly-1794877200"]);
    assert_eq!(carry_out(&mut kernel, 3600, false), ["status of hourly"]);
    assert_eq!(carry_out(&mut kernel, 3600, false), ["RunRefused"]);
    assert_eq!(carry_out(&mut kernel, 3600, false), Vec::<String>::new());
    assert_eq!(settle(&mut kernel, 3601), ["create hourly-1794877200", "status of hourly", "RunScheduled"]);
}

#[test]
fn an_edited_cron_job_is_tried_at_once() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 1);
    carry_out(&mut kernel, 3600, false);
    carry_out(&mut kernel, 3600, false);
    let mut edited = held(&kernel, "hourly");
    edited.metadata.resource_version = Some("9999".to_owned());
    edited.spec.successful_jobs_history_limit = 7;
    see(&mut kernel, edited);
    assert!(cycle(&mut kernel, 3600).contains(&"create hourly-1794877200".to_owned()));
}

#[test]
fn a_replaced_run_is_told_and_the_next_one_is_made() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 3600);
    assert_eq!(
        settle(&mut kernel, 7200),
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
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 3600);
    let Some(Command::Write(Write { ticket, verb: Verb::Delete })) = kernel.cycle(at(7200)).into_iter().find(
        |command| matches!(command, Command::Write(write) if matches!(write.ticket.asker, Target::Cron(_))),
    ) else {
        panic!("a deletion")
    };
    let still = (kernel.lists.named(&ticket.key).unwrap().object).clone();
    let outcome = Outcome::Collided(still.into());
    kernel.observe(Input::Settled { ticket, outcome, jitter: 0.0 }, at(7200));
    assert_eq!(cycle(&mut kernel, 7201), ["delete hourly-1794877200"]);
}

#[test]
fn a_run_of_that_name_that_belongs_to_somebody_else_is_a_refusal() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 1);
    let (ticket, mut run) = creation(&mut kernel, 3600);
    run["metadata"]["ownerReferences"] = json!([]);
    let outcome = Outcome::Collided(list(run, "1").into());
    kernel.observe(Input::Settled { ticket, outcome, jitter: 0.0 }, at(3600));
    assert_eq!(cycle(&mut kernel, 3600), ["status of hourly"]);
    let status = held(&kernel, "hourly").status.unwrap();
    let message = &status.conditions.unwrap()[0].message;
    assert!(message.ends_with("one of this name is there already, and not of this cron job"), "{message}");
}

#[test]
fn a_run_that_is_gone_before_its_making_is_answered_does_not_come_back() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 1);
    let (ticket, run) = creation(&mut kernel, 3600);
    let object = list(run, "5");
    see(&mut kernel, object.clone());
    let (key, uid) = (ticket.key.clone(), Some("hourly-1794877200".into()));
    kernel.observe(Input::Gone { kind: Kind::ImageListPullJob, key, uid }, at(0));
    let outcome = Outcome::Written(object.into());
    kernel.observe(Input::Settled { ticket, outcome, jitter: 0.5 }, at(3600));
    assert_eq!(kernel.crons.runs_of(&OwnerKey::new("default", "hourly")).len(), 0);
}

#[test]
fn a_run_that_a_list_lacks_is_read_and_not_waited_for_when_it_is_gone() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({"spec": {"concurrencyPolicy": "Forbid"}})));
    settle(&mut kernel, 3600);
    // It was made and deleted while no watch ran.
    listed(&mut kernel, Kind::ImageListPullJob, None);
    let key = ObjectKey { namespace: "default".to_owned(), name: "hourly-1794877200".to_owned() };
    let (kind, uid) = (Kind::ImageListPullJob, Uid::from("hourly-1794877200"));
    let read = Command::Read(Read::Object { kind, key: key.clone(), uid: uid.clone() });
    assert!(kernel.cycle(at(3700)).contains(&read));
    kernel.observe(Input::Gone { kind, key, uid: Some(uid) }, at(3700));
    assert!(settle(&mut kernel, 7200).contains(&"create hourly-1794880800".to_owned()));
}

/// A pass costs what has changed.
#[test]
fn a_thousand_cron_jobs_rest_between_their_runs() {
    let mut kernel = self::kernel();
    for number in 0..1000 {
        see(&mut kernel, cron(&format!("cron-{number:04}"), &json!({})));
    }
    settle(&mut kernel, 1);
    let before = kernel.passes.of(Subject::Cron);
    for second in 2..3600 {
        assert_eq!(cycle(&mut kernel, second), Vec::<String>::new());
    }
    assert_eq!(kernel.passes.of(Subject::Cron), before);
    let asked = settle(&mut kernel, 3600);
    assert_eq!(asked.iter().filter(|one| one.starts_with("create")).count(), 1000);
    assert_eq!(asked.len(), 3000, "a run, a status and an event each");
}

#[test]
fn runs_are_counted_once_their_status_is_written() {
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({})));
    settle(&mut kernel, 1);
    carry_out(&mut kernel, 3600, true);
    assert_eq!(kernel.take_measures().runs, Runs::new(), "it is made and not written down");
    settle(&mut kernel, 3600);
    assert_eq!(kernel.take_measures().runs, Runs::from([(Fate::OnTime, 1)]));
    // Two times pass without a controller; the later one happens and replaces the run before.
    settle(&mut kernel, 3 * 3600 + 5);
    let wanted = [(Fate::OnTime, 1), (Fate::Replaced, 1), (Fate::Skipped(SkipReason::Missed), 1)];
    assert_eq!(kernel.take_measures().runs, Runs::from(wanted));
    assert_eq!(kernel.crons.size(), JobStates { running: 1, ..JobStates::default() });
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

/// UIDs are no secret, and an owner reference has no namespace.
#[test]
fn a_run_that_somebody_forges_in_another_namespace_holds_up_nothing() {
    let forged: ImageListPullJob = serde_json::from_value(json!({
        "metadata": {"name": "forged", "namespace": "other", "uid": "forged", "resourceVersion": "1",
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
                "name": "hourly", "uid": "hourly", "controller": true}]},
        "spec": {"images": ["a"], "completionPolicy": {}},
    }))
    .unwrap();
    let mut kernel = self::kernel();
    see(&mut kernel, cron("hourly", &json!({"spec": {"concurrencyPolicy": "Forbid"}})));
    see(&mut kernel, forged);
    let asked = settle(&mut kernel, 3600);
    assert!(asked.contains(&"create hourly-1794877200".to_owned()), "{asked:?}");
    let active = held(&kernel, "hourly").status.unwrap().active.unwrap();
    let names: Vec<&str> = active.iter().filter_map(|run| run.name.as_deref()).collect();
    assert_eq!(names, ["hourly-1794877200"]);
}
