//! Which nodes hold an image, as the kernel remembers it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::support::build::key;

fn holders(world: &World) -> Vec<String> {
    world.kernel.nodes.holders(&key("nginx:1")).iter().map(ToString::to_string).collect()
}

#[test]
fn holders_follow_reports_losses_and_nodes_that_go_and_are_the_same_after_a_restart() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.create(never("a")).settle();
    assert_eq!(holders(&world), [""; 0]);
    world.report("n2", "nginx:1", PullPhase::Pulling);
    world.report("n3", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(holders(&world), ["n3"]);
    world.pull_all();
    world.settle();
    assert_eq!(holders(&world), ["n1", "n2", "n3"]);
    let lost_at = Some(Time(world.now));
    world.report_as("n1", "nginx:1", PullPhase::Succeeded, |status| status.lost_at = lost_at);
    world.observe();
    assert_eq!(holders(&world), ["n2", "n3"]);
    world.store.delete_image("n2");
    world.observe();
    assert_eq!(holders(&world), ["n3"]);
    world.restart();
    assert_eq!(holders(&world), ["n3"]);
}
