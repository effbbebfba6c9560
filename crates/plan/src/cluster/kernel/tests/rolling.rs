//! How many nodes pull at once, and in which order (kruise R42, R50, R51, R55; design 7).

use super::*;

/// kruise R50
#[test]
fn without_parallelism_one_node_pulls_at_a_time() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.create(job("a", &json!({}))).settle();
    assert_eq!(world.granted("a"), ["n1"]);
    world.report("n1", "nginx:1", PullPhase::Pulling);
    assert_eq!((world.pass(SECOND), world.granted("a")), (0, vec!["n1".to_owned()]));
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(world.granted("a"), ["n1", "n2"]);
}

/// kruise R50
#[test]
fn parallelism_is_a_number_or_a_text_with_one() {
    for parallelism in [json!(2), json!("2")] {
        let mut world = World::of(&["n1", "n2", "n3"]);
        world.create(job("a", &json!({"parallelism": parallelism}))).settle();
        assert_eq!(world.granted("a"), ["n1", "n2"]);
    }
}

/// kruise R50
#[test]
fn zero_pauses_and_raising_resumes() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({"parallelism": 0}))).settle();
    assert!(world.granted("a").is_empty());
    assert_eq!(condition(&world, "a", "Progressing"), Some((false, "Paused".to_owned())));
    edit(&mut world, "a", &json!({"parallelism": 1}));
    world.pass(SECOND);
    assert_eq!(world.granted("a"), ["n1"]);
    edit(&mut world, "a", &json!({"parallelism": 0}));
    world.report_all("n1", PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n1".to_owned()], [2, 0, 1, 0]));
}

/// kruise R50
#[test]
fn lowering_parallelism_cancels_nothing() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.create(job("a", &json!({"parallelism": 2}))).settle();
    edit(&mut world, "a", &json!({"parallelism": 1}));
    world.settle();
    assert_eq!(world.granted("a"), ["n1", "n2"]);
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(world.granted("a"), ["n1", "n2"]);
    world.report("n2", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(world.granted("a"), ["n1", "n2", "n3"]);
}

#[test]
fn a_paused_job_does_not_send_what_could_not_be_sent_before() {
    let mut world = World::of(&["n1"]);
    world.create(job("a", &json!({})));
    for command in world.cycle() {
        world.carry_out(command, Fate::Lost);
    }
    edit(&mut world, "a", &json!({"parallelism": 0}));
    world.pass(seconds(60));
    assert!(world.granted("a").is_empty());
}

/// design 7, kruise W6
#[test]
fn a_node_that_does_not_answer_gives_its_place_up_and_keeps_its_grant() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({}))).settle();
    world.pass(seconds(30));
    assert_eq!(world.granted("a"), ["n1"]);
    world.pass(seconds(1));
    assert_eq!(world.granted("a"), ["n1", "n2"]);
    assert_eq!(world.tag("n1", "nginx:1").unwrap().created_at.unwrap().0, at(0));
    assert_eq!(world.counts("a"), [2, 2, 0, 0]);
}

/// design 7
#[test]
fn a_node_that_has_answered_keeps_its_place_however_long_it_takes() {
    for phase in [PullPhase::Waiting, PullPhase::Pulling] {
        let mut world = World::of(&["n1", "n2"]);
        world.create(job("a", &json!({}))).settle();
        world.report("n1", "nginx:1", phase);
        world.pass(seconds(500));
        assert_eq!(world.granted("a"), ["n1"]);
    }
}

/// A write may arrive later than its node could answer.
#[test]
fn a_write_on_its_way_holds_a_place_however_long_it_takes() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({})));
    let commands = world.cycle();
    assert_eq!(patched_nodes(&commands), ["n1"]);
    world.now = at(100);
    assert!(patched_nodes(&world.cycle()).is_empty());
}

/// The node's answer is heard before the answer to the write that told it.
#[test]
fn a_node_that_has_answered_keeps_its_place_when_the_write_is_answered_later() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({})));
    let replies: Vec<_> = world.cycle().into_iter().map(|command| world.begin(command, Fate::Fine)).collect();
    world.report("n1", "nginx:1", PullPhase::Waiting);
    world.observe();
    world.now = at(31);
    for reply in replies {
        world.kernel.observe(reply, world.now);
    }
    assert!(patched_nodes(&world.cycle()).is_empty());
}

/// kruise W6
#[test]
fn ready_nodes_come_first() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.store.put_node(unready(node("n1")));
    world.create(job("a", &json!({"parallelism": 2}))).settle();
    assert_eq!(world.granted("a"), ["n2", "n3"]);
}

#[test]
fn nodes_are_spread_over_zones() {
    let mut world = World::default();
    for (name, zone) in [("n1", "x"), ("n2", "x"), ("n3", "x"), ("n4", "y")] {
        world.store.put_node(labelled(name, &[("topology.kubernetes.io/zone", zone)]));
    }
    world.settle();
    world.create(job("a", &json!({"parallelism": 2}))).settle();
    assert_eq!(world.granted("a"), ["n1", "n4"]);
}

/// kruise R42
#[test]
fn a_node_that_joins_is_warmed_too() {
    let mut world = World::of(&["n1"]);
    world.create(job("a", &json!({"parallelism": 2}))).settle();
    world.store.put_node(node("n2"));
    world.pass(SECOND);
    assert_eq!(
        (world.granted("a"), world.counts("a")),
        (vec!["n1".to_owned(), "n2".to_owned()], [2, 2, 0, 0])
    );
}

/// kruise R55
#[test]
fn another_image_is_another_tag_and_the_old_one_keeps_its_owner() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.pull_all();
    world.settle();
    edit(&mut world, "a", &json!({"image": "nginx:2"}));
    world.pass(SECOND);
    assert_eq!(world.counts("a"), [1, 1, 0, 0]);
    for image in ["nginx:1", "nginx:2"] {
        assert_eq!(world.tag("n1", image).unwrap().owner_references.unwrap().len(), 1);
    }
}

/// kruise R55
#[test]
fn editing_how_to_pull_reaches_the_nodes_that_are_not_told_yet() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({}))).settle();
    edit(&mut world, "a", &json!({"pullPolicy": {"timeoutSeconds": 7}}));
    world.settle();
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    let timeout = |node: &str| world.tag(node, "nginx:1").unwrap().pull_policy.timeout_seconds;
    assert_eq!([timeout("n1"), timeout("n2")], [600, 7]);
}

/// kruise R56
#[test]
fn a_never_job_asks_again_once_a_day() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.pull_all();
    assert_eq!(world.counts("a")[0], 1);
    let writes = world.pass(seconds(86_400 - 601));
    assert!(writes <= 2, "{writes}");
    assert_eq!(world.tag("n1", "nginx:1").unwrap().version, 0);
    world.pass(seconds(1202));
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.version, world.counts("a")), (1, [1, 1, 0, 0]));
}

/// kruise W1, design 8
#[test]
fn a_slow_job_does_not_lose_its_early_results() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({"completionPolicy": {"ttlSecondsAfterFinished": 10}}))).settle();
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    world.report("n2", "nginx:1", PullPhase::Pulling);
    world.pass(seconds(100_000));
    assert_eq!(world.counts("a"), [2, 1, 1, 0]);
    world.report("n2", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(world.counts("a"), [2, 0, 2, 0]);
    world.pass(SECOND);
    assert!(world.tag("n1", "nginx:1").is_none(), "the end of the job wakes the node");
}
