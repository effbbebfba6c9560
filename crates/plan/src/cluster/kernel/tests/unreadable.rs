//! Objects that this version cannot read: what they asked for stays.

use super::*;
use crate::cluster::command::Event;
use crate::object::{SourceKey, Uid};
use crate::support::build::NAMESPACE;

fn unreadable(world: &mut World, kind: Kind, key: &ObjectKey, uid: &str) {
    let reason = "unknown variant `Sometimes`".to_owned();
    let input = Input::Unreadable { kind, key: key.clone(), uid: Uid::from(uid), reason };
    world.kernel.observe(input, world.now);
}

fn uid_of(world: &World, name: &str) -> String {
    world.store.jobs[&job_key(name)].metadata.uid.clone().unwrap()
}

fn private(name: &str) -> ImagePullJob {
    job(name, &json!({"pullSecrets": ["regcred"], "completionPolicy": {"type": "Never"}, "parallelism": 100}))
}

/// A job that has an image on two nodes, with a copy of a Secret.
fn warmed() -> World {
    let mut world = World::of(&["n1", "n2"]);
    world.store.sources.insert(SourceKey { namespace: NAMESPACE.to_owned(), name: "regcred".to_owned() }, 1);
    world.create(private("a")).settle();
    world.pull_all();
    world.pass(seconds(10));
    world
}

fn events(world: &World) -> Vec<&Event> {
    world.events.iter().filter(|event| event.notice.reason == "Unreadable").collect()
}

#[test]
fn a_job_that_becomes_unreadable_keeps_its_grants_and_is_told_once() {
    let mut world = warmed();
    let uid = uid_of(&world, "a");
    for _ in 0..3 {
        unreadable(&mut world, Kind::ImagePullJob, &job_key("a"), &uid);
        world.pass(seconds(600));
    }
    assert_eq!((world.granted("a"), world.store.copies.len()), (vec!["n1".to_owned(), "n2".to_owned()], 1));
    let [event] = events(&world)[..] else { panic!("{:?}", world.events) };
    assert!(event.notice.note.contains("unknown variant"), "{event:?}");
    assert_eq!(event.about.kind.as_deref(), Some("ImagePullJob"));
    assert_eq!(world.kernel.trouble().unreadable.counts(), [(Kind::ImagePullJob, 1)].into());
}

#[test]
fn a_job_that_was_never_read_keeps_its_grants_and_its_copy() {
    let mut world = warmed();
    let (key, uid) = (job_key("a"), uid_of(&world, "a"));
    // An older controller starts, and cannot read it.
    world.kernel = crate::support::world::kernel();
    world.store.forget_events();
    unreadable(&mut world, Kind::ImagePullJob, &key, &uid);
    for input in world.store.all() {
        if !matches!(&input, Input::Seen(object) if object.kind() == Kind::ImagePullJob) {
            world.kernel.observe(input, world.now);
        }
    }
    assert_eq!(world.pass(seconds(7200)), 0);
    assert_eq!((world.granted("a"), world.store.copies.len()), (vec!["n1".to_owned(), "n2".to_owned()], 1));
    // And then it is gone.
    world.store.delete_job(&key, world.now);
    world
        .kernel
        .observe(Input::Gone { kind: Kind::ImagePullJob, key, uid: Some(Uid::from(&*uid)) }, world.now);
    world.pass(seconds(10));
    assert!(world.store.images.values().all(|image| image.spec.images.is_empty()));
    assert!(world.store.copies.is_empty());
}

#[test]
fn a_node_image_that_cannot_be_read_is_neither_written_nor_made_again() {
    let mut world = warmed();
    let uid = world.store.images["n1"].metadata.uid.clone().unwrap();
    let key = ObjectKey { namespace: String::new(), name: "n1".to_owned() };
    unreadable(&mut world, Kind::NodeImage, &key, &uid);
    world.create(job("b", &json!({"image": "redis:7", "parallelism": 100})));
    world.pass(seconds(5));
    assert_eq!(world.granted("b"), ["n2"]);
}

#[test]
fn what_can_be_read_again_goes_on() {
    let mut world = warmed();
    let uid = uid_of(&world, "a");
    unreadable(&mut world, Kind::ImagePullJob, &job_key("a"), &uid);
    world.store.put_node(node("n3"));
    world.pass(seconds(60));
    assert_eq!(world.granted("a").len(), 2, "nothing new is asked for it");
    edit(&mut world, "a", &json!({"parallelism": 9}));
    world.pass(seconds(60));
    assert_eq!((world.granted("a").len(), world.kernel.trouble().unreadable.counts()), (3, [].into()));
}
