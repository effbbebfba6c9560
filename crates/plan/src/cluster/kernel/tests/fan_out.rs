//! Who is looked at after what (kruise T80–T88, T91, T92, W38).

use prewarm_api::kruise::NodeImage;

use super::*;
use crate::cluster::demands::pod::PodFacts;
use crate::support::build::secret;

const JOBS: [&str; 4] = ["one", "two", "other", "broken"];

/// A node with `nginx:1`, `nginx:2` and `redis:7`, each of a job of its own, and a job whose image cannot be read.
fn world() -> World {
    let mut world = World::of(&["n1"]);
    for (name, image) in JOBS.into_iter().zip(["nginx:1", "nginx:2", "redis:7", "::"]) {
        let fields = json!({"image": image, "completionPolicy": {"type": "Never"}});
        world.create(job(name, &fields));
    }
    world.settle();
    world.pull_all();
    world.pass(SECOND);
    world
}

/// The jobs for which a node was looked at after a change.
fn regarded(world: &mut World, change: impl FnOnce(&mut World)) -> Vec<&'static str> {
    let visits = |world: &World| {
        JOBS.map(|name| world.kernel.visits(Kind::ImagePullJob, &job_key(name)).unwrap_or_default())
    };
    let before = visits(world);
    change(world);
    world.observe();
    let after = visits(world);
    let regarded = JOBS.into_iter().zip(before.into_iter().zip(after));
    regarded.filter(|(_, (before, after))| before != after).map(|(name, _)| name).collect()
}

/// How many passes over jobs a change leads to.
fn passes(world: &mut World, change: impl FnOnce(&mut World)) -> u64 {
    let before = world.kernel.passes.of(Subject::Job);
    change(world);
    drop(world.cycle());
    world.kernel.passes.of(Subject::Job) - before
}

fn rewrite(world: &mut World, change: impl FnOnce(&mut NodeImage)) {
    let mut object = world.store.images["n1"].clone();
    change(&mut object);
    world.store.put_image(object);
}

/// kruise T80, T86, R32
#[test]
fn a_report_about_a_tag_concerns_its_job() {
    let mut world = world();
    let report = |world: &mut World| world.report("n1", "nginx:1", PullPhase::Failed);
    assert_eq!(regarded(&mut world, report), ["one"]);
    assert_eq!(passes(&mut world, |_| {}), 1);
}

/// kruise T80, T83
#[test]
fn another_round_of_a_tag_concerns_its_job_and_not_those_of_the_same_image() {
    let mut world = world();
    let bump = |world: &mut World| {
        rewrite(world, |object| object.spec.images.get_mut("nginx").unwrap().tags[0].version = 9);
    };
    assert_eq!(regarded(&mut world, bump), ["one"]);
}

/// kruise T81
#[test]
fn the_same_again_concerns_nobody() {
    let mut world = world();
    let again = |world: &mut World| {
        let object = world.store.images["n1"].clone();
        world.kernel.observe(Input::seen(object), world.now);
        for job in world.store.jobs.clone().into_values() {
            world.kernel.observe(Input::seen(job), world.now);
        }
        for node in world.store.nodes.clone().into_values() {
            world.kernel.observe(Input::seen(node), world.now);
        }
    };
    assert_eq!(regarded(&mut world, again), Vec::<&str>::new());
    assert_eq!(world.settle(), 0);
}

/// A heartbeat of a Node changes nothing that matters.
#[test]
fn a_heartbeat_concerns_nobody() {
    let mut world = world();
    let beat = |world: &mut World| world.store.put_node(node("n1"));
    assert_eq!(passes(&mut world, beat), 0);
}

/// kruise T82, T92
#[test]
fn a_job_whose_image_cannot_be_read_waits_for_its_correction() {
    let mut world = world();
    let status = world.status("broken");
    world.store.put_node(node("n2"));
    world.pass(SECOND);
    assert_eq!(world.status("broken"), status);
}

/// kruise T84, R32
#[test]
fn secrets_of_an_image_concern_all_its_jobs() {
    let mut world = world();
    let attach = |world: &mut World| {
        rewrite(world, |object| {
            object.spec.images.get_mut("nginx").unwrap().pull_secrets =
                Some(vec![secret("x", Some("batch"))]);
        });
    };
    assert_eq!(regarded(&mut world, attach), ["one", "two"]);
}

/// kruise T85
#[test]
fn a_removed_tag_concerns_its_job_which_grants_it_again() {
    let mut world = world();
    let remove = |world: &mut World| {
        rewrite(world, |object| drop(object.spec.images.get_mut("nginx").unwrap().tags.remove(0)));
    };
    assert_eq!(regarded(&mut world, remove), ["one"]);
    world.settle();
    assert_eq!(world.tag("n1", "nginx:1").unwrap().version, 1);
}

/// kruise T87, R32
#[test]
fn a_removed_image_concerns_all_its_jobs() {
    let mut world = world();
    let remove = |world: &mut World| rewrite(world, |object| drop(object.spec.images.remove("nginx")));
    assert_eq!(regarded(&mut world, remove), ["one", "two"]);
}

/// kruise T88
#[test]
fn tags_in_another_order_concern_nobody() {
    let mut world = world();
    let turn = |world: &mut World| {
        rewrite(world, |object| object.spec.images.get_mut("nginx").unwrap().tags.reverse());
    };
    assert_eq!(regarded(&mut world, turn), Vec::<&str>::new());
}

/// kruise T88: of two the later round counts, as it does for the agent.
#[test]
fn a_tag_that_stands_twice_concerns_its_job_when_the_later_round_changes() {
    let mut world = world();
    let double = |version| {
        move |world: &mut World| {
            rewrite(world, |object| {
                let tags = &mut object.spec.images.get_mut("nginx").unwrap().tags;
                let copy = prewarm_api::kruise::ImageTagSpec { version, ..tags[0].clone() };
                tags.push(copy);
            });
        }
    };
    assert_eq!(regarded(&mut world, double(-1)), Vec::<&str>::new());
    assert_eq!(regarded(&mut world, double(7)), ["one"]);
}

/// kruise T91
#[test]
fn a_pod_concerns_the_jobs_of_its_namespace_that_select_by_pods() {
    let mut world = world();
    let by_pods = json!({"podSelector": {"matchLabels": {"app": "web"}}, "image": "busybox:1",
                         "completionPolicy": {"type": "Never"}});
    world.create(job("pods", &by_pods)).settle();
    let mut elsewhere = job("elsewhere", &by_pods);
    elsewhere.metadata.namespace = Some("other".to_owned());
    world.create(elsewhere).create(job("leaving", &by_pods)).settle();
    world.store.edit_job(&job_key("leaving"), |job| {
        job.metadata.finalizers = Some(vec!["example.com/x".to_owned()]);
    });
    world.store.delete_job(&job_key("leaving"), world.now);
    for namespace in ["team", "other"] {
        world.kernel.observe(pods_listed(namespace), world.now);
    }
    world.settle();
    let facts = PodFacts {
        node: Some("n1".into()),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        is_active: true,
    };
    let appear = |world: &mut World| world.observe_pod("team", "web-1", facts);
    let visits = |world: &World| world.kernel.visits(Kind::ImagePullJob, &job_key("pods"));
    let before = visits(&world);
    assert_eq!(regarded(&mut world, appear), Vec::<&str>::new());
    assert_eq!(visits(&world), before.map(|before| before + 1));
    assert_eq!(passes(&mut world, |_| {}), 1);
}

/// kruise T92, R32
#[test]
fn a_node_concerns_the_active_jobs_that_match_it() {
    let mut world = World::of(&["n1"]);
    let kinds = [
        ("all", json!({})),
        ("names", json!({"names": ["n2"]})),
        ("labels", json!({"matchLabels": {"pool": "gpu"}})),
        ("others", json!({"matchLabels": {"pool": "cpu"}})),
    ];
    for (name, selector) in &kinds {
        let fields = json!({"selector": selector, "completionPolicy": {"type": "Never"}, "parallelism": 9});
        world.create(job(name, &fields));
    }
    world.create(job("over", &json!({"selector": {"names": ["n1"]}})));
    world.settle();
    world.pull_all();
    world.pass(SECOND);
    world.store.put_node(labelled("n2", &[("pool", "gpu")]));
    world.pass(SECOND);
    let desired = ["all", "names", "labels", "others", "over"].map(|name| world.counts(name)[0]);
    assert_eq!(desired, [2, 1, 1, 0, 1]);
}
