//! How ImagePrefetches and what they made end (ofen R9, R14, R15, W9, W10), and what others wrote.

use prewarm_api::ofen::NodeImageSet;

use super::*;
use crate::cluster::node_image_set::spec;

const FINALIZER: &str = "image-prefetch.ofen.cybozu.io/finalizer";
const SET_FINALIZER: &str = "nodeimageset.ofen.cybozu.io/finalizer";

fn delete(world: &mut World) {
    let now = world.now;
    world.store.delete_prefetch("a", now);
    world.pass(SECOND);
}

fn tags(world: &World) -> usize {
    world.store.images.values().filter(|object| !object.spec.images.is_empty()).count()
}

/// ofen R14, C5
#[test]
fn with_an_image_prefetch_go_its_sets_and_its_grants() {
    let mut world = many(4, &json!({"replicas": 4}));
    pull(&mut world);
    delete(&mut world);
    assert!(world.store.prefetches.is_empty());
    assert_eq!((world.store.sets.len(), tags(&world)), (0, 0));
    assert_eq!(world.settle(), 0);
}

/// ofen 1.6, R2, A2: what ofen's own controller and agents left is taken off, so that nothing waits for programs that are gone.
#[test]
fn finalizers_of_the_program_before_are_taken_off() {
    let mut world = World::of(&["n1"]);
    let mut object = prefetch("a", &json!({}));
    object.metadata.finalizers = Some(vec!["keep.example/me".to_owned(), FINALIZER.to_owned()]);
    world.store.create_prefetch(object);
    world.finish_prefetch("a");
    let name = spec::name("a", "team", "n1");
    world.store.edit_set(&name, |set| set.metadata.finalizers = Some(vec![SET_FINALIZER.to_owned()]));
    delete(&mut world);
    assert_eq!(world.store.sets.len(), 0);
    let left = world.store.prefetches[&job_key("a")].metadata.finalizers.clone().unwrap();
    assert_eq!(left, ["keep.example/me"], "those of others are theirs");
}

/// ofen R9, W10: a set of a node that is not ready does not hang.
#[test]
fn the_set_of_a_node_that_is_gone_does_not_wait_for_its_agent() {
    let mut world = world(&["n1", "n2"], &json!({}));
    world.finish_prefetch("a");
    let name = spec::name("a", "team", "n1");
    world.store.edit_set(&name, |set| set.metadata.finalizers = Some(vec![SET_FINALIZER.to_owned()]));
    world.store.delete_node("n1");
    world.pass(SECOND);
    assert!(!world.store.sets.contains_key(&name));
    assert_eq!(world.prefetch_counts("a"), [1, 1, 0, 0]);
}

/// ofen R8
#[test]
fn a_set_that_somebody_deletes_or_changes_is_made_as_it_was() {
    let mut world = world(&["n1", "n2"], &json!({}));
    world.finish_prefetch("a");
    let now = world.now;
    let name = spec::name("a", "team", "n1");
    let before = world.store.sets[&name].spec.clone();
    world.store.delete_set(&name, now);
    world.pass(SECOND);
    assert_eq!(world.store.sets[&name].spec, before);
    world.store.edit_set(&name, |set| {
        set.spec.images = vec!["evil:1".to_owned()];
        set.spec.image_pull_secrets =
            Some(vec![prewarm_api::ofen::LocalSecret { name: "theirs".to_owned() }]);
        set.metadata.labels.as_mut().unwrap().insert("mine".to_owned(), "kept".to_owned());
    });
    world.pass(seconds(5));
    assert_eq!(world.store.sets[&name].spec, before);
    assert_eq!(world.store.sets[&name].metadata.labels.as_ref().unwrap()["mine"], "kept");
    assert_eq!(world.tag("n1", "evil:1"), None);
    assert_eq!(condition(&world, "Ready"), is("True", "ImagePrefetchReady"));
}

/// A set that is turned to another node, or whose labels are taken, has a name that belongs to an ImagePrefetch all the same.
#[test]
fn a_set_that_says_it_is_of_nobody_is_taken_back_by_its_name() {
    let changes: [fn(&mut NodeImageSet); 2] =
        [|set| set.spec.node_name = "n2".to_owned(), |set| set.metadata.labels = None];
    for change in changes {
        let mut world = world(&["n1", "n2"], &json!({}));
        world.finish_prefetch("a");
        let name = spec::name("a", "team", "n1");
        let before = world.store.sets[&name].clone();
        world.store.edit_set(&name, change);
        world.pass(seconds(10));
        let after = &world.store.sets[&name];
        assert_eq!((&after.spec, &after.metadata.labels), (&before.spec, &before.metadata.labels));
        assert_eq!(condition(&world, "NodeImageSetsCreated"), is("True", "NodeImageSetsCreated"));
        assert_eq!(world.settle(), 0);
    }
}

/// ofen W9, 1.3: the field has no meaning there, and whoever wrote it may keep it.
#[test]
fn a_retry_limit_on_a_set_of_an_image_prefetch_is_left_alone() {
    let mut world = world(&["n1"], &json!({}));
    world.finish_prefetch("a");
    let name = spec::name("a", "team", "n1");
    world.store.edit_set(&name, |set| set.spec.image_download_retry_limit = Some(3));
    world.pass(seconds(60));
    assert_eq!(world.store.sets[&name].spec.image_download_retry_limit, Some(3));
}

/// A namesake that is made anew is another object: what the first one made is not its own.
#[test]
fn a_namesake_begins_anew() {
    let mut world = world(&["n1", "n2"], &json!({}));
    world.finish_prefetch("a");
    let now = world.now;
    world.store.delete_prefetch("a", now);
    let mut object = prefetch("a", &json!({}));
    object.metadata.uid = Some("another".to_owned());
    world.store.create_prefetch(object);
    world.pass(SECOND);
    assert_eq!(world.nodes_with("a", Registry).len(), 1);
    let first = seed(&world);
    let owners = world.tag(&first, IMAGE).unwrap().owner_references.unwrap();
    assert!(owners.iter().all(|owner| owner.uid.as_ref().unwrap().starts_with("another/")), "{owners:?}");
    world.finish_prefetch("a");
    assert_eq!(world.sets("a").len(), 2);
}

/// Two objects that want one image on one node share its entry, and each has its own part in it.
#[test]
fn two_image_prefetches_of_one_image_share_its_entries() {
    let mut world = world(&["n1", "n2"], &json!({}));
    world.store.create_prefetch(prefetch("b", &json!({})));
    world.finish_prefetch("a");
    world.finish_prefetch("b");
    assert_eq!(world.tag("n1", IMAGE).unwrap().owner_references.unwrap().len(), 2);
    delete(&mut world);
    assert_eq!(world.tag("n1", IMAGE).unwrap().owner_references.unwrap().len(), 1);
    assert_eq!((world.sets("a").len(), world.sets("b").len()), (0, 2));
    assert_eq!(world.prefetch_counts("b"), [2, 2, 0, 0]);
}
