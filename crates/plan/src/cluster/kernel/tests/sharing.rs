//! Two jobs and one tag (kruise T7, W3, W4).

use super::*;

fn always(name: &str) -> ImagePullJob {
    job(name, &json!({"parallelism": 100, "imagePullPolicy": "Always"}))
}

fn version(world: &World) -> i64 {
    world.tag("n1", "nginx:1").unwrap().version
}

/// kruise W3
#[test]
fn a_second_job_joins_a_running_pull_and_both_count_it() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.report("n1", "nginx:1", PullPhase::Pulling);
    world.create(always("b")).settle();
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (0, [1, 1, 0, 0], [1, 1, 0, 0]));
    world.pull_all();
    world.pass(SECOND);
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (0, [1, 0, 1, 0], [1, 0, 1, 0]));
}

/// kruise T7 without another pull
#[test]
fn a_second_job_is_satisfied_with_what_is_there() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.pull_all();
    world.settle();
    world.create(never("b")).settle();
    world.pass(SECOND);
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (0, [1, 0, 1, 0], [1, 0, 1, 0]));
}

#[test]
fn a_second_job_that_asks_the_registry_makes_the_first_count_the_node_again() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({}))).settle();
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    world.report("n2", "nginx:1", PullPhase::Pulling);
    world.create(always("b"));
    world.pass(SECOND);
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (1, [2, 2, 0, 0], [2, 2, 0, 0]));
    world.pull_all();
    world.pass(SECOND);
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (1, [2, 0, 2, 0], [2, 0, 2, 0]));
}

#[test]
fn a_finished_job_stays_finished_when_another_one_pulls_again() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).settle();
    world.pull_all();
    world.settle();
    let before = world.status("a");
    world.create(always("b")).settle();
    assert_eq!((version(&world), world.status("a")), (1, before));
}

#[test]
fn a_failed_node_is_tried_once_for_each_job() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.report_all("n1", PullPhase::Failed);
    world.create(never("b"));
    world.pass(SECOND);
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (1, [1, 1, 0, 0], [1, 1, 0, 0]));
    world.report_all("n1", PullPhase::Failed);
    world.pass(SECOND);
    assert_eq!((version(&world), world.counts("a"), world.counts("b")), (1, [1, 0, 0, 1], [1, 0, 0, 1]));
}

#[test]
fn two_jobs_that_come_at_once_need_one_write_and_one_pull() {
    let mut world = World::of(&["n1"]);
    world.create(broad("a")).create(always("b"));
    let commands = world.cycle();
    assert_eq!(patched_nodes(&commands), ["n1"]);
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.version, tag.owner_references.unwrap().len()), (0, 2));
}

/// kruise R12, T28
#[test]
fn a_shared_tag_stays_when_one_of_its_jobs_goes() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).create(never("b")).settle();
    world.store.delete_job(&job_key("a"), world.now);
    world.settle();
    assert_eq!(world.granted("b"), ["n1"]);
    assert_eq!(world.tag("n1", "nginx:1").unwrap().owner_references.unwrap().len(), 1);
    world.store.delete_job(&job_key("b"), world.now);
    world.settle();
    assert!(world.tag("n1", "nginx:1").is_none());
}

/// kruise W4
#[test]
fn a_shared_tag_outlives_the_shorter_of_its_jobs() {
    let mut world = World::of(&["n1"]);
    let short = json!({"parallelism": 9, "completionPolicy": {"ttlSecondsAfterFinished": 1}});
    world.create(never("a")).create(job("b", &short)).settle();
    world.pull_all();
    world.pass(seconds(4000));
    assert!(!world.store.jobs.contains_key(&job_key("b")));
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n1".to_owned()], [1, 0, 1, 0]));
}
