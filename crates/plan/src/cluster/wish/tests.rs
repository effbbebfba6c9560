use std::time::Duration;

use prewarm_api::kruise::PullPhase;
use serde_json::json;

use super::*;
use crate::cluster::demands::roll::Roll;
use crate::cluster::{Input, Kind};
use crate::support::build::{job, job_key, key};
use crate::support::world::World;

const KIND: &str = Wish::ABOUT.name;

fn wish(nodes: &[&str], at_once: usize) -> Input {
    let ObjectKey { namespace, name } = job_key("wish");
    let names = nodes.iter().map(|name| (*name).to_owned()).collect();
    Input::seen(Wish {
        metadata: ObjectMeta {
            namespace: Some(namespace),
            name: Some(name),
            uid: Some("wish".to_owned()),
            ..ObjectMeta::default()
        },
        image: key("nginx:1"),
        nodes: Selection::Names(names),
        at_once,
    })
}

/// Who owns the entry of the image on a node.
fn owners(world: &World, node: &str) -> Vec<String> {
    let tag = world.tag(node, "nginx:1");
    let owners = tag.into_iter().flat_map(|tag| tag.owner_references.unwrap_or_default());
    owners.filter_map(|owner| owner.kind).collect()
}

/// Desired, active and succeeded nodes.
fn counts(world: &World) -> [usize; 3] {
    let record = world.kernel.demands.get("wish").unwrap();
    let counts = record.roll.as_ref().map(Roll::counts).unwrap();
    [counts.desired, counts.active, counts.succeeded]
}

#[test]
fn a_second_kind_is_granted_as_many_nodes_at_once_as_it_may() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.kernel.observe(wish(&["n1", "n3"], 1), world.now);
    world.settle();
    assert_eq!(["n1", "n2", "n3"].map(|node| owners(&world, node)), [vec![KIND], vec![], vec![]]);
    assert_eq!(counts(&world), [2, 1, 0]);
    world.pull_all();
    world.settle();
    assert_eq!((owners(&world, "n3"), counts(&world)), (vec![KIND.to_owned()], [2, 1, 1]));
    world.pull_all();
    assert_eq!(world.settle(), 0);
    assert_eq!(counts(&world), [2, 0, 2]);
}

#[test]
fn a_second_kind_and_a_job_share_an_entry_and_each_leaves_it_alone() {
    let mut world = World::of(&["n1"]);
    world.create(job("a", &json!({"completionPolicy": {"type": "Never"}}))).settle();
    world.kernel.observe(wish(&["n1"], 1), world.now);
    world.settle();
    assert_eq!(owners(&world, "n1"), ["ImagePullJob", KIND]);
    assert_eq!(world.tag("n1", "nginx:1").unwrap().version, 0, "the pull goes on as it is");
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.pass(Duration::from_secs(1));
    assert_eq!((counts(&world), world.counts("a")), ([1, 0, 1], [1, 0, 1, 0]));
    let now = world.now;
    world.store.delete_job(&job_key("a"), now);
    world.settle();
    assert_eq!(owners(&world, "n1"), [KIND]);
    let gone = Input::Gone { kind: Kind::Wish, key: job_key("wish"), uid: None };
    world.kernel.observe(gone, world.now);
    world.settle();
    assert_eq!(world.tag("n1", "nginx:1"), None);
}

#[test]
fn a_node_that_a_second_kind_no_longer_selects_is_taken_back_before_it_begins() {
    let mut world = World::of(&["n1", "n2"]);
    world.kernel.observe(wish(&["n1"], 1), world.now);
    world.settle();
    world.kernel.observe(wish(&["n2"], 1), world.now);
    world.settle();
    assert_eq!(["n1", "n2"].map(|node| owners(&world, node)), [vec![], vec![KIND.to_owned()]]);
}
