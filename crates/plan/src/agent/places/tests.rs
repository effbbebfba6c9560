use serde_json::json;

use super::*;
use crate::agent::kruise::read;

fn task(name: &str, namespace: &str) -> Task {
    let owners =
        if namespace.is_empty() { json!([]) } else { json!([{ "uid": name, "namespace": namespace }]) };
    let spec = json!({ "images": { name: { "tags": [{ "tag": "1", "ownerReferences": owners }] } } });
    read(&spec).tasks.into_values().next().unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Two places that these tasks hold, each since a second.
fn held<'a>(tasks: &[&'a Task], since: &[u64]) -> Places<'a> {
    let pairs = tasks.iter().zip(since);
    let holders = pairs.map(|(task, since)| Holder { task, since: seconds(*since) }).collect();
    Places { parallel: 2, holders }
}

#[test]
fn a_free_place_is_for_everybody() {
    let web = task("reg.example/web", "shop");
    assert!(held(&[&web], &[0]).has_one_for(&web, seconds(0)));
}

#[test]
fn places_that_were_just_taken_are_waited_for() {
    let (one, two, other) = (task("a.example/x", "a"), task("a.example/y", "a"), task("b.example/z", "b"));
    let places = held(&[&one, &two], &[0, 10]);
    assert!(!places.has_one_for(&other, seconds(69)));
    assert_eq!(places.kept_open_at(), Some(seconds(70)));
    assert!(places.has_one_for(&other, seconds(70)));
}

#[test]
fn another_registry_or_another_namespace_gets_a_kept_place_and_nobody_else() {
    let (one, two) = (task("slow.example/x", "a"), task("slow.example/y", "a"));
    let places = held(&[&one, &two], &[0, 0]);
    let has = |name: &str, namespace: &str| places.has_one_for(&task(name, namespace), seconds(60));
    assert!(has("other.example/x", "a"), "two images of one slow registry");
    assert!(has("slow.example/x", "b"), "two jobs of one namespace");
    assert!(has("slow.example/x", ""), "entries by hand are nobody's namespace");
    assert!(!has("slow.example/z", "a"));
}

#[test]
fn one_namespace_with_any_number_of_registries_leaves_a_place_to_others() {
    let slow: Vec<Task> = (0..4).map(|number| task(&format!("slow-{number}.example/x"), "a")).collect();
    let other = task("good.example/x", "b");
    let three = held(&[&slow[0], &slow[1], &slow[2]], &[0, 0, 60]);
    assert!(!three.has_one_for(&slow[3], seconds(600)), "the last one is not for it");
    assert!(three.has_one_for(&other, seconds(600)));
    let four = held(&[&slow[0], &slow[1], &slow[2], &other], &[0, 0, 60, 60]);
    assert!(!four.has_one_for(&task("fine.example/x", "c"), seconds(600)), "there is no end otherwise");
}

#[test]
fn a_node_without_places_keeps_none() {
    let places = Places { parallel: 0, holders: vec![] };
    assert!(!places.has_one_for(&task("reg.example/web", "shop"), seconds(600)));
    assert_eq!(places.kept_open_at(), None);
}

#[test]
fn places_are_counted_for_namespace_and_registry() {
    let (one, two) = (task("a.example/x", "shop"), task("b.example/y", "shop"));
    let share = held(&[&one, &two], &[0, 0]).share(&task("b.example/z", "shop"));
    assert_eq!(share, Share { of_namespace: 2, of_registry: 1 });
}
