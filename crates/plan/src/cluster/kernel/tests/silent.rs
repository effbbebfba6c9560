//! Nodes that do not answer, as jobs and people see them (kruise R16–R18, design 3).

use super::*;

/// kruise R16, R18
#[test]
fn a_silent_node_fails_after_ten_minutes_and_people_are_told() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.pass(seconds(599));
    assert_eq!(world.counts("a"), [1, 1, 0, 0]);
    world.pass(seconds(2));
    assert_eq!(world.counts("a"), [1, 0, 0, 1]);
    let told: Vec<(Option<&str>, &str)> =
        world.events.iter().map(|event| (event.about.kind.as_deref(), event.notice.note.as_str())).collect();
    let note = "nginx:1 on node n1: node has not responded for a long time";
    assert_eq!(told, [(Some("ImagePullJob"), note), (Some("NodeImage"), note)]);
}

/// design 3
#[test]
fn the_result_of_a_node_that_answers_late_replaces_the_verdict() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.pass(seconds(601));
    assert_eq!(world.counts("a"), [1, 0, 0, 1]);
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(world.counts("a"), [1, 0, 1, 0]);
}

#[test]
fn nobody_is_told_of_a_verdict_that_came_too_late() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.pass(seconds(599));
    world.now = at(600);
    let commands = world.cycle();
    assert!(matches!(&commands[..], [Command::Write(Write { verb: Verb::Judge(_), .. })]), "{commands:?}");
    world.report("n1", "nginx:1", PullPhase::Pulling);
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    world.settle();
    assert!(world.events.is_empty());
    assert_eq!(world.counts("a"), [1, 1, 0, 0]);
}

/// kruise R17
#[test]
fn a_verdict_is_no_sign_of_life() {
    let mut world = World::of(&["n1"]);
    let deadline = |name: &str, image: &str| {
        job(name, &json!({"image": image, "completionPolicy": {"activeDeadlineSeconds": 600}}))
    };
    world.create(deadline("a", "nginx:1")).settle();
    world.report("n1", "nginx:1", PullPhase::Waiting);
    world.pass(seconds(100));
    world.create(deadline("b", "nginx:2")).settle();
    world.report("n1", "nginx:2", PullPhase::Waiting);
    world.pass(seconds(600 + 600));
    assert_eq!((world.counts("a"), world.counts("b")), ([1, 0, 0, 1], [1, 0, 0, 1]));
    let reported = world.store.images["n1"].status.clone().unwrap();
    assert_eq!((reported.failed, reported.waiting), (2, 0));
}
