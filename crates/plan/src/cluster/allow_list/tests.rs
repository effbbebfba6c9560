//! What a list of allowed images does to demands.

use std::collections::BTreeSet;

use prewarm_api::names::condition::PROGRESSING;
use serde_json::json;

use super::*;
use crate::cluster::{Input, Settings};
use crate::support::build::{at, job};
use crate::support::prefetch::node_image_set;
use crate::support::world::{World, with};

fn place() -> ObjectKey {
    ObjectKey { namespace: "system".to_owned(), name: "images".to_owned() }
}

fn settings() -> Settings {
    Settings { allow_list: Some(place()), ..Settings::default() }
}

fn map(entries: &[(&str, &str)]) -> ConfigMap {
    let entries = entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let (name, namespace) = (Some(place().name), Some(place().namespace));
    ConfigMap {
        metadata: ObjectMeta { name, namespace, uid: Some("map".to_owned()), ..ObjectMeta::default() },
        data: Some(entries),
        ..ConfigMap::default()
    }
}

/// A node, and a controller that was told of a list.
fn world() -> World {
    let mut world = World::of(&["n1"]);
    world.kernel = with(settings());
    for input in world.store.all() {
        world.kernel.observe(input, at(0));
    }
    world
}

fn say(world: &mut World, entries: &[(&str, &str)]) {
    let now = world.now;
    world.kernel.observe(Input::Seen(map(entries).into()), now);
    world.settle();
}

fn progressing(world: &World, name: &str) -> (String, String) {
    let conditions = world.status(name).conditions.unwrap_or_default();
    let condition = conditions.into_iter().find(|condition| condition.type_ == PROGRESSING).unwrap();
    (condition.reason, condition.message)
}

#[test]
fn a_job_whose_image_is_not_allowed_is_held_and_says_so_once_until_it_is() {
    let mut world = world();
    say(&mut world, &[("_all", "ghcr.io")]);
    world.create(job("a", &json!({"image": "nginx:1"}))).settle();
    assert_eq!(world.granted("a"), [""; 0]);
    let (reason, message) = progressing(&world, "a");
    assert_eq!(reason, "ImageNotAllowed");
    assert!(
        message.contains("nginx:1")
            && message.contains("namespace team")
            && message.contains("system/images")
    );
    let told =
        |world: &World| world.events.iter().filter(|event| event.notice.reason == "ImageNotAllowed").count();
    assert_eq!(told(&world), 1);
    say(&mut world, &[("_all", "ghcr.io"), ("other", "nginx")]);
    assert_eq!(world.granted("a"), [""; 0]);
    say(&mut world, &[("_all", "ghcr.io"), ("team", "nginx")]);
    assert_eq!((world.granted("a"), told(&world)), (vec!["n1".to_owned()], 1));
    say(&mut world, &[]);
    assert_eq!(world.granted("a"), ["n1"], "what was granted stays");
}

#[test]
fn without_the_map_nothing_is_allowed_and_before_it_is_known_nothing_is_decided() {
    let mut world = world();
    world.create(job("a", &json!({"image": "nginx:1"}))).settle();
    assert_eq!(world.granted("a"), [""; 0]);
    assert!(progressing(&world, "a").1.contains("is missing"));
    let mut fresh = Kernel::new(settings());
    for kind in Kind::needed().filter(|kind| *kind != Kind::ConfigMap) {
        fresh.observe(Input::Listed { kind, namespace: None, names: BTreeSet::new() }, at(0));
    }
    assert!(!fresh.is_synced());
    fresh.observe(Input::Listed { kind: Kind::ConfigMap, namespace: None, names: BTreeSet::new() }, at(0));
    assert!(fresh.is_synced());
}

#[test]
fn a_map_of_another_name_says_nothing() {
    let mut world = world();
    let other = ConfigMap {
        metadata: ObjectMeta { name: Some("other".to_owned()), ..map(&[]).metadata },
        ..map(&[("_all", "nginx")])
    };
    world.kernel.observe(Input::Seen(other.into()), at(0));
    world.create(job("a", &json!({"image": "nginx:1"}))).settle();
    assert_eq!(world.granted("a"), [""; 0]);
}

/// A set is of the whole cluster, so only what is allowed everywhere counts for it (ofen W23).
#[test]
fn a_set_by_hand_obeys_too() {
    let mut world = world();
    say(&mut world, &[("team", "nginx"), ("_all", "ghcr.io")]);
    let images = json!({"images": ["nginx:1", "ghcr.io/team/app:1"], "registryPolicy": "Default"});
    world.store.create_set(node_image_set("by-hand", "n1", &images));
    world.settle();
    assert!(world.tag("n1", "nginx:1").is_none());
    assert!(world.tag("n1", "ghcr.io/team/app:1").is_some());
}
