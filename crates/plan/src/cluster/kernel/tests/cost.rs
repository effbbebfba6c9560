//! What turns cost: passes, looks at nodes, and writes (kruise W38, W40; design 4, 5).

use prewarm_api::names::DELETION_PROTECTION_FINALIZER;

use super::*;
use crate::support::build::{Entry, finished, with_status};
use crate::support::world::kernel;

/// The passes and looks that one report of one node costs, with so many nodes.
fn cost_of_a_report(nodes: usize) -> [u64; 3] {
    let mut kernel = kernel();
    let name = |number: usize| format!("n{number:05}");
    let (facts, idle) = (node("n"), node_image("n", &[entry("nginx:1").of(&["a"]).succeeded(at(0))]));
    for number in 0..nodes {
        let mut facts = facts.clone();
        facts.metadata.name = Some(name(number));
        kernel.observe(Input::seen(facts), at(0));
        let mut object = idle.clone();
        object.metadata.name = Some(name(number));
        kernel.observe(Input::seen(object), at(0));
    }
    let first = |entry: Entry, version: &str| {
        let mut object = node_image("n", &[entry]);
        object.metadata.name = Some(name(0));
        object.metadata.resource_version = Some(version.to_owned());
        object
    };
    kernel.observe(Input::seen(first(entry("nginx:1").of(&["a"]).pulling(at(0)), "2")), at(0));
    let mut object = with_status(broad("a"), json!({"desired": 0, "startTime": "2023-11-14T22:13:20Z"}));
    object.metadata.finalizers = Some(vec![DELETION_PROTECTION_FINALIZER.to_owned()]);
    kernel.observe(Input::seen(object), at(0));
    drop(kernel.cycle(at(1)));
    let before = (kernel.passes, kernel.visits(Kind::ImagePullJob, &job_key("a")).unwrap());
    kernel.observe(Input::seen(first(entry("nginx:1").of(&["a"]).failed(at(1)), "3")), at(2));
    drop(kernel.cycle(at(2)));
    let passes = kernel.passes;
    [
        passes.of(Subject::Job) - before.0.of(Subject::Job),
        passes.of(Subject::Node) - before.0.of(Subject::Node),
        kernel.visits(Kind::ImagePullJob, &job_key("a")).unwrap() - before.1,
    ]
}

/// kruise W38
#[test]
fn a_report_costs_the_same_with_a_hundred_nodes_and_with_ten_thousand() {
    assert_eq!(cost_of_a_report(100), [1, 1, 1]);
    assert_eq!(cost_of_a_report(10_000), [1, 1, 1]);
}

/// kruise W39, W40, design 4
#[test]
fn fifty_images_for_a_node_are_one_write() {
    let mut world = World::of(&["n1"]);
    for number in 0..50 {
        world.create(job(&format!("j{number}"), &json!({"image": format!("app-{number}:1")})));
    }
    world.settle();
    let writes = world.log.iter().filter(|(_, command)| written_node(command).is_some()).count();
    assert_eq!(writes, 2, "one makes it, one fills it");
}

/// The moments at which the status of a job was written.
fn statuses(world: &World) -> Vec<Timestamp> {
    world.log.iter().filter(|(_, command)| is_job_status(command)).map(|(at, _)| *at).collect()
}

#[test]
fn a_status_is_written_at_once_then_once_a_second_and_at_the_end_at_once() {
    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    let mut world = World::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    world.create(broad("a")).settle();
    for name in &names {
        world.pass(Duration::from_millis(250));
        world.report(name, "nginx:1", PullPhase::Succeeded);
        world.settle();
    }
    let millis: Vec<i128> =
        statuses(&world).iter().map(|moment| moment.duration_since(at(0)).as_millis()).collect();
    assert_eq!(millis, [0, 1000, 2000, 2500]);
    assert_eq!(world.counts("a"), [10, 0, 10, 0]);
}

#[test]
fn a_status_after_a_quiet_time_is_written_at_once() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(broad("a")).settle();
    world.pass(seconds(5));
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(statuses(&world), [at(0), at(5)]);
}

/// Two hundred nodes and jobs of every kind, at rest.
fn busy_world() -> World {
    let mut world = World::default();
    for number in 0..20 {
        world.store.put_node(labelled(
            &format!("n{number:02}"),
            &[("pool", if number % 2 == 0 { "x" } else { "y" })],
        ));
    }
    world.settle();
    world.create(never("never")).create(broad("always"));
    world.create(job(
        "pool",
        &json!({"image": "redis:7", "parallelism": 3, "selector": {"matchLabels": {"pool": "x"}}}),
    ));
    world.create(job("paused", &json!({"image": "redis:7", "parallelism": 0})));
    world.create(finished(job("over", &json!({}))));
    for _ in 0..20 {
        world.pass(SECOND);
        world.pull_all();
    }
    world.pass(SECOND);
    world
}

#[test]
fn idle_means_that_another_turn_does_nothing() {
    let mut world = busy_world();
    let passes = world.kernel.passes;
    assert_eq!(world.cycle(), []);
    assert_eq!(world.kernel.passes, passes);
    assert_eq!(world.pass(seconds(300)), 0);
}

#[test]
fn a_restart_of_an_idle_world_writes_nothing() {
    let mut world = busy_world();
    world.restart();
    assert_eq!(world.settle(), 0);
}

/// A kernel with so many nodes, each with an empty NodeImage.
fn with_nodes(count: usize) -> crate::cluster::Kernel {
    let mut kernel = kernel();
    for number in 0..count {
        let name = format!("n{number:05}");
        kernel.observe(Input::seen(node(&name)), at(0));
        kernel.observe(Input::seen(node_image(&name, &[])), at(0));
    }
    kernel
}

fn visits(kernel: &crate::cluster::Kernel, name: &str) -> u64 {
    kernel.visits(Kind::ImagePullJob, &job_key(name)).unwrap()
}

/// A tenant may make any number of jobs; what each of them costs is up to the nodes that it names.
#[test]
fn a_job_that_names_nodes_costs_the_nodes_that_it_names() {
    let mut kernel = with_nodes(10_000);
    kernel.observe(
        Input::seen(job("two", &json!({"selector": {"names": ["n00007", "n09000", "nowhere"]}}))),
        at(0),
    );
    kernel.observe(Input::seen(job("none", &json!({"selector": {"names": ["nowhere"]}}))), at(0));
    assert_eq!((visits(&kernel, "two"), visits(&kernel, "none")), (3, 1));
    drop(kernel.cycle(at(0)));
    let before = (visits(&kernel, "two"), visits(&kernel, "none"));
    for number in 0..100 {
        let name = format!("n{number:05}");
        kernel.observe(Input::seen(unready(node(&name))), at(1));
    }
    assert_eq!((visits(&kernel, "two"), visits(&kernel, "none")), (before.0 + 1, before.1));
    drop(kernel.cycle(at(1)));
    assert_eq!(kernel.explain::<ImagePullJob>(&job_key("two"), at(1)).unwrap().len(), 2);
}

#[test]
fn a_named_node_that_comes_later_is_served() {
    let mut world = World::of(&["n1"]);
    world.create(job("a", &json!({"parallelism": 9, "selector": {"names": ["n1", "n2"]}}))).settle();
    world.store.put_node(node("n2"));
    world.settle();
    assert_eq!(world.granted("a"), ["n1", "n2"]);
    world.store.delete_node("n1");
    world.settle();
    assert_eq!(world.counts("a")[0], 1);
}

#[test]
fn a_job_that_is_made_to_name_other_nodes_leaves_those_before() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({"selector": {"names": ["n1"]}}))).settle();
    edit(&mut world, "a", &json!({"selector": {"names": ["n2"]}}));
    world.pass(SECOND);
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n2".to_owned()], [1, 1, 0, 0]));
    edit(&mut world, "a", &json!({"selector": {"names": ["n1"]}}));
    world.restart();
    world.pass(SECOND);
    assert_eq!(world.granted("a"), ["n1"]);
}
