//! What ImagePrefetches and their sets say (ofen 1.2, 1.4, 1.5, R13, A12, A15, A16, W12, W14).

use jiff::Timestamp;

use super::*;

fn since(world: &World, type_: &str) -> Timestamp {
    let conditions = world.prefetch_status("a").conditions.unwrap();
    conditions.into_iter().find(|condition| condition.type_ == type_).unwrap().last_transition_time.0
}

/// ofen 1.5, ofen C8
#[test]
fn conditions_follow_a_node_that_fails_and_then_succeeds() {
    let mut world = world(&["n1"], &json!({"replicas": 1}));
    assert_eq!(condition(&world, "Ready"), is("False", "ImagePrefetchProgressing"));
    assert_eq!(condition(&world, "NoImagePullFailed"), is("True", "NoImagePullFailed"));
    assert_eq!(condition(&world, "NodeImageSetsCreated"), is("True", "NodeImageSetsCreated"));
    world.struggle("n1", IMAGE, FailureClass::Unreachable, "the registry does not answer");
    world.pass(SECOND);
    assert_eq!(condition(&world, "Ready"), is("False", "ImagePrefetchProgressing"));
    assert_eq!(condition(&world, "NoImagePullFailed"), is("False", "ImagePrefetchFailed"));
    assert_eq!(world.prefetch_counts("a"), [1, 0, 1, 1]);
    assert_eq!(world.states("a", "n1"), ["ImageDownloadFailed"]);
    world.report("n1", IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(condition(&world, "Ready"), is("True", "ImagePrefetchReady"));
    assert_eq!(condition(&world, "NoImagePullFailed"), is("True", "NoImagePullFailed"));
    assert_eq!(condition(&world, "NodeImageSetsCreated"), is("True", "NodeImageSetsCreated"));
}

/// ofen W12
#[test]
fn a_transition_time_moves_only_when_a_condition_flips() {
    let mut world = many(4, &json!({}));
    let begun = since(&world, "Ready");
    world.pass(seconds(30));
    pull(&mut world);
    assert_eq!(since(&world, "Ready"), begun);
    world.finish_prefetch("a");
    assert!(since(&world, "Ready") > begun);
    assert_eq!(since(&world, "NoImagePullFailed"), begun);
}

/// ofen 1.2, ofen C6
#[test]
fn the_nodes_that_were_chosen_are_those_of_the_sets() {
    let mut world = many(7, &json!({"replicas": 4}));
    world.finish_prefetch("a");
    let sets: Vec<String> = world.sets("a").into_keys().collect();
    assert_eq!(world.selected("a"), sets);
    assert_eq!(world.prefetch_status("a").observed_generation, Some(1));
}

/// ofen A12, A15
#[test]
fn an_image_goes_through_its_states_and_is_brought_back_when_it_is_removed() {
    let mut world = world(&["n1"], &json!({}));
    assert_eq!(world.states("a", "n1"), ["WaitingForImageDownload"]);
    world.report("n1", IMAGE, PullPhase::Pulling);
    world.pass(SECOND);
    assert_eq!(world.states("a", "n1"), ["ImageDownloadInProgress"]);
    world.report("n1", IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(world.states("a", "n1"), ["ImageDownloaded"]);
    let version = world.tag("n1", IMAGE).unwrap().version;
    let lost_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(crate::time::stamp(world.now)));
    world.report_as("n1", IMAGE, PullPhase::Succeeded, |status| status.lost_at = lost_at);
    world.pass(SECOND);
    assert_eq!(world.tag("n1", IMAGE).unwrap().version, version + 1, "it is asked for again");
    assert_eq!(world.states("a", "n1"), ["WaitingForImageDownload"]);
    assert_eq!(condition(&world, "Ready"), is("False", "ImagePrefetchProgressing"));
    pull(&mut world);
    assert_eq!(world.states("a", "n1"), ["ImageDownloaded"]);
    assert_eq!(condition(&world, "Ready"), is("True", "ImagePrefetchReady"));
}

/// ofen 1.4
#[test]
fn a_set_counts_its_images_in_the_order_of_the_spec() {
    let mut world = world(&["n1"], &json!({"images": ["redis:7", IMAGE, "busybox"]}));
    world.report("n1", IMAGE, PullPhase::Succeeded);
    world.struggle("n1", "busybox", FailureClass::NotFound, "the registry has no such image");
    world.pass(SECOND);
    let status = world.set_status("a", "n1");
    assert_eq!((status.desired_images, status.available_images, status.download_failed_images), (3, 1, 1));
    let images: Vec<_> = status.container_image_statuses.into_iter().flatten().collect();
    let names: Vec<&str> = images.iter().map(|image| &*image.image_ref).collect();
    assert_eq!(names, ["redis:7", IMAGE, "busybox"]);
    assert_eq!(
        world.states("a", "n1"),
        ["WaitingForImageDownload", "ImageDownloaded", "ImageDownloadFailed"]
    );
    assert_eq!(images[2].error.as_deref(), Some("the registry has no such image"));
    assert_eq!(status.observed_generation, Some(1));
}

/// ofen A16: each once, and not for each attempt.
#[test]
fn events_are_told_once() {
    let mut world = world(&["n1"], &json!({}));
    world.report("n1", IMAGE, PullPhase::Pulling);
    world.pass(SECOND);
    for _ in 0..5 {
        world.struggle("n1", IMAGE, FailureClass::Unreachable, "the registry does not answer");
        world.pass(seconds(10));
    }
    pull(&mut world);
    let told: Vec<&str> = reasons(&world).into_iter().filter(|reason| reason.starts_with("Image")).collect();
    assert_eq!(told, ["ImageDownloading", "ImageDownloadFailed", "ImageDownloaded"]);
}

/// ofen W13, A13: the last result is written in the moment in which it is known, others within a second.
#[test]
fn a_status_is_not_written_more_often_than_once_a_second_and_the_end_at_once() {
    let mut world = many(4, &json!({}));
    world.pull_all();
    world.settle();
    let name = world.nodes_with("a", Registry).remove(0);
    assert_eq!(world.states("a", &name), ["ImageDownloaded"], "the end of a set waits for nothing");
    world.pass(SECOND);
    assert_eq!(world.prefetch_counts("a"), [4, 1, 1, 0]);
    pull(&mut world);
    world.pull_all();
    world.settle();
    assert_eq!(world.prefetch_counts("a"), [4, 4, 0, 0]);
}

/// The sets of many nodes are made while the last of them pull, and later.
#[test]
fn what_changes_after_the_end_is_written_no_more_than_once_a_second() {
    let mut world = many(4, &json!({}));
    world.finish_prefetch("a");
    world.pass(SECOND);
    let begun = world.log.len();
    let names: Vec<String> = world.store.sets.values().filter_map(|set| set.metadata.name.clone()).collect();
    for name in names {
        let now = world.now;
        world.store.delete_set(&name, now);
        world.settle();
    }
    let is_status = |command: &Command| {
        matches!(command, Command::Write(write)
            if write.ticket.kind == Kind::ImagePrefetch && matches!(write.verb, Verb::PatchStatus(_)))
    };
    assert_eq!(world.log[begun..].iter().filter(|(_, command)| is_status(command)).count(), 1);
    world.pass(SECOND);
    assert_eq!(condition(&world, "NodeImageSetsCreated"), is("True", "NodeImageSetsCreated"));
}

/// A node that takes no entry shows why, and holds up nobody.
#[test]
fn a_node_that_cannot_be_told_has_a_set_that_says_so() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.store.most_images = 0;
    let mut world = begin(world, &json!({}));
    let first = seed(&world);
    world.pass(SECOND);
    assert_eq!(world.states("a", &first), ["ImageDownloadFailed"]);
    assert_eq!(world.prefetch_counts("a"), [3, 0, 1, 1]);
    world.pass(seconds(11));
    assert_eq!(world.sets("a").len(), 2, "another one is tried");
}

#[test]
fn what_is_no_reference_is_said_in_the_set() {
    let mut world = world(&["n1"], &json!({"images": ["!"]}));
    world.pass(SECOND);
    assert_eq!(world.states("a", "n1"), ["ImageDownloadFailed"]);
}
