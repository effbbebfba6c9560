//! ImagePrefetches in a small world that carries the kernel's commands out and whose agents answer when a test says so.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_api::ofen::RegistryPolicy::{Default as Registry, MirrorOnly};
use serde_json::{Value, json};

use crate::cluster::command::{Command, Verb, Write};
use crate::cluster::{Kernel, Kind, Settings};
use crate::support::build::{job_key, labelled, node, unready};
use crate::support::prefetch::prefetch;
use crate::support::world::{Fate, World};

mod choosing;
mod ends;
mod privacy;
mod restarts;
mod statuses;
mod waves;

const SECOND: Duration = Duration::from_secs(1);
const IMAGE: &str = "nginx:1";

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A world with these ready nodes and an ImagePrefetch `a` with these fields.
fn world(nodes: &[&str], fields: &Value) -> World {
    begin(World::of(nodes), fields)
}

fn begin(mut world: World, fields: &Value) -> World {
    world.store.create_prefetch(prefetch("a", fields));
    world.pass(SECOND);
    world
}

fn many(count: usize, fields: &Value) -> World {
    let names: Vec<String> = (0..count).map(|number| format!("n{number:03}")).collect();
    world(&names.iter().map(String::as_str).collect::<Vec<_>>(), fields)
}

/// Nodes in zones: so many in `x`, the others in `y`.
fn zoned(in_x: usize, in_y: usize) -> World {
    let mut world = World::default();
    for number in 0..in_x + in_y {
        let zone = if number < in_x { "x" } else { "y" };
        let labels = [("topology.kubernetes.io/zone", zone)];
        world.store.put_node(labelled(&format!("{zone}{number}"), &labels));
    }
    world.settle();
    world
}

/// The node that asks the registry.
fn seed(world: &World) -> String {
    let seeds = world.nodes_with("a", Registry);
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    seeds.into_iter().next().unwrap()
}

fn edit(world: &mut World, fields: &Value) {
    world.store.edit_prefetch("a", fields);
    world.pass(SECOND);
}

/// All agents do what they were told, and a second passes.
fn pull(world: &mut World) {
    world.pull_all();
    world.pass(SECOND);
}

/// Status and reason of a condition.
fn condition(world: &World, type_: &str) -> (String, String) {
    let (status, reason, _) = world.prefetch_condition("a", type_).unwrap();
    (status, reason)
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// The reasons of all events so far.
fn reasons(world: &World) -> Vec<&str> {
    world.events.iter().map(|event| event.notice.reason).collect()
}
