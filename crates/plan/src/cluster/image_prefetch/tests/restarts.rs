//! A controller that begins anew at any moment goes on as if nothing had happened.

use super::*;
use crate::support::world::written_node;

/// Everything that is in the cluster, apart from versions.
fn shown(world: &World) -> (Vec<String>, Vec<Value>, [i32; 4]) {
    let sets = world.store.sets.values().map(|set| format!("{:?}", set.spec));
    let images = world.store.images.values().map(|object| json!(object.spec));
    (sets.collect(), images.collect(), world.prefetch_counts("a"))
}

#[test]
fn a_restart_between_any_two_waves_changes_nothing() {
    let mut kept = many(9, &json!({"replicas": 7}));
    let mut restarted = many(9, &json!({"replicas": 7}));
    for fields in [json!({}), json!({"images": ["nginx:2"]}), json!({"replicas": 8})] {
        edit(&mut kept, &fields);
        edit(&mut restarted, &fields);
        for _ in 0..6 {
            restarted.restart();
            restarted.pass(SECOND);
            kept.pass(SECOND);
            assert_eq!(shown(&kept), shown(&restarted));
            pull(&mut kept);
            pull(&mut restarted);
        }
    }
    assert_eq!(kept.prefetch_counts("a"), [8, 8, 0, 0]);
    restarted.restart();
    assert_eq!(restarted.settle(), 0, "a settled object causes no write");
}

/// After each single write, arrived or not, the process dies.
#[test]
fn a_crash_after_any_write_leads_to_the_same_end() {
    for crash in 0..24 {
        for fate in [Fate::Unanswered, Fate::Lost] {
            let mut world = World::of(&["n1", "n2", "n3", "n4"]);
            world.store.create_prefetch(prefetch("a", &json!({"replicas": 3})));
            let mut count = 0;
            let mut most = 0;
            for _ in 0..20 {
                while let commands @ [_, ..] = &*world.cycle() {
                    let mut crashed = false;
                    for command in commands.iter().cloned() {
                        if crashed {
                            break;
                        }
                        crashed = count == crash;
                        count += 1;
                        world.carry_out(command, if crashed { fate } else { Fate::Fine });
                    }
                    if crashed {
                        world.restart();
                    }
                    most = most.max(asked(&world).len());
                }
                world.pull_all();
                world.now += SECOND;
            }
            world.pass(seconds(30));
            assert_eq!(world.prefetch_counts("a"), [3, 3, 0, 0], "after write {crash}");
            assert_eq!((world.sets("a").len(), world.nodes_with("a", Registry).len()), (3, 1));
            assert!(most <= 1, "{most} nodes asked the registry at once after write {crash}");
        }
    }
}

/// Three nodes have the image and two are wanted. The process dies after this write, when whoever was asked anew has begun.
fn fewer(crash: usize) -> World {
    let mut world = many(3, &json!({"replicas": 3}));
    world.finish_prefetch("a");
    world.store.edit_prefetch("a", &json!({"replicas": 2}));
    let mut count = 0;
    for _ in 0..10 {
        for command in world.cycle() {
            if count <= crash {
                world.carry_out(command, if count == crash { Fate::Unanswered } else { Fate::Fine });
            }
            count += 1;
        }
        if count > crash {
            break;
        }
        world.now += SECOND;
    }
    for name in asked(&world) {
        world.report(&name, IMAGE, PullPhase::Pulling);
    }
    world.restart();
    world.pass(SECOND);
    world.finish_prefetch("a");
    world
}

#[test]
fn a_crash_while_nodes_become_fewer_leaves_the_same_ones() {
    let end = |world: &World| (world.selected("a"), world.nodes_with("a", Registry));
    let clean = fewer(usize::MAX);
    for crash in 0..8 {
        assert_eq!(end(&fewer(crash)), end(&clean), "after write {crash}");
    }
}

/// The nodes that are asking the registry and are not done.
fn asked(world: &World) -> Vec<String> {
    let is_asking = |name: &&String| {
        let is_default = world.origin(name, IMAGE).is_some_and(|(policy, _)| policy == Registry);
        let status =
            world.store.images[*name].status.as_ref().and_then(|status| status.image_statuses.as_ref());
        let tags =
            status.and_then(|images| images.get("nginx")).map(|image| image.tags.clone()).unwrap_or_default();
        let version = world.tag(name, IMAGE).map(|tag| tag.version);
        let is_done =
            tags.iter().any(|tag| Some(tag.version) == version && tag.phase == PullPhase::Succeeded);
        is_default && !is_done
    };
    world.store.images.keys().filter(is_asking).cloned().collect()
}

/// Sets say which roles nodes have, so nothing is decided before they are known.
#[test]
fn nothing_is_decided_before_the_sets_are_known() {
    let mut world = many(4, &json!({}));
    pull(&mut world);
    let mut kernel = Kernel::default();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::NodeImageSet) {
        let namespace = matches!(kind, Kind::Pod | Kind::Job).then(|| "default".to_owned());
        kernel.observe(crate::cluster::Input::Listed { kind, namespace, names: [].into() }, world.now);
    }
    for input in world.store.all() {
        kernel.observe(input, world.now);
    }
    let commands = kernel.cycle(world.now);
    let granted = commands.iter().filter(|command| written_node(command).is_some()).count();
    let statuses = commands.iter().filter(|command| {
        matches!(command, Command::Write(Write { ticket, verb: Verb::PatchStatus(_) }) if ticket.kind == Kind::ImagePrefetch)
    });
    assert_eq!((granted, statuses.count()), (0, 0), "{commands:?}");
}
