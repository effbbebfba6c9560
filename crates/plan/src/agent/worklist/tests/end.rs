//! What becomes of a task after it has ended: its image is lost, or its credentials change.

use prewarm_api::reference::ImageRef;

use super::*;
use crate::agent::inventory::Listing;

fn listing(present: &[&str], absent: &[&str], began: u64) -> Listing {
    let image = |tag: &&str| ImageRef::from_parts("reg.example/app", tag).unwrap();
    Listing {
        began: Duration::from_secs(began),
        present: present.iter().map(image).collect(),
        absent: absent.iter().map(image).collect(),
    }
}

#[test]
fn a_lost_image_of_a_job_is_reported_and_one_written_by_hand_is_pulled_again() {
    let owner = json!([{ "uid": "u" }]);
    let mut worklist = list(&[json!({ "tag": "hand" }), json!({ "tag": "job", "ownerReferences": owner })]);
    for start in worklist.decide(&free(2), at(0)).starts {
        worklist.ended(start.attempt, success(), at(1), STEADY);
    }
    assert_eq!(worklist.checked(&listing(&[], &["hand", "job"], 5), at(5)), 2);
    assert_eq!(worklist.checked(&listing(&[], &["job"], 6), at(6)), 0, "a loss is counted once");
    let job = status(&worklist, "job");
    assert_eq!((job.phase, job.lost_at.unwrap()), (Phase::Succeeded, at(5).wall));
    assert_eq!(job.completed_at.unwrap(), at(1).wall);
    assert_eq!(tags(&worklist.decide(&free(2), at(5))), ["hand"]);
    assert_eq!(worklist.checked(&listing(&["job"], &[], 7), at(7)), 0);
    assert_eq!(status(&worklist, "job").lost_at, None);
}

#[test]
fn an_image_that_is_removed_again_and_again_is_pulled_less_and_less() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    let mut now = 0;
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let lost = now;
        let start = loop {
            let decision = worklist.decide(&free(1), at(now));
            match decision.starts.first() {
                Some(start) => break start.attempt,
                None => now = decision.wake_at.unwrap().as_secs(),
            }
        };
        pauses.push(now - lost);
        worklist.ended(start, success(), at(now), STEADY);
        worklist.checked(&listing(&[], &["1"], now), at(now));
    }
    assert_eq!(pauses, [0, 0, 300, 600, 1200]);
}

#[test]
fn changed_credentials_give_a_refused_entry_by_hand_one_more_round() {
    let entry = json!({ "tag": "1", "pullPolicy": { "backoffLimit": 0 } });
    let mut worklist = Worklist::default();
    let spec =
        json!({ "images": { "reg.example/app": { "tags": [entry], "pullSecrets": [{ "name": "s" }] } } });
    worklist.adopt(read(&spec), &BTreeMap::new(), at(0));
    worklist.decide(&free(1), at(0));
    worklist.ended(1, failure(FailureClass::Unauthorized), at(1), STEADY);
    assert_eq!(worklist.refused().count(), 1);
    assert!(!worklist.credentials_are(&key("1"), 1), "they are as they were");
    assert!(worklist.credentials_are(&key("1"), 2));
    assert_eq!(tags(&worklist.decide(&free(1), at(2))), ["1"]);
    worklist.ended(2, failure(FailureClass::Unauthorized), at(3), STEADY);
    assert_eq!(worklist.refused().count(), 0, "once is enough");
}

#[test]
fn a_late_answer_about_credentials_does_not_disturb_an_attempt() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    worklist.decide(&free(1), at(0));
    worklist.ended(1, failure(FailureClass::Unauthorized), at(1), STEADY);
    assert_eq!(tags(&worklist.decide(&free(1), at(2))), ["1"]);
    assert!(!worklist.credentials_are(&key("1"), 2));
    assert_eq!((worklist.running(), status(&worklist, "1").failed_attempts), (1, 1));
}

#[test]
fn a_check_that_began_before_a_pull_ended_says_nothing_about_its_image() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    worklist.decide(&free(1), at(0));
    worklist.ended(1, success(), at(2), STEADY);
    assert_eq!(worklist.checked(&listing(&[], &["1"], 1), at(3)), 0);
    assert_eq!(worklist.checked(&listing(&[], &["1"], 2), at(3)), 1);
}

#[test]
fn an_attempt_that_brings_bytes_is_no_longer_said_to_fail() {
    let mut worklist = list(&[json!({ "tag": "1", "pullPolicy": { "backoffLimit": 5 } })]);
    let fail = |worklist: &mut Worklist, seconds| {
        let attempt = worklist.decide(&free(1), at(seconds)).starts[0].attempt;
        worklist.progressed(attempt, Bytes { done: 10, total: 100 });
        worklist.progressed(attempt, Bytes { done: 50, total: 100 });
        assert_eq!(worklist.ended(attempt, failure(FailureClass::Unreachable), at(seconds), STEADY), None);
    };
    fail(&mut worklist, 0);
    let said = |worklist: &Worklist| (status(worklist, "1").class, message(&status(worklist, "1")).is_some());
    assert_eq!(said(&worklist), (Some(FailureClass::Unreachable), true));
    let attempt = worklist.decide(&free(1), at(1)).starts[0].attempt;
    assert_eq!(said(&worklist), (Some(FailureClass::Unreachable), true), "nothing is known of it");
    worklist.progressed(attempt, Bytes { done: 50, total: 100 });
    assert_eq!(said(&worklist), (Some(FailureClass::Unreachable), true), "the one before brought these");
    worklist.progressed(attempt, Bytes { done: 60, total: 100 });
    assert_eq!(said(&worklist), (None, false));
    assert_eq!(status(&worklist, "1").failed_attempts, 1);
    worklist.ended(attempt, failure(FailureClass::TimedOut), at(2), STEADY);
    assert_eq!(said(&worklist), (Some(FailureClass::TimedOut), true));
}
