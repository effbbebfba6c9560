//! Verdicts on nodes that do not answer (kruise R16–R19).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImageTagStatus, PullPhase};
use prewarm_api::names::message::{NODE_SILENT, TASK_DEADLINE};
use serde_json::json;

use super::*;
use crate::cluster::node_image::silence::{Begun, judged};
use crate::support::build::{Entry, entry};

const PATIENCE: i64 = 600;

/// The verdicts on a NodeImage at some second, if the agent was last heard at another.
fn verdicts(entry: Entry, reported_at: i64, now: i64) -> Vec<(&'static str, i64)> {
    let mut scene = Scene::of(node_image("n1", &[entry])).at(now);
    scene.node.reported_at = Some(at(reported_at));
    match scene.decide().action {
        None => Vec::new(),
        Some(Action::Judge { uid, verdicts }) => {
            assert_eq!(*uid, *"image-n1");
            verdicts.iter().map(|verdict| (verdict.message, verdict.version)).collect()
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// When the pass comes back.
fn wake_at(entry: Entry, reported_at: i64, now: i64) -> Option<Timestamp> {
    let mut scene = Scene::of(node_image("n1", &[entry])).at(now);
    scene.node.reported_at = Some(at(reported_at));
    assert!(scene.is_settled());
    scene.decide().wake_at
}

fn with_deadline(seconds: i64) -> Entry {
    entry("nginx:1").with(&json!({"pullPolicy": {"activeDeadlineSeconds": seconds}}))
}

/// kruise R16, W20
#[test]
fn a_node_that_says_nothing_for_ten_minutes_has_failed() {
    assert_eq!(wake_at(entry("nginx:1"), 0, PATIENCE - 1), Some(at(PATIENCE)));
    assert_eq!(verdicts(entry("nginx:1"), 0, PATIENCE), [(NODE_SILENT, 0)]);
}

/// kruise R16
#[test]
fn an_answer_to_an_earlier_round_is_none() {
    let entry = entry("nginx:1").version(3).succeeded(at(0)).version(4);
    assert_eq!(verdicts(entry, 0, PATIENCE), [(NODE_SILENT, 4)]);
}

/// kruise R17 as we have it: from the beginning of the pull.
#[test]
fn a_pull_that_exceeds_its_deadline_by_ten_minutes_has_failed() {
    let entry = with_deadline(100).pulling(at(50));
    assert_eq!(wake_at(entry.clone(), 0, 0), Some(at(50 + 100 + PATIENCE)));
    assert_eq!(verdicts(entry, 749, 50 + 100 + PATIENCE), [(TASK_DEADLINE, 0)]);
}

/// A pull of which the node says that it began at one second and this process heard at another.
fn heard(says: i64, heard: i64, now: i64) -> Scene {
    let mut scene = Scene::of(node_image("n1", &[with_deadline(100).pulling(at(says))])).at(now);
    let image = scene.node.image.clone().unwrap();
    scene.node.begun = Begun::default();
    scene.node.begun.observe(&image, image.keys(), at(heard));
    scene
}

#[test]
fn a_node_whose_clock_is_wrong_has_its_deadline_from_when_it_was_heard_of() {
    for says in [-1800, 50, 1800] {
        let patient = heard(says, 50, 50 + 100 + PATIENCE - 1);
        assert!(patient.is_settled(), "{says}");
        assert_eq!(patient.decide().wake_at, Some(at(50 + 100 + PATIENCE)), "{says}");
        let action = heard(says, 50, 50 + 100 + PATIENCE).decide().action;
        assert!(matches!(action, Some(Action::Judge { .. })), "{says}");
    }
}

#[test]
fn a_later_report_of_the_same_pull_moves_no_deadline() {
    let mut scene = heard(50, 50, 50 + 100 + PATIENCE);
    let image = scene.node.image.clone().unwrap();
    scene.node.begun.observe(&image, image.keys(), at(500));
    assert!(matches!(scene.decide().action, Some(Action::Judge { .. })));
}

/// kruise R17
#[test]
fn a_pull_without_a_deadline_takes_as_long_as_it_takes() {
    assert_eq!(wake_at(entry("nginx:1").pulling(at(0)), 0, 1_000_000), None);
}

/// kruise R17 as we have it
#[test]
fn a_task_that_waits_on_a_node_that_reports_is_not_given_up() {
    let entry = with_deadline(100).waiting();
    assert_eq!(wake_at(entry.clone(), 5000, 5000 + PATIENCE - 1), Some(at(5000 + PATIENCE)));
    assert_eq!(verdicts(entry.clone(), 5000, 5000 + PATIENCE), [(TASK_DEADLINE, 0)]);
    assert_eq!(wake_at(entry, 0, 0), Some(at(100 + PATIENCE)));
}

#[test]
fn a_task_between_two_attempts_has_its_deadline_from_its_beginning() {
    let entry = with_deadline(100).waiting().answer(|status| {
        status.start_time = Some(Time(at(10)));
    });
    assert_eq!(verdicts(entry, 709, 10 + 100 + PATIENCE), [(TASK_DEADLINE, 0)]);
}

#[test]
fn what_has_ended_is_not_given_up() {
    let lasting = json!({"pullPolicy": {"ttlSecondsAfterFinished": 999_999, "activeDeadlineSeconds": 1}});
    let ended = entry("nginx:1").with(&lasting);
    let by_hand = ended.clone().failed(at(0)).answer(|status| status.completion_time = None);
    for entry in [ended.clone().succeeded(at(0)), ended.failed(at(0)), by_hand] {
        assert!(verdicts(entry, 0, 90_000).is_empty());
    }
}

#[test]
fn a_beginning_beyond_all_time_is_never_silent() {
    let entry = entry("nginx:1").with(&json!({"createdAt": "9999-12-30T21:59:59Z"}));
    assert!(verdicts(entry, 0, 90_000).is_empty());
}

#[test]
fn of_two_entries_of_one_tag_the_later_round_is_judged() {
    let twice = [entry("nginx:1"), entry("nginx:1").version(2).succeeded(at(0))];
    let lasting = json!({"pullPolicy": {"ttlSecondsAfterFinished": 999_999}});
    let object = node_image("n1", &twice.map(|entry| entry.with(&lasting)));
    assert!(Scene::of(object).at(PATIENCE).is_settled());
}

/// kruise R15: the spec comes first, so that nobody is given up for an entry that goes.
#[test]
fn an_entry_that_goes_is_not_given_up() {
    let scene = Scene::of(node_image("n1", &[entry("nginx:1").of(&["gone"])])).at(PATIENCE);
    assert!(scene.after().spec.images.is_empty());
}

/// The status of a NodeImage after the verdict that was decided on another one.
fn after(decided_on: Entry, found: &NodeImage) -> Option<Vec<ImageTagStatus>> {
    let scene = Scene::of(node_image("n1", &[decided_on])).at(PATIENCE * 2);
    let Some(Action::Judge { verdicts, .. }) = scene.decide().action else { panic!() };
    let status = judged(found, &verdicts, at(PATIENCE * 2))?;
    Some(status.image_statuses.unwrap().remove("nginx").unwrap().tags)
}

/// kruise R16, R19
#[test]
fn a_verdict_is_a_failure_with_its_time_and_text() {
    let silent = entry("nginx:1").version(2);
    let tags = after(silent.clone(), &node_image("n1", &[silent.version(1).succeeded(at(0)).version(2)]));
    let expected = ImageTagStatus {
        tag: "1".to_owned(),
        phase: PullPhase::Failed,
        version: 2,
        completion_time: Some(Time(at(1200))),
        message: Some(NODE_SILENT.to_owned()),
        ..ImageTagStatus::default()
    };
    assert_eq!(tags, Some(vec![expected]));
}

/// kruise R17
#[test]
fn a_pull_that_was_given_up_keeps_its_beginning() {
    let entry = with_deadline(100).pulling(at(50));
    let tags = after(entry.clone(), &node_image("n1", &[entry])).unwrap();
    assert_eq!(tags[0].start_time.as_ref().map(|time| time.0), Some(at(50)));
    assert_eq!(tags[0].message.as_deref(), Some(TASK_DEADLINE));
}

/// design 3
#[test]
fn a_verdict_never_replaces_a_report() {
    let silent = entry("nginx:1");
    let by_hand = silent.clone().failed(at(0)).answer(|status| status.completion_time = None);
    let reports = [
        silent.clone().waiting(),
        silent.clone().pulling(at(700)),
        silent.clone().succeeded(at(700)),
        by_hand,
    ];
    for report in reports {
        assert_eq!(after(silent.clone(), &node_image("n1", &[report])), None);
    }
}

#[test]
fn a_verdict_is_about_one_round() {
    assert_eq!(after(entry("nginx:1"), &node_image("n1", &[entry("nginx:1").version(1)])), None);
    assert_eq!(after(entry("nginx:1"), &node_image("n1", &[entry("nginx:2")])), None);
}

/// kruise R19
#[test]
fn a_verdict_drops_what_nobody_asks_for_and_counts_anew() {
    let found = [
        entry("nginx:1"),
        entry("nginx:2").succeeded(at(0)),
        entry("redis:7").pulling(at(0)),
        entry("redis:6").waiting(),
        entry("busybox:1").succeeded(at(0)),
    ];
    let mut object = node_image("n1", &found);
    object.spec.images.remove("busybox");
    let scene = Scene::of(node_image("n1", &[entry("nginx:1")])).at(PATIENCE);
    let Some(Action::Judge { verdicts, .. }) = scene.decide().action else { panic!() };
    let status = judged(&object, &verdicts, at(PATIENCE)).unwrap();
    let counts = [status.desired, status.succeeded, status.failed, status.pulling, status.waiting];
    assert_eq!(counts, [4, 1, 1, 1, 1]);
    let names: Vec<String> = status.image_statuses.unwrap().into_keys().collect();
    assert_eq!(names, ["nginx", "redis"]);
}
