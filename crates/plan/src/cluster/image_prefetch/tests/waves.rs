//! Who begins, and who asks the registry (ofen R6, R7, W1–W4).

use std::collections::BTreeSet;

use super::*;
use crate::cluster::image_prefetch::wave::Limits;

fn limited(nodes: usize, limits: Limits) -> World {
    let mut world = World::default();
    world.kernel = crate::support::world::with(Settings { waves: limits, ..Settings::default() });
    for number in 0..nodes {
        world.store.put_node(node(&format!("n{number:03}")));
    }
    world.settle();
    begin(world, &json!({}))
}

/// ofen R6, R7, C14
#[test]
fn one_node_asks_the_registry_and_the_others_ask_mirrors_once_it_is_done() {
    let mut world = many(4, &json!({}));
    let first = seed(&world);
    assert_eq!(world.sets("a").len(), 1);
    assert_eq!(world.prefetch_counts("a"), [4, 0, 1, 0]);
    assert_eq!(world.origin(&first, IMAGE), Some((Registry, None)));
    pull(&mut world);
    assert_eq!((world.nodes_with("a", Registry).len(), world.nodes_with("a", MirrorOnly).len()), (1, 1));
    assert_eq!(world.prefetch_counts("a"), [4, 1, 1, 0]);
    pull(&mut world);
    assert_eq!(world.nodes_with("a", MirrorOnly).len(), 3);
    for name in world.nodes_with("a", MirrorOnly) {
        assert_eq!(world.origin(&name, IMAGE), Some((MirrorOnly, None)));
    }
    pull(&mut world);
    assert_eq!(world.prefetch_counts("a"), [4, 4, 0, 0]);
    assert_eq!(world.settle(), 0);
}

/// ofen W1, W4: nobody is rewritten when it is done.
#[test]
fn five_hundred_nodes_take_ten_waves_and_few_writes_each() {
    let mut world = many(500, &json!({}));
    let waves = world.finish_prefetch("a");
    assert!(waves <= 10, "{waves} waves");
    let writes = |kind: Kind| {
        let is_of = |(_, command): &&(_, Command)| matches!(command, Command::Write(Write { ticket, .. }) if ticket.kind == kind);
        world.log.iter().filter(is_of).count()
    };
    // A NodeImage is made, and granted. A set is made, says that it is on its way, and that it is done.
    assert_eq!((writes(Kind::NodeImage), writes(Kind::NodeImageSet)), (2 * 500, 3 * 500));
    assert!(writes(Kind::ImagePrefetch) < 40, "{}", writes(Kind::ImagePrefetch));
}

/// ofen W4: objects begin at different nodes.
#[test]
fn the_registry_is_not_always_asked_by_the_same_node() {
    let mut world = many(20, &json!({}));
    for name in ["b", "c", "d", "e", "f", "g"] {
        world.store.create_prefetch(prefetch(name, &json!({"images": [format!("tool:{name}")]})));
    }
    world.pass(SECOND);
    let of = |name: &str| world.nodes_with(name, Registry);
    let seeds: BTreeSet<String> = ["a", "b", "c", "d", "e", "f", "g"].into_iter().flat_map(of).collect();
    assert!(seeds.len() > 3, "{seeds:?}");
}

/// ofen W3, C15, and the usual change of a tag.
#[test]
fn a_change_of_a_tag_comes_in_waves_like_any_other() {
    let mut world = many(8, &json!({}));
    world.finish_prefetch("a");
    edit(&mut world, &json!({"images": ["nginx:2"]}));
    assert_eq!(world.nodes_with("a", Registry).len(), 1, "one set is changed and the others wait");
    assert_eq!(world.prefetch_counts("a"), [8, 0, 1, 0]);
    assert_eq!(condition(&world, "NodeImageSetsCreated"), is("True", "NodeImageSetsCreated"));
    let told = |world: &World| {
        (0..8).filter(|number| world.tag(&format!("n00{number}"), "nginx:2").is_some()).count()
    };
    assert_eq!(told(&world), 1);
    pull(&mut world);
    assert_eq!(told(&world), 2);
    let waves = world.finish_prefetch("a");
    assert!(waves <= 3, "{waves}");
    assert!(
        (0..8).all(|number| world.tag(&format!("n00{number}"), IMAGE).is_none()),
        "the old image is not wanted"
    );
}

/// ofen W3: nothing is asked of mirrors again that is there.
#[test]
fn an_image_that_is_added_leaves_the_others_alone() {
    let mut world = many(4, &json!({}));
    world.finish_prefetch("a");
    let versions = |world: &World| -> Vec<i64> {
        (0..4).map(|number| world.tag(&format!("n00{number}"), IMAGE).unwrap().version).collect()
    };
    let before = versions(&world);
    edit(&mut world, &json!({"images": [IMAGE, "redis:7"]}));
    world.finish_prefetch("a");
    let after = versions(&world);
    let asked = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert_eq!(asked, 1, "the node that asks the registry asks for all images");
}

/// ofen W2, W4
#[test]
fn a_node_that_fails_to_ask_the_registry_is_followed_by_another_one() {
    let mut world = many(4, &json!({}));
    let first = seed(&world);
    world.struggle(&first, IMAGE, FailureClass::Unreachable, "the registry does not answer");
    world.pass(seconds(5));
    assert_eq!(world.nodes_with("a", Registry), std::slice::from_ref(&first), "it may be over in a moment");
    assert_eq!(world.prefetch_counts("a"), [4, 0, 1, 1]);
    world.pass(seconds(6));
    let seeds = world.nodes_with("a", Registry);
    assert_eq!(seeds.len(), 2, "{seeds:?}");
    let next = seeds.iter().find(|name| **name != first).unwrap().clone();
    world.report(&next, IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(world.nodes_with("a", Registry), [next], "whoever failed asks mirrors");
    assert_eq!(world.origin(&first, IMAGE), Some((MirrorOnly, None)));
    world.finish_prefetch("a");
    assert_eq!(world.nodes_with("a", Registry).len(), 1);
    assert_eq!(condition(&world, "NoImagePullFailed"), is("True", "NoImagePullFailed"));
}

/// ofen W2: a node whose agent does not answer, and one that is not ready any more.
#[test]
fn a_node_that_does_not_answer_is_followed_by_another_one() {
    let mut world = many(4, &json!({}));
    world.pass(seconds(25));
    assert_eq!(world.nodes_with("a", Registry).len(), 1);
    world.pass(seconds(20));
    assert_eq!(world.nodes_with("a", Registry).len(), 2);
    let mut world = many(4, &json!({}));
    let first = seed(&world);
    world.report(&first, IMAGE, PullPhase::Pulling);
    world.store.put_node(unready(node(&first)));
    world.pass(seconds(12));
    assert_eq!(world.nodes_with("a", Registry).len(), 2);
}

/// A registry that fails everybody is not asked by all nodes at once.
#[test]
fn a_registry_that_is_down_is_asked_by_ever_fewer_further_nodes() {
    let mut world = many(50, &json!({}));
    for _ in 0..60 {
        for name in world.nodes_with("a", Registry) {
            world.struggle(&name, IMAGE, FailureClass::Unreachable, "the registry does not answer");
        }
        world.pass(seconds(10));
    }
    let seeds = world.nodes_with("a", Registry).len();
    assert!((5..=8).contains(&seeds), "{seeds} nodes in ten minutes");
}

#[test]
fn a_mirror_that_has_nothing_yet_holds_no_place_and_is_no_failure() {
    let mut world = many(6, &json!({}));
    pull(&mut world);
    let waits = world.nodes_with("a", MirrorOnly).remove(0);
    world.struggle(&waits, IMAGE, FailureClass::NotFound, "no mirror has it");
    world.pass(seconds(2));
    assert_eq!(world.nodes_with("a", MirrorOnly).len(), 1, "its mirror may only be late");
    world.pass(seconds(5));
    assert_eq!(world.states("a", &waits), ["ImageDownloadTemporarilyFailed"]);
    assert_eq!(world.prefetch_counts("a"), [6, 1, 2, 0], "another one has begun");
    assert_eq!(world.nodes_with("a", MirrorOnly).len(), 2);
}

#[test]
fn as_many_nodes_ask_the_registry_as_the_limit_allows_and_begin_as_the_other_one_says() {
    let mut world = limited(9, Limits { seeds: 3, first: 2 });
    assert_eq!(world.nodes_with("a", Registry).len(), 2);
    pull(&mut world);
    assert_eq!((world.nodes_with("a", Registry).len(), world.nodes_with("a", MirrorOnly).len()), (3, 1));
    world.finish_prefetch("a");
    assert_eq!((world.nodes_with("a", Registry).len(), world.nodes_with("a", MirrorOnly).len()), (3, 6));
    let world = limited(9, Limits { seeds: 1, first: 4 });
    assert_eq!(world.sets("a").len(), 1, "nobody asks mirrors before somebody has the images");
}

#[test]
fn what_the_registry_said_first_is_what_all_others_get() {
    let mut world = limited(4, Limits { seeds: 2, first: 1 });
    let digest = |text: &str| format!("sha256:{}", text.repeat(64));
    let first = seed(&world);
    world.report_as(&first, IMAGE, PullPhase::Succeeded, |status| status.digest = Some(digest("a")));
    world.pass(SECOND);
    let later = world.nodes_with("a", Registry).into_iter().find(|name| *name != first).unwrap();
    world.report_as(&later, IMAGE, PullPhase::Succeeded, |status| status.digest = Some(digest("b")));
    world.pass(SECOND);
    assert_eq!(condition(&world, "DigestsAgree"), is("False", "TagMoved"));
    let (_, _, message) = world.prefetch_condition("a", "DigestsAgree").unwrap();
    assert!(message.contains(&later), "{message}");
    for name in world.nodes_with("a", MirrorOnly) {
        assert_eq!(world.origin(&name, IMAGE), Some((MirrorOnly, Some(digest("a")))));
    }
    world.restart();
    world.pull_all();
    world.pass(SECOND);
    for name in world.nodes_with("a", MirrorOnly) {
        assert_eq!(world.origin(&name, IMAGE), Some((MirrorOnly, Some(digest("a")))), "also after a restart");
    }
    // The next generation asks anew, and whoever has something else gets what it said.
    edit(&mut world, &json!({"imagePullSecrets": null, "replicas": null, "nodeSelector": {}}));
    let seed = world.nodes_with("a", Registry).remove(0);
    world.report_as(&seed, IMAGE, PullPhase::Succeeded, |status| status.digest = Some(digest("b")));
    world.pass(SECOND);
    assert_eq!(world.prefetch_condition("a", "DigestsAgree"), None);
    world.finish_prefetch("a");
    for name in world.nodes_with("a", MirrorOnly) {
        assert_eq!(world.origin(&name, IMAGE), Some((MirrorOnly, Some(digest("b")))));
    }
}

/// ofen W2: a node that answered and does not begin, be it busy with other images or without an agent by now.
#[test]
fn a_node_that_does_not_begin_is_followed_by_another_one() {
    let mut world = many(4, &json!({}));
    let first = seed(&world);
    world.report(&first, IMAGE, PullPhase::Waiting);
    world.pass(seconds(50));
    assert_eq!(world.nodes_with("a", Registry).len(), 1);
    world.pass(seconds(25));
    assert_eq!(world.nodes_with("a", Registry).len(), 2);
    world.finish_prefetch("a");
}

/// ofen W2: a pull of which nothing more is heard.
#[test]
fn a_pull_that_stands_still_holds_up_nobody() {
    let mut world = many(4, &json!({}));
    let first = seed(&world);
    for _ in 0..11 {
        world.report(&first, IMAGE, PullPhase::Pulling);
        world.pass(seconds(60));
    }
    assert_eq!(world.nodes_with("a", Registry).len(), 1, "a large image takes its time");
    world.pass(seconds(120));
    assert_eq!(world.nodes_with("a", Registry).len(), 2);
}

/// A node has given up, for lack of room or after a thousand attempts: an ImagePrefetch has no end.
#[test]
fn a_node_that_gave_up_is_asked_again_after_a_while() {
    let mut world = many(1, &json!({}));
    world.report(&seed(&world), IMAGE, PullPhase::Failed);
    world.pass(seconds(5));
    let before = world.tag("n000", IMAGE).unwrap().version;
    world.pass(seconds(500));
    assert_eq!(world.tag("n000", IMAGE).unwrap().version, before);
    world.pass(seconds(150));
    assert_eq!(world.tag("n000", IMAGE).unwrap().version, before + 1);
    world.finish_prefetch("a");
}

/// ofen A15: nobody is left who could serve it.
#[test]
fn the_only_node_that_had_an_image_asks_the_registry_again() {
    let mut world = many(2, &json!({"replicas": 1}));
    world.finish_prefetch("a");
    let first = seed(&world);
    lose(&mut world, &first);
    assert_eq!(world.origin(&first, IMAGE), Some((Registry, None)));
    world.finish_prefetch("a");
}

/// The node that asked the registry is gone before any other one was served.
#[test]
fn when_nobody_is_left_who_has_an_image_a_node_that_asks_mirrors_asks_the_registry() {
    let mut world = many(2, &json!({}));
    let first = seed(&world);
    pull(&mut world);
    let other = world.nodes_with("a", MirrorOnly).remove(0);
    world.store.delete_node(&first);
    world.struggle(&other, IMAGE, FailureClass::NotFound, "no mirror has it");
    world.pass(seconds(15));
    assert_eq!(world.origin(&other, IMAGE), Some((Registry, None)));
    world.finish_prefetch("a");
}

fn lose(world: &mut World, name: &str) {
    let lost_at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now);
    world.report_as(name, IMAGE, PullPhase::Succeeded, |status| status.lost_at = Some(lost_at));
    world.pass(SECOND);
}

/// Another program deletes sets as fast as they are made.
#[test]
fn a_set_that_somebody_keeps_deleting_is_made_less_and_less_often() {
    let mut world = many(1, &json!({}));
    world.finish_prefetch("a");
    let made = world.log.len();
    for _ in 0..120 {
        let name = world.store.sets.keys().next().cloned();
        if let Some(name) = name {
            let now = world.now;
            world.store.delete_set(&name, now);
        }
        world.pass(SECOND);
    }
    let is_creation = |(_, command): &&(_, Command)| matches!(command, Command::Write(Write { ticket, verb: Verb::Create(_) }) if ticket.kind == Kind::NodeImageSet);
    let count = world.log[made..].iter().filter(is_creation).count();
    assert!((3..20).contains(&count), "{count} in two minutes");
}
