//! What people who watch the controller learn: how long nodes take, how grants end, how many there are of what.

use prewarm_api::kruise::FailureClass;

use super::*;
use crate::cluster::measure::{End, Measured, Phase};
use crate::cluster::size::{JobNodes, JobStates, Nodes, Tags};

fn took(phase: Phase, time: u64) -> Measured {
    Measured::Took(phase, seconds(time))
}

#[test]
fn a_nodes_way_is_measured_part_by_part() {
    let mut world = World::of(&["n1"]);
    world.pass(seconds(3));
    world.create(broad("a")).settle();
    assert_eq!(world.kernel.take_measures().grants, [took(Phase::Place, 3)]);
    world.pass(seconds(2));
    world.report("n1", "nginx:1", PullPhase::Waiting);
    world.pass(seconds(5));
    assert_eq!(world.kernel.take_measures().grants, [took(Phase::Answer, 2)]);
    world.report("n1", "nginx:1", PullPhase::Pulling);
    world.pass(seconds(20));
    assert_eq!(world.kernel.take_measures().grants, []);
    world.report_as("n1", "nginx:1", PullPhase::Succeeded, |status| {
        (status.bytes_done, status.bytes_total) = (Some(500), Some(500));
    });
    world.settle();
    let wanted = [
        Measured::Ended(End::Succeeded, 500),
        took(Phase::Start, 7),
        took(Phase::Pull, 20),
        took(Phase::Whole, 27),
    ];
    assert_eq!(world.kernel.take_measures().grants, wanted);
    world.restart();
    world.settle();
    assert_eq!(world.kernel.take_measures().grants, [], "a new controller measures nothing twice");
}

#[test]
fn a_failure_is_measured_with_its_class_and_without_bytes() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    drop(world.kernel.take_measures());
    world.report_as("n1", "nginx:1", PullPhase::Failed, |status| {
        status.failure_class = Some(FailureClass::NoSpace);
        status.bytes_total = Some(500);
    });
    world.settle();
    let measured = world.kernel.take_measures().grants;
    assert!(measured.contains(&Measured::Ended(End::Failed(FailureClass::NoSpace), 0)), "{measured:?}");
}

#[test]
fn with_a_job_that_never_ends_there_is_no_time_at_which_waiting_begins() {
    let mut world = World::of(&["n1"]);
    world.pass(seconds(3));
    world.create(never("a")).settle();
    assert_eq!(world.kernel.take_measures().grants, []);
}

#[test]
fn a_node_that_does_not_answer_is_silent_after_half_a_minute_and_until_it_answers() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(never("a")).settle();
    world.report("n2", "nginx:1", PullPhase::Pulling);
    world.settle();
    let size = world.kernel.size(world.now);
    assert_eq!(size.nodes, Nodes { served: 2, ..Nodes::default() });
    assert_eq!((size.oldest_grant, size.recount_at), (Some(at(0)), Some(at(31))));
    world.pass(seconds(31));
    let size = world.kernel.size(world.now);
    let one_silent = Nodes { served: 1, silent: 1, ..Nodes::default() };
    assert_eq!((size.nodes, size.recount_at), (one_silent, None));
    // The verdict after ten minutes ends the grant, and not the silence.
    drop(world.kernel.take_measures());
    world.pass(seconds(600));
    assert_eq!(world.kernel.take_measures().grants, [Measured::Ended(End::Silent, 0)]);
    assert_eq!(world.kernel.size(world.now).nodes, one_silent);
    world.report_all("n2", PullPhase::Succeeded);
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    let size = world.kernel.size(world.now);
    assert_eq!((size.nodes.served, size.oldest_grant, size.recount_at), (2, None, None));
    assert_eq!(size.tags, Tags { succeeded: 2, ..Tags::default() });
}

#[test]
fn nodes_are_counted_by_whether_they_are_served() {
    let mut world = World::of(&["n1"]);
    world.store.put_node(unready(node("n2")));
    world.store.put_node(labelled("n3", &[("kubernetes.io/os", "windows")]));
    world.settle();
    let size = world.kernel.size(world.now);
    assert_eq!(size.nodes, Nodes { served: 1, unready: 1, excluded: 1, ..Nodes::default() });
}

#[test]
fn jobs_and_their_nodes_are_counted_by_state() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.create(job("a", &json!({"parallelism": 1})));
    world.create(job("b", &json!({"parallelism": 0, "image": "nginx:2"}))).settle();
    let size = world.kernel.size(world.now);
    assert_eq!(size.jobs.pulls, JobStates { running: 1, paused: 1, ..JobStates::default() });
    assert_eq!(size.job_nodes, JobNodes { place: 2, active: 1, paused: 3, ..JobNodes::default() });
    world.report("n1", "nginx:1", PullPhase::Failed);
    world.settle();
    for node in ["n2", "n3"] {
        world.report(node, "nginx:1", PullPhase::Succeeded);
        world.settle();
    }
    let size = world.kernel.size(world.now);
    assert_eq!(size.jobs.pulls, JobStates { failed: 1, paused: 1, ..JobStates::default() });
    assert_eq!(size.job_nodes, JobNodes { paused: 3, ..JobNodes::default() }, "of unfinished jobs");
}

#[test]
fn lists_are_counted_by_how_they_ended() {
    let mut world = World::of(&["n1"]);
    let over =
        |succeeded: i32| json!({"desired": 2, "succeeded": succeeded, "completionTime": at(1).to_string()});
    let going = json!({"desired": 2});
    let states = [(1, going.clone()), (1, over(2)), (1, over(1)), (0, going)];
    for (number, (parallelism, status)) in states.into_iter().enumerate() {
        let name = format!("list-{number}");
        let object = json!({
            "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "1"},
            "spec": {"images": ["a", "b"], "parallelism": parallelism, "completionPolicy": {}},
            "status": status,
        });
        let list: prewarm_api::kruise::ImageListPullJob = serde_json::from_value(object).unwrap();
        world.kernel.observe(Input::seen(list), world.now);
    }
    let wanted = JobStates { running: 1, paused: 1, succeeded: 1, failed: 1, ..JobStates::default() };
    assert_eq!(world.kernel.size(world.now).jobs.lists, wanted);
}
