//! Writes that arrive and do not stay: definitions of another version drop fields, webhooks rewrite, others write too.

use prewarm_api::kruise::ImageListPullJob;

use super::*;
use crate::support::prefetch::prefetch;

fn hours(count: u64) -> Duration {
    Duration::from_hours(count)
}

/// How many writes of these there were since this entry of the log.
fn count(world: &World, since: usize, is_meant: impl Fn(&Command) -> bool) -> usize {
    world.log[since..].iter().filter(|(_, command)| is_meant(command)).count()
}

fn told(world: &World, reason: &str) -> Vec<String> {
    let events = world.events.iter().filter(|event| event.notice.reason == reason);
    events.map(|event| event.notice.note.clone()).collect()
}

/// A job that warms three nodes one after the other and then stays. Returns the writes of its status.
fn played(drops_conditions: bool) -> (World, usize) {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.store.meddles.with_conditions = drops_conditions;
    world.create(job("a", &json!({"completionPolicy": {"type": "Never"}})));
    for node in ["n1", "n2", "n3"] {
        world.pass(seconds(2));
        world.report(node, "nginx:1", PullPhase::Succeeded);
    }
    world.pass(seconds(60));
    let writes = count(&world, 0, is_job_status);
    (world, writes)
}

#[test]
fn a_field_that_is_dropped_costs_no_further_write() {
    let ((_, usual), (world, writes)) = (played(false), played(true));
    assert_eq!(writes, usual);
    assert_eq!((world.counts("a"), world.status("a").conditions), ([3, 0, 3, 0], None));
}

#[test]
fn a_field_that_is_dropped_is_told_once_and_named() {
    let (mut world, _) = played(true);
    world.pass(hours(3));
    let notes = told(&world, "FieldsNotKept");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("written to conditions: the installed definitions"), "{notes:?}");
    let words = world.kernel.trouble().unkept.in_words().unwrap();
    assert!(words.contains("conditions of image_pull_job"), "{words}");
}

#[test]
fn what_was_dropped_is_written_again_within_minutes_of_better_definitions() {
    let (mut world, _) = played(true);
    let before = world.log.len();
    world.pass(hours(3));
    let tries = count(&world, before, is_job_status);
    assert!((5..=12).contains(&tries), "{tries} in three hours");
    world.store.meddles.with_conditions = false;
    world.pass(seconds(20 * 60));
    assert!(world.status("a").conditions.is_some());
    assert_eq!(world.kernel.trouble().unkept.in_words(), None);
    assert_eq!(world.pass(hours(1)), 0);
}

#[test]
fn a_controller_that_starts_anew_tries_once() {
    let (mut world, _) = played(true);
    let before = world.log.len();
    world.restart();
    world.pass(seconds(60));
    assert_eq!(count(&world, before, is_job_status), 1);
}

/// Somebody changes what was written as soon as it is there, for an hour. Returns how often it was written.
fn quarrel(world: &mut World, undo: impl Fn(&mut World), is_meant: impl Fn(&Command) -> bool) -> usize {
    let before = world.log.len();
    for _ in 0..3600 {
        undo(world);
        world.pass(SECOND);
    }
    count(world, before, is_meant)
}

#[test]
fn a_status_that_somebody_keeps_wiping_is_corrected_less_and_less_often() {
    let (mut world, _) = played(false);
    let wipe = |world: &mut World| world.store.edit_job(&job_key("a"), |job| job.status = None);
    let writes = quarrel(&mut world, wipe, is_job_status);
    assert!((10..30).contains(&writes), "{writes}");
}

#[test]
fn labels_that_somebody_keeps_changing_are_corrected_less_and_less_often() {
    let mut world = World::of(&["n1"]);
    let relabel = |world: &mut World| {
        let mut image = world.store.images["n1"].clone();
        image.metadata.labels = Some([("pool".to_owned(), "other".to_owned())].into());
        world.store.put_image(image);
    };
    let writes = quarrel(&mut world, relabel, |command| written_node(command).is_some());
    assert!((10..30).contains(&writes), "{writes}");
}

#[test]
fn a_grant_that_does_not_stay_is_written_less_and_less_often() {
    let mut world = World::of(&["n1"]);
    world.store.meddles.with_owners = true;
    world.create(never("a"));
    world.pass(hours(1));
    let writes = count(&world, 0, |command| !patched_nodes(std::slice::from_ref(command)).is_empty());
    assert!((10..40).contains(&writes), "{writes}");
}

/// An ImagePrefetch on three nodes under definitions that do not know from where a tag comes.
fn asked_for_mirrors(drops_origins: bool) -> World {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.store.meddles.with_origins = drops_origins;
    world.store.create_prefetch(prefetch("a", &json!({})));
    world.finish_prefetch("a");
    world
}

fn is_node_write(command: &Command) -> bool {
    !patched_nodes(std::slice::from_ref(command)).is_empty()
}

#[test]
fn an_entry_that_lacks_a_field_is_written_once_more_and_then_hardly_ever() {
    let (usual, mut world) = (asked_for_mirrors(false), asked_for_mirrors(true));
    let writes = count(&world, 0, is_node_write);
    assert!(writes <= count(&usual, 0, is_node_write) + 2, "{writes}");
    let before = world.log.len();
    world.pass(hours(3));
    let tries = count(&world, before, is_node_write);
    assert!((10..=36).contains(&tries), "{tries} to two nodes in three hours");
    let notes = told(&world, "FieldsNotKept");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("written to registryPolicy: the installed definitions"), "{notes:?}");
    world.store.meddles.with_origins = false;
    world.pass(seconds(20 * 60));
    assert_eq!(world.kernel.trouble().unkept.in_words(), None);
    assert_eq!(world.pass(hours(1)), 0);
}

#[test]
fn a_child_that_does_not_stay_as_it_was_made_is_made_less_and_less_often() {
    let mut world = World::of(&["n1"]);
    world.store.meddles.with_children = true;
    let list: ImageListPullJob = serde_json::from_value(json!({
        "metadata": {"name": "tools", "namespace": "team", "uid": "tools", "creationTimestamp": at(0)},
        "spec": {"images": ["a:1"], "completionPolicy": {}},
    }))
    .unwrap();
    world.store.create_list(list);
    world.pass(hours(1));
    let is_made = |command: &Command| matches!(command, Command::Write(Write { verb: Verb::Create(_), ticket }) if ticket.kind == Kind::ImagePullJob);
    let made = count(&world, 0, is_made);
    assert!((2..40).contains(&made), "{made}");
    let key = ObjectKey { namespace: "team".to_owned(), name: "tools".to_owned() };
    let conditions =
        world.store.lists[&key].status.clone().unwrap_or_default().conditions.unwrap_or_default();
    assert!(
        conditions.iter().any(|one| one.message.contains("with another spec than was sent")),
        "{conditions:?}"
    );
}
