//! Images that vanish from nodes (kruise W13).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn lose(world: &mut World, node: &str) {
    let now = world.now;
    world.report_as(node, "nginx:1", PullPhase::Succeeded, |status| status.lost_at = Some(Time(now)));
    world.pass(SECOND);
}

fn version(world: &World) -> i64 {
    world.tag("n1", "nginx:1").unwrap().version
}

fn pulled(job: ImagePullJob) -> World {
    let mut world = World::of(&["n1"]);
    world.create(job).settle();
    world.pull_all();
    world.settle();
    world
}

#[test]
fn a_lost_image_is_pulled_again_for_a_job_that_never_ends() {
    let mut world = pulled(never("a"));
    lose(&mut world, "n1");
    assert_eq!((version(&world), world.counts("a")), (1, [1, 1, 0, 0]));
}

#[test]
fn a_lost_image_is_not_pulled_again_for_jobs_that_end() {
    let mut world = pulled(broad("a"));
    lose(&mut world, "n1");
    assert_eq!(version(&world), 0);
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({}))).settle();
    world.pull_all();
    world.settle();
    lose(&mut world, "n1");
    assert_eq!((version(&world), world.counts("a")), (0, [2, 1, 1, 0]));
}

#[test]
fn an_image_that_is_lost_twice_in_an_hour_is_left_alone_for_six() {
    let mut world = pulled(never("a"));
    lose(&mut world, "n1");
    world.pull_all();
    world.pass(seconds(3000));
    lose(&mut world, "n1");
    assert_eq!(version(&world), 1);
    world.pass(seconds(6 * 3600 - 3000 - 3));
    assert_eq!(version(&world), 1);
    world.pass(seconds(5));
    assert_eq!(version(&world), 2);
}

#[test]
fn an_image_that_is_lost_seldom_is_pulled_again_at_once() {
    let mut world = pulled(never("a"));
    for round in 1..4 {
        lose(&mut world, "n1");
        assert_eq!(version(&world), round);
        world.pull_all();
        world.pass(seconds(3601));
    }
}

/// design 7
#[test]
fn lost_images_come_back_within_parallelism() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({"completionPolicy": {"type": "Never"}}))).settle();
    for node in ["n1", "n2"] {
        world.report(node, "nginx:1", PullPhase::Succeeded);
        world.settle();
    }
    world.pass(SECOND);
    lose(&mut world, "n2");
    lose(&mut world, "n1");
    assert_eq!(world.counts("a"), [2, 1, 1, 0]);
    world.pass(seconds(31));
    assert_eq!(world.counts("a"), [2, 2, 0, 0], "a silent node gives its place up");
}
