//! Images that come from mirrors alone (ofen A11, A12, W6).

use super::*;
use crate::agent::source::Source;

const WANTED: &str = "sha256:2";

fn mirrored() -> Value {
    json!({ "tag": "1", "registryPolicy": "MirrorOnly", "digest": WANTED,
            "pullPolicy": { "backoffLimit": 1, "activeDeadlineSeconds": 1000 } })
}

/// Ends the attempt that begins now.
fn end_at(worklist: &mut Worklist, seconds: u64, outcome: Outcome) -> Option<Ending> {
    let decision = worklist.decide(&free(1), at(seconds));
    let attempt = decision.starts.first().unwrap_or_else(|| panic!("nothing begins at {seconds}")).attempt;
    worklist.ended(attempt, outcome, at(seconds), STEADY)
}

fn fail_at(worklist: &mut Worklist, seconds: u64, class: FailureClass) -> Option<Ending> {
    end_at(worklist, seconds, failure(class))
}

/// Ends the attempt that begins now, because no mirror has the image.
fn miss_at(worklist: &mut Worklist, seconds: u64) -> Option<Ending> {
    let Outcome::Failed(failure) = failure(FailureClass::NotFound) else { unreachable!("it failed") };
    end_at(worklist, seconds, Outcome::Unserved(failure))
}

#[test]
fn an_attempt_is_told_the_digest_that_the_tag_has_to_stand_for() {
    let mut worklist = list(&[mirrored()]);
    let start = worklist.decide(&free(1), at(0)).starts.remove(0);
    assert_eq!(start.source, Source::Mirrors { digest: Some(WANTED.to_owned()) });
}

#[test]
fn a_task_waits_for_mirrors_without_using_up_attempts_and_with_pauses_of_thirty_seconds_at_most() {
    let mut worklist = list(&[mirrored()]);
    let mut now = 0;
    for pause in [1, 2, 4, 8, 16, 30, 30, 30] {
        assert_eq!(miss_at(&mut worklist, now), None);
        assert_eq!(worklist.decide(&free(1), at(now + pause - 1)).starts, []);
        now += pause;
    }
    let state = status(&worklist, "1");
    assert_eq!(
        (state.phase, state.class, state.failed_attempts),
        (Phase::Pulling, Some(FailureClass::NotFound), 0)
    );
    assert_eq!(
        message(&state).unwrap(),
        "no mirror of this node has reg.example/app:1 yet: it broke; it is asked for again within 30 s"
    );
}

#[test]
fn waiting_for_mirrors_ends_at_the_deadline() {
    let mut worklist = list(&[mirrored()]);
    assert_eq!(miss_at(&mut worklist, 0), None);
    let decision = worklist.decide(&free(1), at(1000));
    assert_eq!(decision.endings[0].failure(), Some(FailureClass::TimedOut));
}

#[test]
fn mirrors_that_fail_use_up_attempts() {
    let mut worklist = list(&[mirrored()]);
    assert_eq!(fail_at(&mut worklist, 0, FailureClass::Unreachable), None);
    let ending = fail_at(&mut worklist, 1, FailureClass::Unreachable).unwrap();
    assert_eq!(ending.failure(), Some(FailureClass::Unreachable));
}

#[test]
fn what_the_registry_does_not_have_uses_up_attempts_although_mirrors_were_meant() {
    let mut worklist = list(&[mirrored()]);
    assert_eq!(fail_at(&mut worklist, 0, FailureClass::NotFound), None);
    let ending = fail_at(&mut worklist, 1, FailureClass::NotFound).unwrap();
    assert_eq!(ending.failure(), Some(FailureClass::NotFound));
}

#[test]
fn what_mirrors_bring_is_wanted_until_its_task_has_ended_or_may_come_from_elsewhere() {
    let mut worklist = list(&[mirrored()]);
    let wanted = |worklist: &Worklist| worklist.from_mirrors().len();
    assert_eq!(wanted(&worklist), 1);
    assert_eq!(fail_at(&mut worklist, 0, FailureClass::Unreachable), None);
    assert_eq!(wanted(&worklist), 1, "another attempt goes on with it");
    assert!(fail_at(&mut worklist, 1, FailureClass::Unreachable).is_some());
    assert_eq!(wanted(&worklist), 0);
    let mut worklist = list(&[mirrored()]);
    worklist.adopt(read(&spec(&[json!({ "tag": "1" })])), &BTreeMap::new(), at(1));
    assert_eq!(wanted(&worklist), 0);
}

#[test]
fn a_task_that_may_ask_the_registry_uses_up_attempts_for_what_is_not_found() {
    let mut worklist = list(&[json!({ "tag": "1", "pullPolicy": { "backoffLimit": 0 } })]);
    assert!(fail_at(&mut worklist, 0, FailureClass::NotFound).is_some());
}

#[test]
fn whoever_waits_for_mirrors_begins_at_once_when_the_registry_may_be_asked() {
    let mut worklist = list(&[mirrored()]);
    for seconds in [0, 1, 3, 7] {
        assert_eq!(miss_at(&mut worklist, seconds), None);
    }
    assert_eq!(worklist.decide(&free(1), at(8)).starts, []);
    let asked = read(&spec(&[json!({ "tag": "1", "registryPolicy": "Default" })]));
    worklist.adopt(asked, &BTreeMap::new(), at(8));
    assert_eq!(worklist.decide(&free(1), at(8)).starts[0].source, Source::Registry);
}

#[test]
fn an_image_that_stands_for_another_digest_is_brought_and_the_right_one_is_present() {
    for (digest, is_present) in [(Some("sha256:3"), false), (None, false), (Some(WANTED), true)] {
        let mut worklist = list(&[mirrored()]);
        let look = worklist.decide(&free(0), at(0)).look.unwrap();
        let image = Held { id: "x".to_owned(), digest: digest.map(str::to_owned) };
        let found = BTreeMap::from([(look.images[0].0.clone(), Found::Present(image))]);
        let endings = worklist.looked(look.number, found, at(0));
        assert_eq!(endings.len(), usize::from(is_present), "{digest:?}");
    }
}

#[test]
fn the_digest_of_what_is_there_is_reported() {
    let mut worklist = list(&[json!({ "tag": "1" })]);
    let attempt = worklist.decide(&free(1), at(0)).starts[0].attempt;
    worklist.ended(attempt, success(), at(1), STEADY);
    assert_eq!(status(&worklist, "1").digest.as_deref(), Some("sha256:2"));
}
