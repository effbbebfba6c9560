//! Looks ahead of places: once for each waiting task, and never instead of an answer that is still true.

use super::super::ahead::MAX_LOOKS;
use super::*;
use crate::agent::inventory::ABSENCE_LASTS;

fn present(tag: &str) -> (ImageKey, Found) {
    (key(tag), Found::Present(held()))
}

fn absent(tag: &str) -> (ImageKey, Found) {
    (key(tag), Found::Absent)
}

fn asked(decision: &Decision) -> Vec<&str> {
    let images = decision.look.iter().flat_map(|look| &look.images);
    images.map(|(key, _)| key.tag.as_str()).collect()
}

fn tagged(tags: &[&str]) -> Worklist {
    list(&tags.iter().map(|tag| json!({ "tag": tag })).collect::<Vec<_>>())
}

#[test]
fn each_task_without_a_place_is_looked_for_once() {
    let mut worklist = tagged(&["1", "2", "3"]);
    let decision = worklist.decide(&free(1), at(0));
    assert_eq!((tags(&decision), asked(&decision)), (vec!["1"], vec!["2", "3"]));
    assert!(!decision.starts[0].is_known_absent);
    assert_eq!(worklist.decide(&free(1), at(0)).look, None, "a look is under way");
    assert_eq!(worklist.looked(1, [absent("2"), absent("3")].into(), at(0)), []);
    assert_eq!(worklist.decide(&free(1), at(0)).look, None, "everything is known");
    assert_eq!(phase(&worklist, "2"), Phase::Waiting);
}

#[test]
fn a_task_whose_image_is_there_ends_without_a_place() {
    let mut worklist = tagged(&["1", "2", "3"]);
    worklist.decide(&free(1), at(0));
    let endings = worklist.looked(1, [absent("2"), present("3")].into(), at(1));
    let [ending] = &endings[..] else { panic!("one task ended: {endings:?}") };
    assert_eq!((ending.task.key.tag.as_str(), &ending.result), ("3", &Ended::Present));
    let status = status(&worklist, "3");
    assert_eq!((status.phase, status.percent), (Phase::Succeeded, 100));
    assert_eq!(status.image_id.as_deref(), Some("reg.example/app@sha256:1"));
    assert_eq!((status.started_at.unwrap(), status.completed_at.unwrap()), (at(1).wall, at(1).wall));
    assert_eq!(worklist.running(), 1);
}

#[test]
fn an_attempt_trusts_a_look_for_a_while() {
    let lasts = ABSENCE_LASTS.as_secs();
    for (begins, is_known_absent) in [(lasts, true), (lasts + 1, false)] {
        let mut worklist = tagged(&["1", "2"]);
        worklist.decide(&free(1), at(0));
        worklist.looked(1, [absent("2")].into(), at(0));
        worklist.ended(1, success(), at(begins), STEADY);
        let decision = worklist.decide(&free(1), at(begins));
        assert_eq!(decision.starts[0].is_known_absent, is_known_absent, "after {begins} s");
    }
}

#[test]
fn an_image_that_another_entry_has_just_brought_is_looked_for_again() {
    let mut worklist = Worklist::default();
    let spec = json!({ "images": {
        "docker.io/library/nginx": { "tags": [{ "tag": "1" }] }, "nginx": { "tags": [{ "tag": "1" }] },
    }});
    worklist.adopt(read(&spec), &BTreeMap::new(), at(0));
    let look = worklist.decide(&free(1), at(0)).look.unwrap();
    worklist.looked(
        look.number,
        look.images.into_iter().map(|(key, _)| (key, Found::Absent)).collect(),
        at(0),
    );
    worklist.ended(1, success(), at(1), STEADY);
    assert!(!worklist.decide(&free(1), at(1)).starts[0].is_known_absent);
}

#[test]
fn a_look_needs_a_runtime_but_neither_room_nor_a_fast_registry() {
    let mut worklist = tagged(&["1"]);
    let away = Conditions { hold: Some(Hold::NoRuntime), ..free(1) };
    assert_eq!(worklist.decide(&away, at(0)).look, None);
    let full = Conditions { no_room: Some(shortage()), ..free(1) };
    let decision = worklist.decide(&full, at(0));
    assert_eq!((tags(&decision), asked(&decision)), (vec![], vec!["1"]));
    assert_eq!(worklist.looked(1, [present("1")].into(), at(0)).len(), 1);
}

#[test]
fn a_task_that_always_asks_the_registry_is_not_looked_for() {
    let mut worklist = list(&[json!({ "tag": "1" }), json!({ "tag": "2", "imagePullPolicy": "Always" })]);
    assert_eq!(worklist.decide(&free(1), at(0)).look, None);
}

#[test]
fn the_number_of_images_in_one_look_is_bounded() {
    let names: Vec<String> = (0..MAX_LOOKS + 3).map(|number| format!("{number:02}")).collect();
    let mut worklist = tagged(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let decision = worklist.decide(&free(1), at(0));
    assert_eq!(asked(&decision).len(), MAX_LOOKS);
    worklist.looked(
        1,
        decision.look.unwrap().images.into_iter().map(|(key, _)| (key, Found::Absent)).collect(),
        at(0),
    );
    assert_eq!(asked(&worklist.decide(&free(1), at(0))), [&names[MAX_LOOKS + 1], &names[MAX_LOOKS + 2]]);
}

#[test]
fn an_answer_that_comes_too_late_changes_nothing() {
    let mut worklist = tagged(&["1", "2", "3"]);
    worklist.decide(&free(1), at(0));
    worklist.ended(1, success(), at(0), STEADY);
    assert_eq!(tags(&worklist.decide(&free(1), at(0))), ["2"]);
    let again = read(&spec(&[json!({ "tag": "2" }), json!({ "tag": "3", "version": 1 })]));
    worklist.adopt(again, &BTreeMap::new(), at(0));
    assert_eq!(worklist.looked(1, [present("2"), present("3")].into(), at(0)), []);
    assert_eq!((phase(&worklist, "2"), phase(&worklist, "3")), (Phase::Pulling, Phase::Waiting));
    assert_eq!(asked(&worklist.decide(&free(1), at(0))), ["3"]);
    let mut emptied = worklist.emptied();
    emptied.adopt(read(&spec(&[json!({ "tag": "3" })])), &BTreeMap::new(), at(0));
    assert_eq!(emptied.decide(&free(0), at(0)).look.unwrap().number, 3);
    assert_eq!(emptied.looked(2, [present("3")].into(), at(0)), []);
}

#[test]
fn a_look_is_repeated_if_the_runtime_went_away_but_not_if_it_cannot_tell() {
    let mut worklist = tagged(&["1", "2", "3"]);
    worklist.decide(&free(1), at(0));
    worklist.looked(1, [(key("2"), Found::Unclear)].into(), at(0));
    assert_eq!(asked(&worklist.decide(&free(1), at(0))), ["3"]);
    worklist.ended(1, success(), at(0), STEADY);
    assert!(!worklist.decide(&free(1), at(0)).starts[0].is_known_absent);
}

#[test]
fn nothing_is_assumed_about_the_image_of_a_cancelled_attempt() {
    let mut worklist = Worklist::default();
    let names = |names: &[&str]| {
        let images: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "tags": [{ "tag": "1" }] }))).collect();
        read(&json!({ "images": images }))
    };
    worklist.adopt(names(&["docker.io/library/nginx", "nginx"]), &BTreeMap::new(), at(0));
    let decision = worklist.decide(&free(1), at(0));
    let (begun, waits) = (&decision.starts[0].task.key, &decision.look.unwrap().images[0].0);
    worklist.looked(1, [(waits.clone(), Found::Absent)].into(), at(1));
    assert_eq!(worklist.adopt(names(&[&waits.name]), &BTreeMap::new(), at(1)), [1], "{begun:?} is cancelled");
    assert!(!worklist.decide(&free(1), at(1)).starts[0].is_known_absent, "it may have come all the same");
}

#[test]
fn the_inventory_has_what_looks_and_pulls_have_found() {
    let mut worklist = tagged(&["1", "2", "3"]);
    worklist.decide(&free(1), at(0));
    worklist.looked(1, [absent("2"), present("3")].into(), at(1));
    worklist.ended(1, success(), at(2), STEADY);
    let image = |tag| prewarm_api::reference::ImageRef::from_parts("reg.example/app", tag).unwrap();
    assert_eq!(worklist.inventory().held().collect::<Vec<_>>(), [&image("1"), &image("3")]);
    assert_eq!(worklist.inventory().holds(&image("2")), Some(false));
}
