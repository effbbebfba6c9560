use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::agent::kruise::read;
use crate::agent::worklist::{Conditions, Held, Outcome};

fn at(seconds: u64) -> Moment {
    Moment { elapsed: Duration::from_secs(seconds), wall: Timestamp::UNIX_EPOCH }
}

fn object(uid: &str, tags: &[&str]) -> Observed {
    let tags: Vec<_> = tags.iter().map(|tag| json!({ "tag": tag })).collect();
    let asked = read(&json!({ "images": { "reg.example/app": { "tags": tags } } }));
    Observed { uid: Some(uid.into()), asked, ..Observed::default() }
}

/// Begins what can begin, and returns the numbers of the attempts.
fn begin(assignment: &mut Assignment) -> Vec<u64> {
    let conditions = Conditions { parallel: 9, hold: None, no_room: None };
    let starts = assignment.worklist.decide(&conditions, at(1)).starts;
    starts.into_iter().map(|start| start.attempt).collect()
}

fn adoption(object: Object, cancelled: &[u64]) -> Adoption {
    Adoption { object, cancelled: cancelled.to_vec() }
}

#[test]
fn the_same_object_again_cancels_only_what_it_no_longer_asks() {
    let mut assignment = Assignment::default();
    assert_eq!(assignment.observe(object("one", &["1", "2"]), at(0)), adoption(Object::Another, &[]));
    assert_eq!(begin(&mut assignment), [1, 2]);
    assert_eq!(assignment.observe(object("one", &["2"]), at(1)), adoption(Object::Same, &[1]));
}

#[test]
fn another_object_of_the_same_name_cancels_everything_and_starts_from_its_own_status() {
    let mut assignment = Assignment::default();
    assignment.observe(object("one", &["1"]), at(0));
    assert_eq!(begin(&mut assignment), [1]);
    assert_eq!(assignment.observe(object("other", &["1"]), at(1)), adoption(Object::Another, &[1]));
    assert_eq!(
        begin(&mut assignment),
        [2],
        "a late answer to the first attempt must not be taken for this one"
    );
}

#[test]
fn an_object_that_ends_keeps_what_was_begun_for_it_and_begins_nothing_new() {
    let mut assignment = Assignment::default();
    assignment.observe(object("one", &["1"]), at(0));
    begin(&mut assignment);
    let ending = Observed { is_ending: true, ..object("one", &["1", "2"]) };
    assert_eq!(assignment.observe(ending, at(1)), adoption(Object::Same, &[]));
    assert_eq!((assignment.worklist.asked(), begin(&mut assignment)), (1, vec![]));
}

#[test]
fn an_object_that_ends_before_anything_was_begun_for_it_is_as_good_as_gone() {
    let mut assignment = Assignment::default();
    assignment.observe(object("one", &["1"]), at(0));
    begin(&mut assignment);
    let ending = Observed { is_ending: true, ..object("other", &["1"]) };
    assert_eq!(assignment.observe(ending, at(1)), adoption(Object::Gone, &[1]));
    assert_eq!(assignment.worklist.asked(), 0);
}

#[test]
fn a_first_pass_is_noted_once_and_a_reported_one_is_kept() {
    let mut assignment = Assignment::default();
    assignment.note_first_sync(at(0));
    assert_eq!(assignment.report(None).first_sync, None, "nobody asked for anything");
    assignment.observe(object("one", &["1"]), at(0));
    begin(&mut assignment);
    assignment.note_first_sync(at(0));
    assert_eq!(assignment.report(None).first_sync, None, "a task is under way");
    let outcome = Outcome::Succeeded {
        image: Held { id: "id".to_owned(), digest: None },
        was_present: false,
        results: None,
    };
    assignment.worklist.ended(1, outcome, at(2), 0.0);
    assignment.note_first_sync(at(2));
    let noted = assignment.report(None).first_sync;
    assert_eq!(noted.as_ref().and_then(|first| first.is_success), Some(true));
    let reported = FirstSync { message: Some("of an earlier agent".to_owned()), ..FirstSync::default() };
    let observed = Observed { first_sync: Some(reported.clone()), ..object("one", &["1"]) };
    assignment.observe(observed, at(3));
    assert_eq!(assignment.report(None).first_sync, Some(reported));
    assignment.observe(object("other", &["1"]), at(4));
    assert_eq!(assignment.report(None).first_sync, None, "another object has a first pass of its own");
}
