//! Lists, their children, and what happens to nodes when a list goes.

use prewarm_api::kruise::ImageListPullJob;

use super::*;
use crate::support::build::finished;

/// A list of this many images for all nodes.
fn list(images: usize) -> ImageListPullJob {
    let images: Vec<String> = (0..images).map(|number| format!("tool-{number}:1")).collect();
    serde_json::from_value(json!({
        "metadata": {"name": "tools", "namespace": "team", "uid": "tools", "generation": 1,
            "creationTimestamp": at(0)},
        "spec": {"images": images, "parallelism": 100, "completionPolicy": {}},
    }))
    .unwrap()
}

/// A world in which a list of four images is on all of three nodes.
fn warmed() -> World {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.store.create_list(list(4));
    world.settle();
    world.pull_all();
    world.settle();
    world.pass(seconds(6));
    assert_eq!(world.store.lists[&list_key()].status.as_ref().map(|status| status.succeeded), Some(4));
    world
}

fn list_key() -> ObjectKey {
    ObjectKey { namespace: "team".to_owned(), name: "tools".to_owned() }
}

fn node_writes(world: &World, from: usize) -> usize {
    world.log[from..].iter().filter(|(_, command)| written_node(command).is_some()).count()
}

/// The garbage collector deletes one child.
fn collect_one(world: &mut World) -> bool {
    let Some(key) = world.store.jobs.keys().next().cloned() else { return false };
    world.store.delete_job(&key, world.now);
    true
}

#[test]
fn when_a_list_goes_each_node_is_written_once() {
    let mut world = warmed();
    let before = world.log.len();
    world.store.delete_list(&list_key());
    world.settle();
    assert!(world.store.images.values().all(|image| image.spec.images.is_empty()), "no entry is left");
    while collect_one(&mut world) {
        world.settle();
        world.pass(SECOND);
    }
    assert_eq!(node_writes(&world, before), 3);
}

#[test]
fn children_that_a_deleted_list_leaves_behind_go_on() {
    let mut world = World::of(&["n1"]);
    world.store.create_list(list(2));
    world.settle();
    let mut left = world.store.lists[&list_key()].clone();
    left.metadata.finalizers = Some(vec!["orphan".to_owned()]);
    left.metadata.deletion_timestamp = serde_json::from_value(json!(at(1))).unwrap();
    world.store.create_list(left);
    world.settle();
    world.store.delete_list(&list_key());
    world.settle();
    assert_eq!(world.store.images["n1"].spec.images.len(), 2);
}

#[test]
fn a_list_that_cannot_be_read_for_a_while_keeps_its_entries() {
    let mut world = warmed();
    let before = world.log.len();
    let gone = Input::Gone { kind: Kind::ImageListPullJob, key: list_key(), uid: None };
    world.kernel.observe(gone, world.now);
    world.settle();
    assert_eq!(node_writes(&world, before), 0);
}

#[test]
fn a_child_that_ends_soon_writes_one_status() {
    let mut world = World::of(&["n1"]);
    let before = world.log.len();
    world.store.create_list(list(50));
    world.settle();
    world.pass(SECOND);
    world.report_all("n1", PullPhase::Pulling);
    world.pass(SECOND);
    world.pull_all();
    world.pass(SECOND);
    let statuses = world.log[before..].iter().filter(|(_, command)| is_job_status(command)).count();
    assert_eq!(statuses, 50);
    assert!(world.log.len() - before <= 110, "{} writes", world.log.len() - before);
    let started: Vec<_> =
        world.store.jobs.values().filter_map(|job| job.status.clone()?.start_time).collect();
    assert!(started.iter().all(|start| start.0 == at(0)), "the start is that of the work: {started:?}");
}

#[test]
fn a_child_that_takes_long_reports_every_five_seconds() {
    let mut world = World::of(&["n1"]);
    world.store.create_list(list(1));
    world.settle();
    world.report_all("n1", PullPhase::Pulling);
    let before = world.log.len();
    world.pass(seconds(4));
    let is_status = |(_, command): &&(Timestamp, Command)| is_job_status(command);
    assert_eq!(world.log[before..].iter().filter(is_status).count(), 0);
    world.pass(seconds(2));
    assert_eq!(world.log[before..].iter().filter(is_status).count(), 1);
}

/// UIDs are no secret, and an owner reference has no namespace.
#[test]
fn a_child_that_somebody_forges_in_another_namespace_is_none() {
    let mut world = World::of(&["n1"]);
    let mut forged = finished(job("forged", &json!({"image": "tool-0:1", "parallelism": 100})));
    forged.metadata.namespace = Some("other".to_owned());
    forged.metadata.owner_references =
        serde_json::from_value(json!([{"apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImageListPullJob", "name": "tools", "uid": "tools", "controller": true}]))
        .unwrap();
    world.create(forged);
    world.store.create_list(list(1));
    world.settle();
    let own: Vec<&str> = world
        .store
        .jobs
        .iter()
        .filter(|(key, _)| key.namespace == "team")
        .map(|(_, job)| job.spec.image.as_str())
        .collect();
    assert_eq!((own, world.store.jobs.len()), (vec!["tool-0:1"], 2));
    assert_eq!(world.store.images["n1"].spec.images.len(), 1, "its own child is granted");
    world.store.delete_list(&list_key());
    world.settle();
    assert!(world.store.images["n1"].spec.images.is_empty());
}
