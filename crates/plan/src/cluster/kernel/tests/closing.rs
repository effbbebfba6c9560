//! The end of jobs: finalizer, deadline, TTL, deletion (kruise R34, R49, R57, R58, W31, W37).

use prewarm_api::names::DELETION_PROTECTION_FINALIZER;

use super::*;

fn finalizers(world: &World, name: &str) -> Vec<String> {
    world.store.jobs[&job_key(name)].metadata.finalizers.clone().unwrap_or_default()
}

fn limited(name: &str, completion: &Value) -> ImagePullJob {
    job(name, &json!({"parallelism": 100, "completionPolicy": completion}))
}

/// kruise R57
#[test]
fn an_unfinished_job_with_secrets_has_the_finalizer_and_a_finished_one_has_not() {
    let mut world = World::of(&["n1"]);
    world.create(job("a", &json!({"pullSecrets": ["registry"]}))).settle();
    assert_eq!(finalizers(&world, "a"), [DELETION_PROTECTION_FINALIZER]);
    world.pull_all();
    world.settle();
    assert!(finalizers(&world, "a").is_empty());
}

/// Such a job can be deleted, and its definition too, while no controller runs.
#[test]
fn a_job_without_secrets_has_no_finalizer_and_loses_one_that_it_had() {
    let mut world = World::of(&["n1"]);
    let mut protected = broad("a");
    protected.metadata.finalizers = Some(vec![DELETION_PROTECTION_FINALIZER.to_owned()]);
    world.create(protected).create(broad("b")).settle();
    assert!(finalizers(&world, "a").is_empty() && finalizers(&world, "b").is_empty());
}

#[test]
fn finalizers_of_others_stay() {
    let mut world = World::of(&["n1"]);
    let mut foreign = job("a", &json!({"pullSecrets": ["registry"]}));
    foreign.metadata.finalizers = Some(vec!["example.com/x".to_owned()]);
    world.create(foreign).settle();
    assert_eq!(finalizers(&world, "a"), ["example.com/x", DELETION_PROTECTION_FINALIZER]);
    world.pull_all();
    world.settle();
    assert_eq!(finalizers(&world, "a"), ["example.com/x"]);
}

/// kruise R34, T1, R21
#[test]
fn a_job_with_a_ttl_is_deleted_to_the_second() {
    let mut world = World::of(&["n1"]);
    world.create(limited("a", &json!({"ttlSecondsAfterFinished": 20}))).settle();
    world.pull_all();
    world.settle();
    world.pass(seconds(19));
    assert!(world.store.jobs.contains_key(&job_key("a")));
    world.pass(seconds(1));
    assert!(!world.store.jobs.contains_key(&job_key("a")));
    assert!(world.tag("n1", "nginx:1").is_none(), "its entries go with it");
}

/// kruise T2, R34
#[test]
fn a_job_without_a_ttl_stays() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.pull_all();
    world.pass(seconds(1_000_000));
    assert!(world.store.jobs.contains_key(&job_key("a")));
    assert!(world.tag("n1", "nginx:1").is_none(), "its entries do not");
}

/// kruise R55
#[test]
fn editing_a_finished_job_does_nothing() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.pull_all();
    world.settle();
    edit(&mut world, "a", &json!({"image": "nginx:2"}));
    assert_eq!(world.settle(), 0);
}

/// kruise R55: the old tag is kept while the job runs, and its time begins with the end of the job.
#[test]
fn entries_of_an_image_that_a_job_no_longer_pulls_end_with_it() {
    let mut world = World::default();
    world.store.put_node(labelled("n1", &[("pool", "gpu")]));
    world.settle();
    let selector = json!({"matchLabels": {"pool": "gpu"}});
    world.create(job("a", &json!({"selector": selector, "parallelism": 1}))).settle();
    world.report("n1", "nginx:1", PullPhase::Pulling);
    edit(&mut world, "a", &json!({"image": "nginx:2", "parallelism": 0}));
    world.settle();
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.store.put_node(node("n1"));
    world.pass(seconds(4000));
    assert!(world.status("a").completion_time.is_some());
    assert!(world.tag("n1", "nginx:1").is_none());
}

/// kruise R6, R58, W31: there is no config namespace in this world.
#[test]
fn a_job_can_be_deleted_at_any_time_and_its_entries_go() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(broad("a")).settle();
    world.report("n1", "nginx:1", PullPhase::Pulling);
    world.store.delete_job(&job_key("a"), world.now);
    world.settle();
    assert!(!world.store.jobs.contains_key(&job_key("a")));
    assert!(world.store.images.values().all(|image| image.spec.images.is_empty()));
}

/// kruise W37, R6, R41
#[test]
fn entries_of_a_job_that_was_deleted_in_between_go_after_a_restart() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.store.jobs.clear();
    world.restart();
    world.settle();
    assert!(world.tag("n1", "nginx:1").is_none());
}

#[test]
fn a_job_that_is_made_again_under_its_name_begins_anew() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.pull_all();
    world.settle();
    world.store.delete_job(&job_key("a"), world.now);
    world.create(broad("a")).settle();
    assert_eq!(world.counts("a"), [1, 1, 0, 0]);
    let owners = world.tag("n1", "nginx:1").unwrap().owner_references.unwrap();
    let uids: Vec<_> = owners.into_iter().map(|owner| owner.uid).collect();
    assert_eq!(uids, [world.store.jobs[&job_key("a")].metadata.uid.clone()]);
}

/// kruise R49, T49
#[test]
fn a_deadline_fails_each_unfinished_node_once_and_hands_out_nothing_more() {
    let mut world = World::of(&["n1", "n2", "n3", "n4"]);
    let fields = json!({"parallelism": 2, "completionPolicy": {"activeDeadlineSeconds": 700}});
    world.create(job("a", &fields)).settle();
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    world.report("n2", "nginx:1", PullPhase::Failed);
    world.settle();
    world.report("n3", "nginx:1", PullPhase::Pulling);
    world.report("n4", "nginx:1", PullPhase::Waiting);
    world.pass(seconds(699));
    assert_eq!(world.counts("a"), [4, 2, 1, 1]);
    world.pass(seconds(1));
    let status = world.status("a");
    assert_eq!(world.counts("a"), [4, 0, 1, 3]);
    assert_eq!(status.message.as_deref(), Some("job exceeds activeDeadlineSeconds"));
    assert_eq!(status.failed_nodes.unwrap(), ["n2", "n3", "n4"]);
    assert_eq!(status.completion_time.unwrap().0, at(700));
    assert_eq!(condition(&world, "a", "Failed"), Some((true, "DeadlineExceeded".to_owned())));
    assert!(world.tag("n3", "nginx:1").is_some(), "what runs ends on its own");
}

/// kruise R49
#[test]
fn a_deadline_does_not_meet_a_job_that_never_ends() {
    let mut world = World::of(&["n1"]);
    let completion = json!({"type": "Never", "activeDeadlineSeconds": 700});
    world.create(limited("a", &completion)).settle();
    world.report("n1", "nginx:1", PullPhase::Pulling);
    world.pass(seconds(1000));
    assert_eq!(world.counts("a"), [1, 1, 0, 0]);
}

#[test]
fn an_image_that_cannot_be_read_is_told_and_ends_with_the_deadline_as_failed() {
    let mut world = World::of(&["n1"]);
    let fields = json!({"image": "::", "completionPolicy": {"activeDeadlineSeconds": 700}});
    world.create(job("a", &fields)).settle();
    assert_eq!(condition(&world, "a", "Progressing"), Some((false, "InvalidImage".to_owned())));
    world.pass(seconds(700));
    assert_eq!(condition(&world, "a", "Failed"), Some((true, "DeadlineExceeded".to_owned())));
    assert_eq!(condition(&world, "a", "Complete"), None);
}

/// kruise T47, R55
#[test]
fn an_image_that_is_corrected_is_pulled() {
    let mut world = World::of(&["n1"]);
    world.create(job("a", &json!({"image": "::"}))).settle();
    assert!(world.granted("a").is_empty());
    edit(&mut world, "a", &json!({"image": "nginx:1"}));
    world.settle();
    assert_eq!(world.granted("a"), ["n1"]);
}
