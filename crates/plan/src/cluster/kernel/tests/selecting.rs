//! Which nodes a job has, and what happens to those that it loses (kruise R40, R42, T90–T92, W8).

use super::*;
use crate::cluster::demands::pod::PodFacts;

fn by_labels(name: &str) -> ImagePullJob {
    job(name, &json!({"parallelism": 100, "selector": {"matchLabels": {"pool": "gpu"}}}))
}

fn by_pods(name: &str) -> ImagePullJob {
    job(
        name,
        &json!({"parallelism": 100, "podSelector": {"matchLabels": {"app": "web"}},
                      "completionPolicy": {"type": "Never"}}),
    )
}

fn pod(node: Option<&str>, app: &str) -> PodFacts {
    let labels = [("app".to_owned(), app.to_owned())].into();
    PodFacts { node: node.map(Into::into), labels, is_active: true }
}

/// Two nodes, of which `n1` is in the pool.
fn pool() -> World {
    let mut world = World::default();
    world.store.put_node(labelled("n1", &[("pool", "gpu")]));
    world.store.put_node(node("n2"));
    world.settle();
    world
}

/// kruise T92, R42, W17
#[test]
fn labels_take_nodes_in_and_out() {
    let mut world = pool();
    world.create(by_labels("a")).settle();
    assert_eq!(world.granted("a"), ["n1"]);
    world.store.put_node(labelled("n2", &[("pool", "gpu")]));
    world.store.put_node(node("n1"));
    world.pass(SECOND);
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n2".to_owned()], [1, 1, 0, 0]));
}

/// kruise W17
#[test]
fn nothing_is_begun_on_a_node_that_has_just_left() {
    let mut world = pool();
    world.store.put_node(node("n1"));
    world.create(by_labels("a"));
    let commands = world.cycle();
    assert_eq!(patched_nodes(&commands), ["n1"], "the labels go");
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    assert!(world.tag("n1", "nginx:1").is_none());
}

/// kruise T6, T10: with the label, a NodeImage needs no Node, and a person may answer for it.
#[test]
fn a_fake_node_image_takes_part() {
    let mut world = World::of(&["n1"]);
    let mut fake = node_image("fake", &[]);
    fake.metadata.labels = Some([("apps.kruise.io/fake-nodeimage".to_owned(), "true".to_owned())].into());
    world.store.put_image(fake);
    world.create(job("a", &json!({"parallelism": 9}))).settle();
    assert_eq!(world.granted("a"), ["fake", "n1"]);
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.report_as("fake", "nginx:1", PullPhase::Failed, |status| status.completion_time = None);
    world.settle();
    assert_eq!(world.counts("a"), [2, 0, 1, 1]);
    assert_eq!(world.status("a").failed_nodes.unwrap(), ["fake"]);
}

/// kruise R42 as we have it
#[test]
fn a_task_that_has_not_begun_is_withdrawn_from_a_node_that_no_longer_matches() {
    for phase in [None, Some(PullPhase::Waiting)] {
        let mut world = pool();
        world.create(by_labels("a")).settle();
        if let Some(phase) = phase {
            world.report("n1", "nginx:1", phase);
        }
        world.store.put_node(node("n1"));
        world.settle();
        assert!(world.tag("n1", "nginx:1").is_none());
    }
}

/// kruise R42 as we have it
#[test]
fn a_pull_that_runs_ends_on_its_own_and_holds_its_place() {
    let mut world = pool();
    world.create(by_labels("a")).settle();
    edit(&mut world, "a", &json!({"parallelism": 1}));
    world.report("n1", "nginx:1", PullPhase::Pulling);
    world.store.put_node(node("n1"));
    world.store.put_node(labelled("n2", &[("pool", "gpu")]));
    world.pass(SECOND);
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n1".to_owned()], [1, 0, 0, 0]));
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.settle();
    assert_eq!(world.granted("a"), ["n1", "n2"]);
}

#[test]
fn a_task_that_began_before_it_could_be_withdrawn_goes_on() {
    let mut world = pool();
    world.create(by_labels("a")).settle();
    world.store.put_node(node("n1"));
    let commands = world.cycle();
    assert_eq!(patched_nodes(&commands), ["n1"]);
    for command in commands {
        world.carry_out(command, Fate::Lost);
    }
    world.report("n1", "nginx:1", PullPhase::Pulling);
    world.pass(seconds(10));
    assert!(world.tag("n1", "nginx:1").is_some());
}

#[test]
fn a_node_that_comes_back_before_its_task_was_withdrawn_keeps_it() {
    let mut world = pool();
    world.create(by_labels("a")).settle();
    world.store.put_node(node("n1"));
    for command in world.cycle() {
        world.carry_out(command, Fate::Lost);
    }
    world.store.put_node(labelled("n1", &[("pool", "gpu")]));
    world.pass(seconds(10));
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.version, tag.created_at.unwrap().0), (0, at(0)));
}

#[test]
fn a_grant_that_was_never_sent_is_not_sent_to_a_node_that_no_longer_matches() {
    let mut world = pool();
    world.create(by_labels("a"));
    for command in world.cycle() {
        world.carry_out(command, Fate::Lost);
    }
    world.store.put_node(node("n1"));
    world.pass(seconds(10));
    assert!(world.tag("n1", "nginx:1").is_none());
}

/// kruise W8, T90
#[test]
fn an_empty_selector_means_all_nodes_also_those_that_join() {
    for fields in [json!({"selector": {}, "parallelism": 9}), json!({"parallelism": 9})] {
        let mut world = World::of(&["n1", "n2"]);
        world.create(job("a", &fields)).settle();
        world.store.put_node(node("n3"));
        world.settle();
        assert_eq!(world.granted("a"), ["n1", "n2", "n3"]);
    }
}

/// kruise T90, and names that no node has
#[test]
fn unknown_names_are_told_in_a_condition_and_an_event() {
    let mut world = World::of(&["n1"]);
    let names = json!({"selector": {"names": ["n1", "n2"]}, "completionPolicy": {"type": "Never"}});
    world.create(job("a", &names)).settle();
    assert_eq!(condition(&world, "a", "NodesFound"), Some((false, "UnknownNodes".to_owned())));
    assert_eq!(world.counts("a")[0], 1);
    let told: Vec<&str> = world.events.iter().map(|event| event.notice.reason).collect();
    assert_eq!(told, ["UnknownNodes"]);
    assert!(world.events[0].notice.note.contains("n2"), "{}", world.events[0].notice.note);
    world.store.put_node(node("n2"));
    world.pass(SECOND);
    assert_eq!(condition(&world, "a", "NodesFound"), Some((true, "AllFound".to_owned())));
    assert_eq!((world.counts("a")[0], world.events.len()), (2, 1));
}

/// kruise T90, T91
#[test]
fn pods_of_the_namespace_take_their_nodes_in_and_out() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(by_pods("a")).settle();
    assert!(world.kernel.watched_namespaces(Kind::Pod).contains("team"));
    assert_eq!(world.status("a").desired, 0, "nothing is said before all pods are known");
    world.observe_pod("team", "p1", pod(Some("n1"), "web"));
    world.observe_pod("team", "p2", pod(Some("n2"), "db"));
    world.observe_pod("team", "p3", pod(None, "web"));
    world.observe_pod("other", "p4", pod(Some("n2"), "web"));
    world.kernel.observe(pods_listed("team"), world.now);
    world.settle();
    assert_eq!(world.granted("a"), ["n1"]);
    world.observe_pod("team", "p3", pod(Some("n2"), "web"));
    world.forget_pod("team", "p1");
    world.pass(SECOND);
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n2".to_owned()], [1, 1, 0, 0]));
}

/// kruise R33
#[test]
fn a_pod_that_ended_holds_no_node() {
    let mut world = World::of(&["n1"]);
    world.create(by_pods("a"));
    world.observe_pod("team", "p1", pod(Some("n1"), "web"));
    world.kernel.observe(pods_listed("team"), world.now);
    world.settle();
    assert_eq!(world.granted("a"), ["n1"]);
    world.observe_pod("team", "p1", PodFacts { is_active: false, ..pod(Some("n1"), "web") });
    world.settle();
    assert!(world.granted("a").is_empty());
}

#[test]
fn pods_that_went_while_nobody_watched_hold_no_node() {
    let mut world = World::of(&["n1"]);
    world.create(by_pods("a"));
    world.observe_pod("team", "p1", pod(Some("n1"), "web"));
    world.kernel.observe(pods_listed("team"), world.now);
    world.settle();
    world.kernel.observe(Input::Unwatched { kind: Kind::Pod, namespace: "team".to_owned() }, world.now);
    world.settle();
    assert_eq!(world.granted("a"), ["n1"], "nothing is known about pods");
    world.kernel.observe(pods_listed("team"), world.now);
    world.settle();
    assert!(world.granted("a").is_empty());
}

/// kruise R48
#[test]
fn a_job_without_a_node_is_complete_at_once() {
    let mut world = World::of(&["n1"]);
    world.create(by_labels("a")).settle();
    let status = world.status("a");
    assert_eq!((status.desired, status.message.as_deref()), (0, Some("job has completed")));
    assert_eq!(condition(&world, "a", "Complete"), Some((true, "Finished".to_owned())));
}

/// kruise R7
#[test]
fn a_node_that_is_made_again_starts_empty() {
    let mut world = World::of(&["n1"]);
    world.create(never("a")).settle();
    world.pull_all();
    world.settle();
    world.store.delete_node("n1");
    world.store.put_node(node("n1"));
    world.pass(SECOND);
    assert_eq!((world.tag("n1", "nginx:1").unwrap().version, world.counts("a")), (0, [1, 1, 0, 0]));
}

/// kruise R7
#[test]
fn a_node_that_leaves_leaves_the_job() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(job("a", &json!({}))).settle();
    world.store.delete_node("n1");
    world.pass(SECOND);
    assert!(!world.store.images.contains_key("n1"));
    assert_eq!((world.granted("a"), world.counts("a")), (vec!["n2".to_owned()], [1, 1, 0, 0]));
}
