//! NodeImageSets that a person makes, in a small world (ofen 1.3, 1.4, R15, A14, W22, W23). Those of ImagePrefetches are in the
//! tests of that folder.

use std::time::Duration;

use prewarm_api::kruise::{FailureClass, PullPhase};
use prewarm_api::ofen::{NodeImageSetStatus, RegistryPolicy};
use serde_json::{Value, json};

use crate::object::SourceKey;
use crate::support::build::node;
use crate::support::prefetch::{node_image_set, prefetch, words};
use crate::support::world::World;

const SECOND: Duration = Duration::from_secs(1);
const IMAGE: &str = "nginx:1";

/// Two nodes, and a set for one of them.
fn world(fields: &Value) -> World {
    let mut world = World::of(&["n1", "n2"]);
    world.store.create_set(node_image_set("mine", "n1", fields));
    world.pass(SECOND);
    world
}

fn status(world: &World) -> NodeImageSetStatus {
    world.store.sets["mine"].status.clone().unwrap_or_default()
}

/// Status and reason of a condition; empty if there is none.
fn condition(world: &World, type_: &str) -> (String, String) {
    let conditions = status(world).conditions.unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition.type_ == type_);
    found.map(|found| (found.status, found.reason)).unwrap_or_default()
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// ofen C16, C18, C19, as far as the controller sees them.
#[test]
fn a_set_by_hand_is_a_demand_for_its_node_alone() {
    let mut world = world(&json!({"images": [IMAGE, "redis:7"]}));
    assert!(world.tag("n1", IMAGE).is_some() && world.tag("n1", "redis:7").is_some());
    assert_eq!(world.tag("n2", IMAGE), None);
    assert_eq!(words(&status(&world)), ["WaitingForImageDownload", "WaitingForImageDownload"]);
    assert_eq!(condition(&world, "ImageAvailable"), is("False", "ImageDownloadIncomplete"));
    assert_eq!(condition(&world, "ImageDownloadSucceeded"), is("True", "NoImagePullFailed"));
    world.pull_all();
    world.pass(SECOND);
    let status = status(&world);
    assert_eq!((status.desired_images, status.available_images, status.download_failed_images), (2, 2, 0));
    assert_eq!(condition(&world, "ImageAvailable"), is("True", "ImageDownloadComplete"));
    assert_eq!(world.settle(), 0);
    world.restart();
    assert_eq!(world.settle(), 0);
}

/// ofen C59–C61
#[test]
fn a_change_of_its_images_takes_back_what_it_no_longer_names_and_leaves_the_rest_alone() {
    let mut world = world(&json!({"images": [IMAGE, "redis:7"]}));
    world.report("n1", IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    let before = world.tag("n1", IMAGE);
    world.store.edit_set("mine", |set| set.spec.images = vec!["redis:8".to_owned(), IMAGE.to_owned()]);
    world.pass(SECOND);
    assert_eq!(world.tag("n1", "redis:7"), None);
    assert!(world.tag("n1", "redis:8").is_some());
    assert_eq!(world.tag("n1", IMAGE), before, "it is not asked for again");
    assert_eq!(words(&status(&world)), ["WaitingForImageDownload", "ImageDownloaded"]);
}

/// ofen C62, C63: what is refused at the door may be stored all the same.
#[test]
fn of_many_changes_the_last_one_counts_and_an_empty_list_takes_everything_back() {
    let mut world = world(&json!({}));
    for number in 0..10 {
        world.store.edit_set("mine", |set| set.spec.images = vec![format!("redis:{number}")]);
    }
    world.pass(SECOND);
    assert_eq!((world.tag("n1", IMAGE), world.tag("n1", "redis:8")), (None, None));
    assert!(world.tag("n1", "redis:9").is_some());
    world.store.edit_set("mine", |set| set.spec.images.clear());
    world.pass(SECOND);
    assert!(world.store.images["n1"].spec.images.is_empty());
    assert_eq!(status(&world).desired_images, 0);
}

/// ofen C44, C50, C58
#[test]
fn a_set_of_a_node_that_is_not_known_waits_and_may_change_and_go() {
    let mut world = World::of(&["n1"]);
    world.store.create_set(node_image_set("mine", "nowhere", &json!({})));
    world.pass(SECOND);
    assert_eq!(words(&status(&world)), ["WaitingForImageDownload"]);
    world.store.edit_set("mine", |set| set.spec.images = vec![IMAGE.to_owned(), "redis:7".to_owned()]);
    world.pass(SECOND);
    assert_eq!(words(&status(&world)), ["WaitingForImageDownload"; 2]);
    // Of another one nothing is known when it goes.
    world.store.create_set(node_image_set("other", "nowhere", &json!({})));
    let now = world.now;
    for name in ["other", "mine"] {
        world.store.delete_set(name, now);
    }
    world.pass(SECOND);
    assert!(world.store.sets.is_empty());
    assert_eq!(world.settle(), 0);
}

/// An administrator's word: it is not proven that the registry would give the image.
#[test]
fn a_set_by_hand_may_ask_mirrors_alone() {
    let world = world(&json!({"registryPolicy": "MirrorOnly"}));
    assert_eq!(world.origin("n1", IMAGE), Some((RegistryPolicy::MirrorOnly, None)));
}

/// ofen C20–C22, C49, A12, as far as the controller sees them.
#[test]
fn what_was_not_found_is_a_failure_at_the_registry_and_none_at_mirrors() {
    for (policy, word, failed) in
        [("Default", "ImageDownloadFailed", 1), ("MirrorOnly", "ImageDownloadTemporarilyFailed", 0)]
    {
        let mut world = world(&json!({"images": [IMAGE, "gone:1"], "registryPolicy": policy}));
        world.report("n1", IMAGE, PullPhase::Succeeded);
        world.struggle("n1", "gone:1", FailureClass::NotFound, "there is no such image");
        world.pass(SECOND);
        assert_eq!(words(&status(&world)), ["ImageDownloaded", word]);
        let status = status(&world);
        assert_eq!((status.available_images, status.download_failed_images), (1, failed));
    }
    let mut world = world(&json!({"registryPolicy": "MirrorOnly"}));
    world.struggle("n1", IMAGE, FailureClass::Unreachable, "no mirror answers");
    world.pass(SECOND);
    assert_eq!(words(&status(&world)), ["ImageDownloadFailed"], "anything else is a failure");
}

/// `imageDownloadRetryLimit` is our own addition; without it there is no end (ofen A14).
#[test]
fn a_retry_limit_ends_the_attempts_and_without_one_there_is_no_end() {
    let limited = world(&json!({"imageDownloadRetryLimit": 2}));
    assert_eq!(limited.tag("n1", IMAGE).unwrap().pull_policy.backoff_limit, 2);
    let mut world = world(&json!({}));
    assert_eq!(world.tag("n1", IMAGE).unwrap().pull_policy.backoff_limit, i32::MAX);
    world.report_as("n1", IMAGE, PullPhase::Failed, |status| {
        status.failure_class = Some(FailureClass::Unreachable);
        status.message = Some("the registry does not answer".to_owned());
    });
    world.pass(SECOND);
    assert_eq!(words(&status(&world)), ["ImageDownloadFailed"]);
    let error = status(&world).container_image_statuses.unwrap()[0].error.clone();
    assert_eq!(error.as_deref(), Some("the registry does not answer"));
}

/// ofen W22, W23: a NodeImageSet is in no namespace, so nobody gets Secrets by it.
#[test]
fn secrets_of_a_set_by_hand_are_not_used_and_it_says_so() {
    let labels = [
        ("image-prefetch.ofen.cybozu.io/owner-namespace", "team"),
        ("image-prefetch.ofen.cybozu.io/owner-name", "a"),
    ];
    for labelled in [false, true] {
        let mut world = World::of(&["n1"]);
        world.store.sources.insert(SourceKey { namespace: "team".to_owned(), name: "key".to_owned() }, 1);
        let fields = json!({"images": ["theirs:1"], "imagePullSecrets": [{"name": "key"}]});
        let mut set = node_image_set("mine", "n1", &fields);
        if labelled {
            // The labels name a living ImagePrefetch that has the Secret, but the name does not follow from them.
            world.store.create_prefetch(prefetch("a", &json!({"imagePullSecrets": [{"name": "key"}]})));
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            set.metadata.labels = Some(labels.into());
        }
        world.store.create_set(set);
        world.pass(Duration::from_secs(10));
        assert_eq!(condition(&world, "SecretsReady"), is("False", "SecretsIgnored"));
        let entry = &world.store.images["n1"].spec.images["theirs"];
        assert_eq!(entry.pull_secrets, None);
    }
}

/// ofen W23: a set that looks like that of an ImagePrefetch says what this one says, and no other image or Secret.
#[test]
fn a_set_that_looks_like_one_of_an_image_prefetch_becomes_one() {
    let mut world = World::of(&["n1"]);
    let name = super::spec::name("a", "team", "n1");
    let labels = [
        ("image-prefetch.ofen.cybozu.io/owner-namespace", "team"),
        ("image-prefetch.ofen.cybozu.io/owner-name", "a"),
    ];
    let mut set =
        node_image_set(&name, "n1", &json!({"images": ["evil:1"], "imagePullSecrets": [{"name": "key"}]}));
    set.metadata.labels = Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    world.store.create_prefetch(prefetch("a", &json!({})));
    world.store.create_set(set.clone());
    world.finish_prefetch("a");
    let spec = &world.store.sets[&name].spec;
    assert_eq!((spec.images.clone(), spec.image_pull_secrets.clone()), (vec![IMAGE.to_owned()], None));
    assert_eq!(world.tag("n1", "evil:1"), None);
    // Of an ImagePrefetch that does not exist there is nothing to show.
    let mut world = World::of(&["n1"]);
    world.store.create_set(set);
    world.pass(SECOND);
    assert!(world.store.sets.is_empty());
    assert_eq!(world.tag("n1", "evil:1"), None);
}

/// ofen R15, C23, C24
#[test]
fn a_set_for_a_node_that_does_not_exist_goes_after_an_hour() {
    let finalizer = "nodeimageset.ofen.cybozu.io/finalizer".to_owned();
    let mut world = World::of(&["n1"]);
    for (name, node) in [("stays", "n1"), ("goes", "gone"), ("comes", "late")] {
        let mut set = node_image_set(name, node, &json!({}));
        set.metadata.finalizers = Some(vec![finalizer.clone()]);
        world.store.create_set(set);
    }
    world.pass(Duration::from_mins(59));
    assert_eq!(world.store.sets.len(), 3);
    world.store.put_node(node("late"));
    world.pass(Duration::from_mins(2));
    let left: Vec<&str> = world.store.sets.keys().map(String::as_str).collect();
    assert_eq!(left, ["comes", "stays"]);
    world.pull_all();
    world.store.delete_node("n1");
    world.pass(Duration::from_mins(61));
    assert_eq!(world.store.sets.len(), 1);
}

/// ofen A2
#[test]
fn a_set_that_is_deleted_takes_its_entries_along_and_waits_for_no_program() {
    let mut world = world(&json!({}));
    world.store.edit_set("mine", |set| {
        set.metadata.finalizers = Some(vec!["nodeimageset.ofen.cybozu.io/finalizer".to_owned()]);
    });
    world.pass(SECOND);
    let now = world.now;
    world.store.delete_set("mine", now);
    world.pass(SECOND);
    assert!(world.store.sets.is_empty());
    assert_eq!(world.tag("n1", IMAGE), None);
}

/// ofen C51, C52, A15
#[test]
fn all_sets_of_an_image_that_is_removed_wait_for_it_again() {
    let mut world = world(&json!({}));
    for name in ["second", "third"] {
        world.store.create_set(node_image_set(name, "n1", &json!({"images": ["redis:7", IMAGE]})));
    }
    world.pass(SECOND);
    world.pull_all();
    world.pass(SECOND);
    let lost_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(crate::time::stamp(world.now)));
    world.report_as("n1", IMAGE, PullPhase::Succeeded, |status| status.lost_at = lost_at);
    world.pass(SECOND);
    let said = |world: &World, name: &str| {
        let status = world.store.sets[name].status.clone().unwrap();
        (status.available_images, status.container_image_statuses.unwrap().pop().unwrap())
    };
    for (name, available) in [("mine", 0), ("second", 1), ("third", 1)] {
        let (count, image) = said(&world, name);
        assert_eq!((count, image.error), (available, None), "{name}");
        assert_eq!(image.last_state.as_deref(), Some("WaitingForImageDownload"), "{name}");
    }
    assert_eq!(world.tag("n1", IMAGE).unwrap().version, 1, "it is asked for once");
    world.pull_all();
    world.pass(SECOND);
    assert_eq!((said(&world, "mine").0, said(&world, "second").0, said(&world, "third").0), (1, 2, 2));
}

/// ofen A15
#[test]
fn an_image_that_is_removed_is_asked_for_again() {
    let mut world = world(&json!({"registryPolicy": "MirrorOnly"}));
    world.pull_all();
    let lost_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(crate::time::stamp(world.now)));
    world.report_as("n1", IMAGE, PullPhase::Succeeded, |status| status.lost_at = lost_at);
    world.pass(SECOND);
    assert_eq!(world.tag("n1", IMAGE).unwrap().version, 1);
    assert_eq!(world.origin("n1", IMAGE), Some((RegistryPolicy::MirrorOnly, None)));
    assert_eq!(words(&status(&world)), ["WaitingForImageDownload"]);
}

/// An ImagePrefetch and a set by hand that both ask mirrors alone keep to that; a set that asks the registry lifts it.
#[test]
fn a_set_that_asks_the_registry_lifts_the_limit_of_others() {
    let mut world = world(&json!({"registryPolicy": "MirrorOnly"}));
    world.store.create_set(node_image_set("other", "n1", &json!({})));
    world.pass(SECOND);
    assert_eq!(world.origin("n1", IMAGE), Some((RegistryPolicy::Default, None)));
    let now = world.now;
    world.store.delete_set("other", now);
    world.pass(SECOND);
    assert_eq!(world.origin("n1", IMAGE), Some((RegistryPolicy::MirrorOnly, None)));
}
