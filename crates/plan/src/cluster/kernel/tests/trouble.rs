//! Writes that fail, are refused, collide, or whose answer is lost or late (kruise W5, design 4).

use std::collections::BTreeMap;

use super::*;
use crate::cluster::command::{Outcome, Target, Ticket};

/// Whether a command writes the NodeImage of a node.
fn is_about(command: &Command, name: &str) -> bool {
    written_node(command) == Some(name)
}

fn of_image(name: &str, image: &str) -> ImagePullJob {
    job(name, &json!({"image": image, "parallelism": 100, "completionPolicy": {"type": "Never"}}))
}

/// kruise W5
#[test]
fn a_node_that_cannot_be_written_holds_up_nobody() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.create(job("a", &json!({})));
    let trouble = |command: &Command| if is_about(command, "n1") { Fate::Lost } else { Fate::Fine };
    world.pass_with(SECOND, trouble);
    assert_eq!(world.granted("a"), ["n2"]);
    world.report("n2", "nginx:1", PullPhase::Succeeded);
    world.pass_with(SECOND, trouble);
    assert_eq!(world.granted("a"), ["n2", "n3"]);
    world.report("n3", "nginx:1", PullPhase::Succeeded);
    world.pass_with(seconds(60), trouble);
    assert_eq!(world.counts("a"), [3, 1, 2, 0]);
    world.pass(seconds(60));
    assert_eq!(world.granted("a"), ["n1", "n2", "n3"]);
}

#[test]
fn a_node_that_cannot_be_written_is_tried_less_and_less_often() {
    let mut world = World::of(&["n1"]);
    world
        .create(broad("a"))
        .settle_with(|command| if is_about(command, "n1") { Fate::Lost } else { Fate::Fine });
    let before = world.log.len();
    world.pass_with(seconds(3600), |command| if is_about(command, "n1") { Fate::Lost } else { Fate::Fine });
    let tries = world.log[before..].iter().filter(|(_, command)| is_about(command, "n1")).count();
    assert!((10..30).contains(&tries), "{tries}");
}

#[test]
fn a_grant_whose_answer_was_lost_is_one_grant() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({})));
    world.pass_with(seconds(5), |_| Fate::Unanswered);
    world.pass(seconds(5));
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.version, world.granted("a")), (0, vec!["n1".to_owned()]));
    assert_eq!(world.counts("a"), [2, 1, 0, 0]);
}

/// design 4
#[test]
fn a_write_that_meets_another_one_is_decided_again() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a"));
    let commands = world.cycle();
    let mut object = world.store.images["n1"].clone();
    object.spec = node_image("n1", &[entry("redis:7")]).spec;
    world.store.put_image(object);
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    world.settle();
    let names: Vec<&String> = world.store.images["n1"].spec.images.keys().collect();
    assert_eq!(names, ["nginx", "redis"]);
}

/// kruise W41, design 4
#[test]
fn a_report_in_between_does_not_disturb_a_write() {
    let mut world = World::of(&["n1"]);
    world.create(of_image("a", "nginx:1")).settle();
    world.create(of_image("b", "redis:7"));
    let commands = world.cycle();
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    assert!(world.tag("n1", "redis:7").is_some());
}

/// design 4
#[test]
fn one_refused_entry_holds_up_no_other() {
    let mut world = World::of(&["n1"]);
    world.store.most_images = 3;
    for image in ["a", "b", "c", "d", "e"] {
        world.create(of_image(image, &format!("{image}:1")));
    }
    world.pass(SECOND);
    let written: Vec<&String> = world.store.images["n1"].spec.images.keys().collect();
    assert_eq!(written.len(), 3);
    let failed: Vec<i32> = ["a", "b", "c", "d", "e"].map(|name| world.counts(name)[3]).to_vec();
    assert_eq!(failed.iter().sum::<i32>(), 2, "{failed:?}");
    let told: Vec<&str> = world.events.iter().map(|event| event.notice.note.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("must have at most 3 items"), "{told:?}");
    assert_eq!(world.pass(seconds(600 - 2)), 0, "what is refused is not tried again and again");
}

#[test]
fn a_refused_entry_is_tried_again_when_there_is_room() {
    let mut world = World::of(&["n1"]);
    world.store.most_images = 1;
    world.create(of_image("a", "a:1")).create(of_image("b", "b:1"));
    world.pass(SECOND);
    let loser = if world.counts("a")[3] == 1 { "a" } else { "b" };
    let winner = if loser == "a" { "b" } else { "a" };
    world.store.delete_job(&job_key(winner), world.now);
    world.pass(SECOND);
    assert_eq!((world.granted(loser), world.counts(loser)), (vec!["n1".to_owned()], [1, 1, 0, 0]));
}

#[test]
fn a_refusal_blames_what_the_write_carried() {
    let mut world = World::of(&["n1"]);
    world.create(of_image("b", "b:1"));
    assert_eq!(patched_nodes(&world.cycle()), ["n1"]);
    world.create(of_image("a", "a:1"));
    world.store.jobs.remove(&job_key("b"));
    let gone = Input::Gone { kind: Kind::ImagePullJob, key: job_key("b"), uid: None };
    world.kernel.observe(gone, world.now);
    drop(world.cycle());
    refuse(&mut world, "n1");
    world.settle();
    assert_eq!(world.granted("a"), ["n1"]);
    assert!(world.events.iter().all(|event| event.notice.note.contains("b:1")), "{:?}", world.events);
}

#[test]
fn a_refused_secret_is_not_attached_again_and_again() {
    let mut world = World::of(&["n1"]);
    let private = json!({"pullSecrets": ["regcred"], "completionPolicy": {"type": "Never"}});
    world.create(job("a", &private)).settle();
    let source = crate::object::SourceKey { namespace: "team".to_owned(), name: "regcred".to_owned() };
    world.store.sources.insert(source, 1);
    world.now = at(6);
    let mut refusals = 0;
    for _ in 0..20 {
        for command in world.cycle() {
            if is_about(&command, "n1") {
                refusals += 1;
                refuse(&mut world, "n1");
            } else {
                world.carry_out(command, Fate::Fine);
            }
        }
    }
    assert_eq!(refusals, 1);
}

/// A person deletes the NodeImage of a living node while a write to it is on its way.
#[test]
fn a_late_answer_does_not_bring_back_a_node_image_that_is_gone() {
    let mut world = World::of(&["n1"]);
    world.create(never("a"));
    let replies: Vec<_> = world.cycle().into_iter().map(|command| world.begin(command, Fate::Fine)).collect();
    world.store.delete_image("n1");
    world.observe();
    for reply in replies {
        world.kernel.observe(reply, world.now);
    }
    world.settle();
    assert_eq!(world.granted("a"), ["n1"], "it is made again, and granted again");
}

#[test]
fn a_late_answer_does_not_hide_a_node_image_that_was_made_again() {
    let mut world = World::of(&["n1"]);
    world.create(never("a"));
    let commands = world.cycle();
    world.store.delete_image("n1");
    let replies: Vec<_> = commands.into_iter().map(|command| world.begin(command, Fate::Fine)).collect();
    world.store.put_image(node_image("n1", &[]));
    world.observe();
    for reply in replies {
        world.kernel.observe(reply, world.now);
    }
    world.settle();
    assert_eq!(world.granted("a"), ["n1"]);
}

/// The answer to a write tells of a deletion before the watch has told what came before it.
#[test]
fn a_late_word_of_the_watch_does_not_bring_back_a_job_that_is_gone() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    let old = world.store.jobs[&job_key("a")].clone();
    edit(&mut world, "a", &json!({"parallelism": 7}));
    world.observe();
    world.now = at(2);
    world.store.jobs.clear();
    for command in world.decide() {
        world.carry_out(command, Fate::Fine);
    }
    world.settle();
    assert!(world.tag("n1", "nginx:1").is_none());
    let late = ImagePullJob { status: None, ..old };
    world.kernel.observe(Input::seen(late), world.now);
    assert_eq!(world.settle(), 0);
}

#[test]
fn a_status_that_cannot_be_written_is_written_later() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a"));
    world.pass_with(seconds(5), |command| if is_job_status(command) { Fate::Lost } else { Fate::Fine });
    assert_eq!(world.counts("a"), [0, 0, 0, 0]);
    world.pass(seconds(10));
    assert_eq!(world.counts("a"), [1, 1, 0, 0]);
}

/// kruise R46: a job that ends soon must not seem to have begun later than its nodes.
#[test]
fn a_status_that_could_not_be_written_does_not_wait_for_its_second() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a"));
    world.settle_with(|command| if is_job_status(command) { Fate::Lost } else { Fate::Fine });
    world.pass(Duration::from_millis(200));
    assert_eq!(world.status("a").start_time.unwrap().0, at(0));
}

/// kruise W16, R78
#[test]
fn nothing_waits_for_a_watch() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({})));
    world.observe();
    for _ in 0..4 {
        for command in world.decide() {
            world.carry_out(command, Fate::Fine);
        }
    }
    world.store.forget_events();
    assert_eq!(world.counts("a"), [2, 1, 0, 0]);
}

/// An echo of an older state comes after the answer to a write.
#[test]
fn a_late_echo_changes_nothing() {
    let mut world = World::of(&["n1"]);
    let old = world.store.images["n1"].clone();
    world.create(never("a")).settle();
    world.pass(SECOND);
    world.kernel.observe(Input::seen(old), world.now);
    assert_eq!(world.settle(), 0);
    let passes = world.kernel.passes;
    let jobs: BTreeMap<_, _> = world.store.jobs.clone();
    for job in jobs.into_values() {
        let mut old = job.clone();
        old.metadata.resource_version = Some("1".to_owned());
        old.status = None;
        world.kernel.observe(Input::seen(old), world.now);
    }
    assert_eq!(world.settle(), 0);
    assert_eq!(world.kernel.passes, passes);
}

/// The API server refuses what is being written to a node.
fn refuse(world: &mut World, node: &str) {
    let key = ObjectKey { namespace: String::new(), name: node.to_owned() };
    let ticket = Ticket { asker: Target::Node(node.into()), kind: Kind::NodeImage, key, uid: None };
    let outcome = Outcome::Refused("no".to_owned());
    world.kernel.observe(Input::Settled { ticket, outcome, jitter: 0.0 }, world.now);
}

#[test]
fn grants_that_were_never_written_are_never_more_than_the_job_allows() {
    let mut world = World::of(&["n1", "n2"]);
    let trouble = |command: &Command| if written_node(command).is_some() { Fate::Lost } else { Fate::Fine };
    world.create(job("a", &json!({})));
    for _ in 0..60 {
        world.pass_with(seconds(10), trouble);
        assert!(world.counts("a")[1] <= 1, "{:?}", world.counts("a"));
    }
    world.pass(seconds(300));
    assert!(!world.granted("a").is_empty());
}

#[test]
fn a_server_that_refuses_for_a_minute_is_told_once_for_all_nodes() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.create(broad("a"));
    let trouble = |command: &Command| if written_node(command).is_some() { Fate::Lost } else { Fate::Fine };
    world.pass_with(seconds(50), trouble);
    let complaints = |world: &World| {
        let events = world.events.iter().filter(|event| event.notice.reason == "WriteFailed");
        events.map(|event| event.notice.note.clone()).collect::<Vec<_>>()
    };
    assert_eq!(complaints(&world), [""; 0]);
    world.pass_with(seconds(400), trouble);
    let told = complaints(&world);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("nobody answers"), "{told:?}");
}
