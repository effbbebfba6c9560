//! What the worklist decides.

use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;
use prewarm_api::names;
use serde_json::{Value, json};

use super::*;
use crate::agent::disk::{DiskRoom, MinFree, Room};
use crate::agent::kruise::{Status, read, reported};
use crate::agent::report::Report;
use crate::agent::state::Bytes;
use crate::agent::wait::{Hold, WaitReason, Waits};

mod ahead;
mod doubt;
mod end;
mod mirrors;
mod places;
mod waits;

const START: i64 = 1_800_000_000;
/// No jitter: pauses are whole.
const STEADY: f64 = 0.0;

fn at(seconds: u64) -> Moment {
    let wall = Timestamp::from_second(START + i64::try_from(seconds).unwrap()).unwrap();
    Moment { elapsed: Duration::from_secs(seconds), wall }
}

fn free(parallel: usize) -> Conditions {
    Conditions { parallel, hold: None, no_room: None }
}

fn spec(tags: &[Value]) -> Value {
    json!({ "images": { "reg.example/app": { "tags": tags } } })
}

fn list(tags: &[Value]) -> Worklist {
    let mut worklist = Worklist::default();
    worklist.adopt(read(&spec(tags)), &BTreeMap::new(), at(0));
    worklist
}

fn failure(class: FailureClass) -> Outcome {
    Outcome::Failed(Failure {
        class,
        text: "it broke".to_owned(),
        problems: vec![],
        advice: "mend it".to_owned(),
        is_registry_overloaded: class == FailureClass::RateLimited,
        is_final: false,
        fingerprint: Some(1),
    })
}

fn held() -> Held {
    Held { id: "reg.example/app@sha256:1".to_owned(), digest: Some("sha256:2".to_owned()) }
}

fn success() -> Outcome {
    Outcome::Succeeded { image: held(), was_present: false, results: None }
}

fn tags(decision: &Decision) -> Vec<&str> {
    decision.starts.iter().map(|start| start.task.key.tag.as_str()).collect()
}

fn phase(worklist: &Worklist, tag: &str) -> Phase {
    status(worklist, tag).phase
}

fn status(worklist: &Worklist, tag: &str) -> TaskState {
    worklist.states().into_iter().find(|state| state.key.tag == tag).unwrap()
}

fn message(state: &TaskState) -> Option<String> {
    state.note.as_ref().map(Note::message)
}

/// A disk without room.
fn shortage() -> DiskRoom {
    let room = Room { free: 12, capacity: 100 };
    DiskRoom { room, inodes: None, min_free: MinFree::default(), path: "/images".into() }
}

fn key(tag: &str) -> ImageKey {
    ImageKey { name: "reg.example/app".to_owned(), tag: tag.to_owned() }
}

#[test]
fn as_many_tasks_begin_as_there_are_places_and_the_others_say_why_they_wait() {
    let mut worklist = list(&[json!({ "tag": "1" }), json!({ "tag": "2" }), json!({ "tag": "3" })]);
    assert_eq!(tags(&worklist.decide(&free(2), at(1))), ["1", "2"]);
    assert_eq!(phase(&worklist, "2"), Phase::Pulling);
    let waiting = status(&worklist, "3");
    assert_eq!(waiting.phase, Phase::Waiting);
    assert_eq!(waiting.note, Some(Note::Wait(WaitReason::NoPlace { places: 2 })));
    assert_eq!(tags(&worklist.decide(&free(2), at(2))), Vec::<&str>::new());
    worklist.ended(1, success(), at(3), STEADY);
    assert_eq!(tags(&worklist.decide(&free(2), at(3))), ["3"]);
}

#[test]
fn a_success_ends_the_task_with_its_id_and_times() {
    let mut worklist = list(&[json!({ "tag": "1", "version": 4 })]);
    worklist.decide(&free(2), at(1));
    worklist.progressed(1, Bytes { done: 50, total: 100 });
    assert_eq!(status(&worklist, "1").percent, 50);
    let ending = worklist.ended(1, success(), at(9), STEADY).unwrap();
    assert_eq!(ending.took, Duration::from_secs(8));
    assert_eq!(ending.result, Ended::Pulled { bytes: Some(100), results: None });
    let status = status(&worklist, "1");
    assert_eq!((status.phase, status.percent, status.version), (Phase::Succeeded, 100, 4));
    assert_eq!(status.bytes, Some(Bytes { done: 100, total: 100 }));
    assert_eq!(status.image_id.as_deref(), Some("reg.example/app@sha256:1"));
    assert_eq!(status.started_at.unwrap(), at(1).wall);
    assert_eq!(status.completed_at.unwrap(), at(9).wall);
}

#[test]
fn a_tag_says_that_it_is_unpacking_and_no_longer_when_that_failed() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    worklist.decide(&free(1), at(0));
    worklist.progressed(1, Bytes { done: 100, total: 100 });
    let unpacking = status(&worklist, "1");
    assert_eq!((unpacking.phase, unpacking.percent), (Phase::Pulling, 99));
    assert_eq!(unpacking.note, Some(Note::Unpacking));
    worklist.ended(1, failure(FailureClass::NoSpace), at(1), STEADY);
    let failed = message(&status(&worklist, "1")).unwrap();
    assert!(failed.contains("no space (attempt 1 of 4)"), "{failed}");
    // An agent that starts anew in the middle begins with a download.
    let written = serde_json::to_value(Status::of(Report::new(vec![unpacking], None, None))).unwrap();
    let mut restarted = Worklist::default();
    restarted.adopt(read(&spec(&[json!({ "tag": "1" })])), &reported(&written), at(2));
    assert_eq!(status(&restarted, "1").note, None);
}

#[test]
fn a_failure_rests_one_two_four_seconds_and_ends_without_a_last_rest() {
    let mut worklist = list(&[json!({ "tag": "1", "pullPolicy": { "backoffLimit": 2 } })]);
    let mut begun = Vec::new();
    let mut now = 0;
    let ending = loop {
        let decision = worklist.decide(&free(1), at(now));
        if let [start] = &decision.starts[..] {
            begun.push(now);
            if let Some(ending) =
                worklist.ended(start.attempt, failure(FailureClass::NotFound), at(now), STEADY)
            {
                break ending;
            }
        }
        now += 1;
    };
    assert_eq!(begun, [0, 1, 3]);
    let Ended::Failed { class: FailureClass::NotFound, message: Some(message) } = ending.result else {
        panic!("{ending:?}")
    };
    let failed = status(&worklist, "1");
    assert_eq!((failed.phase, failed.class), (Phase::Failed, Some(FailureClass::NotFound)));
    assert_eq!((failed.failed_attempts, super::tests::message(&failed)), (3, Some(message.clone())));
    assert!(message.contains("attempt 3 of 3") && message.ends_with("mend it"), "{message}");
}

#[test]
fn an_image_that_is_pulled_holds_no_place_while_it_is_confirmed() {
    let mut worklist = list(&[json!({ "tag": "1" }), json!({ "tag": "2" })]);
    assert_eq!(tags(&worklist.decide(&free(1), at(0))), ["1"]);
    worklist.pulled(1);
    assert_eq!(phase(&worklist, "1"), Phase::Pulling);
    assert_eq!(tags(&worklist.decide(&free(1), at(0))), ["2"]);
    assert_eq!(worklist.running(), 2);
    assert!(worklist.ended(1, success(), at(1), STEADY).is_some());
    assert_eq!(phase(&worklist, "1"), Phase::Succeeded);
}

#[test]
fn a_resting_task_holds_no_place() {
    let mut worklist = list(&[json!({ "tag": "1" }), json!({ "tag": "2" })]);
    assert_eq!(tags(&worklist.decide(&free(1), at(0))), ["1"]);
    worklist.ended(1, failure(FailureClass::Unreachable), at(0), STEADY);
    assert_eq!(tags(&worklist.decide(&free(1), at(0))), ["2"]);
    assert_eq!(phase(&worklist, "1"), Phase::Pulling);
}

#[test]
fn the_deadline_cuts_the_last_attempt_and_ends_a_rest() {
    let policy = json!({ "timeoutSeconds": 10, "activeDeadlineSeconds": 12, "backoffLimit": 9 });
    let mut worklist = list(&[json!({ "tag": "1", "pullPolicy": policy })]);
    let first = worklist.decide(&free(1), at(5));
    assert_eq!(first.starts[0].timeout, Duration::from_secs(10));
    worklist.ended(1, failure(FailureClass::TimedOut), at(15), STEADY);
    assert_eq!(worklist.decide(&free(1), at(15)).wake_at, Some(Duration::from_secs(16)));
    assert_eq!(worklist.decide(&free(1), at(16)).starts[0].timeout, Duration::from_secs(1));
    let ending = worklist.ended(2, failure(FailureClass::TimedOut), at(17), STEADY).unwrap();
    let message = Some(names::message::TASK_DEADLINE.to_owned());
    assert_eq!(ending.result, Ended::Failed { class: FailureClass::TimedOut, message });
}

#[test]
fn a_deadline_that_falls_into_a_rest_is_kept_to_the_second() {
    let policy = json!({ "activeDeadlineSeconds": 2, "backoffLimit": 9 });
    let mut worklist = list(&[json!({ "tag": "1", "pullPolicy": policy })]);
    worklist.decide(&free(1), at(0));
    worklist.ended(1, failure(FailureClass::Unknown), at(1), STEADY);
    let decision = worklist.decide(&free(1), at(1));
    assert_eq!(decision.wake_at, Some(Duration::from_secs(2)));
    let decision = worklist.decide(&free(1), at(2));
    assert_eq!(decision.endings.len(), 1);
    assert_eq!(phase(&worklist, "1"), Phase::Failed);
}

#[test]
fn a_withdrawn_task_is_cancelled_and_its_late_answer_counts_for_nothing() {
    let mut worklist = list(&[json!({ "tag": "1" }), json!({ "tag": "2" })]);
    worklist.decide(&free(1), at(0));
    let cancelled = worklist.adopt(read(&spec(&[json!({ "tag": "3" })])), &BTreeMap::new(), at(1));
    assert_eq!(cancelled, [1]);
    assert_eq!(worklist.ended(1, success(), at(2), STEADY), None);
    assert_eq!(tags(&worklist.decide(&free(2), at(2))), ["3"]);
}

#[test]
fn a_new_version_is_pulled_again_and_the_old_attempt_is_cancelled() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    worklist.decide(&free(1), at(0));
    let again = read(&spec(&[json!({ "tag": "1", "version": 1 })]));
    assert_eq!(worklist.adopt(again, &BTreeMap::new(), at(1)), [1]);
    assert_eq!(tags(&worklist.decide(&free(1), at(1))), ["1"]);
    assert_eq!(status(&worklist, "1").version, 1);
}

#[test]
fn an_edit_under_the_same_version_disturbs_nothing_that_runs() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    worklist.decide(&free(1), at(0));
    let edited = read(&spec(&[json!({ "tag": "1", "pullPolicy": { "backoffLimit": 0 } })]));
    assert_eq!(worklist.adopt(edited, &BTreeMap::new(), at(1)), Vec::<u64>::new());
    let ending = worklist.ended(1, failure(FailureClass::Unknown), at(2), STEADY);
    assert!(ending.is_some(), "the edited limit counts for the next decision");
}

#[test]
fn finished_tasks_of_the_same_version_are_left_and_begun_ones_go_on() {
    let asked =
        || read(&spec(&[json!({ "tag": "1" }), json!({ "tag": "2", "version": 2 }), json!({ "tag": "3" })]));
    let status = json!({ "imageStatuses": { "reg.example/app": { "tags": [
        { "tag": "1", "phase": "Succeeded", "completionTime": "2026-11-15T08:00:00Z", "imageID": "i" },
        { "tag": "2", "phase": "Failed", "version": 1, "completionTime": "2026-11-15T08:00:00Z" },
        { "tag": "3", "phase": "Pulling", "startTime": at(60).wall.to_string(), "failedAttempts": 2 },
    ]}}});
    let mut worklist = Worklist::default();
    worklist.adopt(asked(), &reported(&status), at(100));
    assert_eq!(tags(&worklist.decide(&free(5), at(100))), ["2", "3"]);
    let third = worklist.ended(2, failure(FailureClass::Unknown), at(101), STEADY);
    assert_eq!(third, None, "two of four attempts had failed before");
    let third = super::tests::status(&worklist, "3");
    assert_eq!((third.failed_attempts, third.started_at.unwrap()), (3, at(60).wall));
}

#[test]
fn a_beginning_in_the_future_does_not_prolong_the_deadline() {
    let policy = json!({ "activeDeadlineSeconds": 30 });
    let status = json!({ "imageStatuses": { "reg.example/app": { "tags": [
        { "tag": "1", "phase": "Pulling", "startTime": at(9_999_999).wall.to_string() },
    ]}}});
    let mut worklist = Worklist::default();
    worklist.adopt(read(&spec(&[json!({ "tag": "1", "pullPolicy": policy })])), &reported(&status), at(100));
    assert_eq!(worklist.decide(&free(1), at(110)).starts[0].timeout, Duration::from_secs(20));
}

#[test]
fn a_deadline_goes_on_in_an_agent_that_has_just_started() {
    let policy = json!({ "activeDeadlineSeconds": 30 });
    let status = json!({ "imageStatuses": { "reg.example/app": { "tags": [
        { "tag": "1", "phase": "Pulling", "startTime": at(60).wall.to_string() },
    ]}}});
    let restarted = |seconds| Moment { elapsed: Duration::from_secs(seconds - 80), wall: at(seconds).wall };
    let mut worklist = Worklist::default();
    let asked = read(&spec(&[json!({ "tag": "1", "pullPolicy": policy })]));
    worklist.adopt(asked, &reported(&status), restarted(80));
    let decision = worklist.decide(&free(0), restarted(80));
    assert_eq!(decision.wake_at, Some(Duration::from_secs(10)));
    assert_eq!(worklist.decide(&free(1), restarted(85)).starts[0].timeout, Duration::from_secs(5));
}

#[test]
fn a_slowed_registry_holds_back_only_its_own_tasks() {
    let mut worklist = Worklist::default();
    let spec = json!({ "images": {
        "slow.example/a": { "tags": [{ "tag": "1" }, { "tag": "2" }] }, "other.example/a": { "tags": [{ "tag": "3" }] },
    }});
    worklist.adopt(read(&spec), &BTreeMap::new(), at(0));
    let order = worklist.decide(&free(2), at(0));
    assert_eq!(tags(&order), ["3", "1"]);
    worklist.ended(1, success(), at(1), STEADY);
    worklist.ended(2, failure(FailureClass::RateLimited), at(1), STEADY);
    let decision = worklist.decide(&free(2), at(1));
    assert_eq!((tags(&decision), decision.wake_at), (vec![], Some(Duration::from_secs(2))));
    let waiting = worklist.states().into_iter().find(|state| state.key.tag == "2").unwrap();
    assert_eq!(message(&waiting).as_deref(), Some("waits because slow.example asked for fewer requests"));
    assert_eq!(tags(&worklist.decide(&free(2), at(3))).len(), 2);
}

#[test]
fn two_entries_of_one_image_are_pulled_one_after_the_other() {
    let mut worklist = Worklist::default();
    let spec = json!({ "images": {
        "docker.io/library/nginx": { "tags": [{ "tag": "1" }] }, "nginx": { "tags": [{ "tag": "1" }] },
    }});
    worklist.adopt(read(&spec), &BTreeMap::new(), at(0));
    assert_eq!(worklist.decide(&free(5), at(0)).starts.len(), 1);
    worklist.ended(1, success(), at(1), STEADY);
    assert_eq!(worklist.decide(&free(5), at(1)).starts.len(), 1);
}

#[test]
fn without_room_nothing_starts_and_the_reason_is_reported() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    let full = Conditions { no_room: Some(shortage()), ..free(2) };
    assert_eq!(worklist.decide(&full, at(0)).starts, []);
    assert_eq!(status(&worklist, "1").note, Some(Note::Wait(WaitReason::NoRoom(shortage()))));
    assert_eq!(tags(&worklist.decide(&free(2), at(1))), ["1"]);
    assert_eq!(status(&worklist, "1").note, None);
}

#[test]
fn a_bad_entry_is_reported_as_failed_at_the_time_it_was_seen() {
    let mut worklist = Worklist::default();
    let bad = || read(&json!({ "images": { "NO": { "tags": [{ "tag": "1", "version": 3 }] } } }));
    worklist.adopt(bad(), &BTreeMap::new(), at(5));
    worklist.adopt(bad(), &BTreeMap::new(), at(9));
    let [state] = &worklist.states()[..] else { panic!("one entry") };
    assert_eq!((state.phase, state.version), (Phase::Failed, 3));
    assert_eq!(state.completed_at.unwrap(), at(5).wall);
    assert_eq!(worklist.unfinished(), 0);
}

#[test]
fn deciding_again_changes_nothing() {
    let mut worklist = list(&[json!({ "tag": "1" }), json!({ "tag": "2" })]);
    worklist.decide(&free(1), at(0));
    let before = worklist.states();
    assert_eq!(worklist.decide(&free(1), at(0)).starts, []);
    assert_eq!(worklist.states(), before);
}
