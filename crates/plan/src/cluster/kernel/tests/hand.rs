//! Entries that a person wrote.

use super::*;

/// A node with an entry by hand for `nginx:1`, pulled or not.
fn by_hand(phase: Option<PullPhase>) -> World {
    let mut world = World::of(&["n1"]);
    let mut object = world.store.images["n1"].clone();
    object.spec = node_image("n1", &[entry("nginx:1")]).spec;
    world.store.put_image(object);
    if let Some(phase) = phase {
        world.report("n1", "nginx:1", phase);
    }
    world
}

#[test]
fn an_entry_by_hand_is_never_touched() {
    let mut world = by_hand(Some(PullPhase::Pulling));
    assert_eq!(world.pass(seconds(9000)), 0);
}

#[test]
fn an_entry_by_hand_goes_when_its_time_has_passed() {
    let mut world = by_hand(Some(PullPhase::Succeeded));
    assert_eq!(world.pass(seconds(599)), 0);
    assert_eq!((world.pass(SECOND), world.tag("n1", "nginx:1")), (1, None));
}

#[test]
fn an_entry_by_hand_outlives_a_job_that_joined_it() {
    let mut world = by_hand(None);
    world.create(never("a")).settle();
    assert_eq!(world.granted("a"), ["n1"]);
    world.store.delete_job(&job_key("a"), world.now);
    world.settle();
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.version, tag.manual, tag.owner_references), (0, true, None));
    world.create(never("b")).settle();
    world.store.delete_job(&job_key("b"), world.now);
    world.settle();
    assert!(world.tag("n1", "nginx:1").is_some());
}

#[test]
fn an_entry_by_hand_stays_when_a_job_withdraws() {
    let mut world = by_hand(None);
    world.store.put_node(labelled("n1", &[("pool", "gpu")]));
    world.create(job("a", &json!({"selector": {"matchLabels": {"pool": "gpu"}}}))).settle();
    world.store.put_node(node("n1"));
    world.settle();
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.manual, tag.owner_references), (true, None));
}

#[test]
fn a_job_counts_what_is_there_by_hand() {
    let mut world = by_hand(Some(PullPhase::Succeeded));
    world.create(never("a")).settle();
    world.pass(SECOND);
    assert_eq!((world.counts("a"), world.tag("n1", "nginx:1").unwrap().version), ([1, 0, 1, 0], 0));
}
