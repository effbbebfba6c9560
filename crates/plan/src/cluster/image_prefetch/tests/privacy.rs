//! What is private stays private (ofen W22, W23, W25): nobody gets from mirrors what the registry has not given to this object.

use prewarm_api::kruise::{FailureClass, OwnerResult};

use super::*;
use crate::object::SourceKey;
use crate::support::build::{job, uid};

fn with_secret(nodes: usize) -> World {
    let mut world = World::default();
    for number in 0..nodes {
        world.store.put_node(node(&format!("n{number}")));
    }
    world.store.sources.insert(SourceKey { namespace: "team".to_owned(), name: "key".to_owned() }, 1);
    begin(world, &json!({"imagePullSecrets": [{"name": "key"}]}))
}

fn mirrors(world: &World) -> usize {
    let origins = world.store.images.keys().filter_map(|node| world.origin(node, IMAGE));
    origins.filter(|(policy, _)| *policy == MirrorOnly).count()
}

/// ofen C1
#[test]
fn secrets_reach_the_node_that_asks_the_registry_before_it_asks() {
    let world = with_secret(1);
    let set = world.store.sets.values().next().unwrap();
    assert_eq!(set.spec.image_pull_secrets.as_ref().unwrap()[0].name, "key");
    assert_eq!(set.spec.registry_policy, Registry);
    let entry = &world.store.images["n0"].spec.images["nginx"];
    assert_eq!(entry.pull_secrets.as_ref().map(Vec::len), Some(1));
}

#[test]
fn a_node_asks_the_registry_also_for_what_it_has() {
    let mut world = with_secret(4);
    let first = seed(&world);
    let always = prewarm_api::kruise::ImagePullPolicy::Always;
    assert_eq!(world.tag(&first, IMAGE).unwrap().image_pull_policy, always);
    assert_eq!(mirrors(&world), 0);
    world.struggle(&first, IMAGE, FailureClass::Unauthorized, "the registry refused the credentials");
    world.pass(seconds(3600));
    assert_eq!(mirrors(&world), 0, "nobody was let in, so nobody gets it from mirrors");
    world.report(&first, IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    assert!(mirrors(&world) > 0);
}

/// A world whose nodes have the image for a job of others, before an ImagePrefetch begins.
fn brought_for_others(nodes: &[&str]) -> World {
    let mut world = World::of(nodes);
    world.create(job("other", &json!({"parallelism": 9, "completionPolicy": {"type": "Never"}})));
    world.pass(SECOND);
    for name in nodes {
        world.report_as(name, IMAGE, PullPhase::Succeeded, |status| {
            status.owner_results = Some(vec![OwnerResult { uid: uid("other"), ..OwnerResult::default() }]);
        });
    }
    world
}

/// The registry lets the others in, and not the ImagePrefetch.
fn refuse(world: &mut World, node: &str) {
    world.report_as(node, IMAGE, PullPhase::Succeeded, |status| {
        let failure_class = Some(FailureClass::Unauthorized);
        let mine = OwnerResult { uid: world_uid(), failure_class, ..OwnerResult::default() };
        let other = OwnerResult { uid: uid("other"), ..OwnerResult::default() };
        status.owner_results = Some(vec![mine, other]);
    });
}

#[test]
fn what_a_job_of_others_has_brought_counts_for_nobody_else() {
    let mut world = begin(brought_for_others(&["n0", "n1", "n2"]), &json!({}));
    let first = seed(&world);
    assert_eq!((world.prefetch_counts("a"), mirrors(&world)), ([3, 0, 1, 0], 0));
    let version = world.tag(&first, IMAGE).unwrap().version;
    assert_eq!(version, 1, "the registry is asked on behalf of this object");
    refuse(&mut world, &first);
    world.pass(seconds(5));
    assert_eq!((world.prefetch_counts("a"), world.sets("a").len()), ([3, 0, 1, 1], 1), "it was not let in");
    assert_eq!(world.states("a", &first), ["ImageDownloadFailed"]);
}

/// The agent is done with it, and the Secret may be right by now.
#[test]
fn a_node_that_has_the_image_and_was_refused_is_asked_again() {
    let mut world = begin(brought_for_others(&["n0"]), &json!({}));
    for version in 1..4 {
        assert_eq!(world.tag("n0", IMAGE).unwrap().version, version);
        refuse(&mut world, "n0");
        world.pass(seconds(5));
        assert_eq!(world.tag("n0", IMAGE).unwrap().version, version, "not at once");
        world.pass(seconds(10));
    }
    world.report("n0", IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(world.prefetch_counts("a"), [1, 1, 0, 0]);
}

#[test]
fn a_node_that_was_refused_is_asked_again_once_another_one_was_let_in() {
    let mut world = begin(brought_for_others(&["n0", "n1"]), &json!({}));
    let first = seed(&world);
    refuse(&mut world, &first);
    world.pass(seconds(9));
    let before = world.tag(&first, IMAGE).unwrap().version;
    world.pass(seconds(2));
    for other in world.nodes_with("a", Registry).into_iter().filter(|node| *node != first) {
        world.report(&other, IMAGE, PullPhase::Succeeded);
    }
    world.pass(SECOND);
    assert!(world.tag(&first, IMAGE).unwrap().version > before);
    world.report(&first, IMAGE, PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(world.prefetch_counts("a"), [2, 2, 0, 0]);
}

/// The UID of the demand of `a` for the image, as entries name it.
fn world_uid() -> String {
    crate::cluster::demands::parts::parts(&uid("a"), &[IMAGE.to_owned()])[0].uid.to_string()
}

/// ofen R6, W25
#[test]
fn each_generation_asks_the_registry_anew() {
    let mut world = with_secret(4);
    world.finish_prefetch("a");
    let first = seed(&world);
    let before = world.tag(&first, IMAGE).unwrap().version;
    edit(&mut world, &json!({"imagePullSecrets": null}));
    assert_eq!(world.sets("a").values().filter(|(_, generation)| *generation == 2).count(), 1);
    assert_eq!(world.tag(&seed(&world), IMAGE).unwrap().version, before + 1);
    world.finish_prefetch("a");
}

/// ofen W23: a set that somebody else made, as if nodes asked mirrors already, opens nothing to a controller that begins.
#[test]
fn a_forged_set_is_no_proof_that_the_registry_was_asked() {
    let mut world = with_secret(4);
    let first = seed(&world);
    let forged = (0..4).map(|number| format!("n{number}")).filter(|name| *name != first);
    for name in forged {
        let mut set = world.store.sets.values().next().unwrap().clone();
        set.metadata.name = Some(crate::cluster::node_image_set::spec::name("a", "team", &name));
        set.spec.node_name = name;
        set.spec.registry_policy = MirrorOnly;
        world.store.create_set(set);
    }
    let own = crate::cluster::node_image_set::spec::name("a", "team", &first);
    world.store.edit_set(&own, |set| set.spec.registry_policy = MirrorOnly);
    world.restart();
    world.pass(seconds(5));
    assert_eq!(mirrors(&world), 0);
    world.finish_prefetch("a");
    assert_eq!(world.sets("a").len(), 4);
}

/// A job that asks the registry anyway lifts the limit for its entry, and the object asks mirrors again when it is over.
#[test]
fn mirrors_alone_are_asked_while_all_owners_ask_for_that() {
    let mut world = many(2, &json!({}));
    pull(&mut world);
    let name = world.nodes_with("a", MirrorOnly).remove(0);
    world.create(job("b", &json!({"parallelism": 9, "completionPolicy": {"type": "Never"}})));
    world.pass(SECOND);
    assert_eq!(world.origin(&name, IMAGE), Some((Registry, None)));
    assert_eq!(world.nodes_with("a", MirrorOnly), std::slice::from_ref(&name), "its role stays what it is");
    let now = world.now;
    world.store.delete_job(&job_key("b"), now);
    world.pass(SECOND);
    assert_eq!(world.origin(&name, IMAGE), Some((MirrorOnly, None)));
}

/// Nothing begins before the Secret is where agents can read it.
#[test]
fn nothing_is_granted_while_secrets_are_copied() {
    let mut world = World::of(&["n0"]);
    world.store.sources.insert(SourceKey { namespace: "team".to_owned(), name: "key".to_owned() }, 1);
    world.store.create_prefetch(prefetch("a", &json!({"imagePullSecrets": [{"name": "key"}]})));
    let is_copy =
        |command: &Command| matches!(command, Command::Write(write) if write.ticket.kind == Kind::Secret);
    world.pass_with(seconds(10), |command| if is_copy(command) { Fate::Lost } else { Fate::Fine });
    assert_eq!((world.tag("n0", IMAGE), world.sets("a").len()), (None, 0));
    let (_, _, message) = world.prefetch_condition("a", "Ready").unwrap();
    assert!(message.contains("team/key is being copied"), "{message}");
    world.finish_prefetch("a");
}

/// What a node gets from mirrors on behalf of others is no answer of the registry for whoever joins.
#[test]
fn a_node_that_asks_mirrors_for_others_asks_the_registry_anew() {
    let mut world = many(2, &json!({}));
    pull(&mut world);
    let waits = world.nodes_with("a", MirrorOnly).remove(0);
    edit(&mut world, &json!({"nodeSelector": {}}));
    let before = world.tag(&waits, IMAGE).unwrap();
    assert_eq!(before.registry_policy, Some(MirrorOnly));
    let only =
        json!({"nodeSelector": {"matchExpressions": [{"key": "metadata.name", "operator": "DoesNotExist"}]}});
    world.store.create_prefetch(prefetch("b", &only));
    world.pass(SECOND);
    let first = world.nodes_with("b", Registry).remove(0);
    if first == waits {
        let tag = world.tag(&waits, IMAGE).unwrap();
        assert_eq!((tag.registry_policy, tag.version), (None, before.version + 1));
    }
    assert_eq!(world.nodes_with("b", MirrorOnly).len(), 0);
}

/// A person's entry stays what it is, so a node with one for mirrors alone proves nothing, and another one is asked.
#[test]
fn a_node_that_a_person_has_sent_to_mirrors_does_not_stand_for_the_registry() {
    let mut world = World::of(&["n0", "n1"]);
    let by_hand = json!({"registryPolicy": "MirrorOnly"});
    for name in ["n0", "n1"] {
        let mut object = world.store.images[name].clone();
        let entry = crate::support::build::entry(IMAGE).with(&by_hand);
        object.spec.images = crate::support::build::node_image(name, &[entry]).spec.images;
        world.store.put_image(object);
    }
    let mut world = begin(world, &json!({}));
    pull(&mut world);
    assert_eq!(world.prefetch_counts("a")[1], 0);
    world.pass(seconds(60));
    assert_eq!(world.nodes_with("a", MirrorOnly).len(), 0);
    world.restart();
    world.pass(seconds(60));
    assert_eq!(
        world.nodes_with("a", MirrorOnly).len(),
        0,
        "nor does a controller that begins take it for that"
    );
}

/// The agent was asking the registry for others alone when this object came.
#[test]
fn a_pull_for_others_that_was_under_way_is_followed_by_one_for_this_object() {
    let mut world = World::of(&["n0"]);
    world.create(job("other", &json!({"parallelism": 9, "completionPolicy": {"type": "Never"}})));
    world.pass(SECOND);
    world.report("n0", IMAGE, PullPhase::Pulling);
    let mut world = begin(world, &json!({}));
    let before = world.tag("n0", IMAGE).unwrap().version;
    world.report_as("n0", IMAGE, PullPhase::Succeeded, |status| {
        status.owner_results = Some(vec![OwnerResult { uid: uid("other"), ..OwnerResult::default() }]);
    });
    world.pass(SECOND);
    assert_eq!(world.tag("n0", IMAGE).unwrap().version, before + 1, "it is asked on behalf of this object");
    world.finish_prefetch("a");
}

/// What a node loses before the new form was asked for at the registry is brought by nobody on the old one's word.
#[test]
fn what_is_lost_after_a_change_waits_until_the_registry_has_answered_again() {
    let mut world = with_secret(3);
    world.finish_prefetch("a");
    edit(&mut world, &json!({"imagePullSecrets": null}));
    let first = seed(&world);
    let idle = (0..3).map(|number| format!("n{number}")).find(|name| *name != first).unwrap();
    let before = world.tag(&idle, IMAGE).unwrap();
    let lost_at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now);
    world.report_as(&idle, IMAGE, PullPhase::Succeeded, |status| status.lost_at = Some(lost_at));
    world.pass(seconds(5));
    assert_eq!(world.tag(&idle, IMAGE).unwrap().version, before.version);
    world.finish_prefetch("a");
    assert_eq!(world.tag(&idle, IMAGE).unwrap().version, before.version + 1);
}

/// A Secret that is not there keeps nobody from pulling, and the object says why its images may not come.
#[test]
fn a_secret_that_does_not_exist_is_a_condition_until_it_does() {
    let mut world = world(&["n0"], &json!({"imagePullSecrets": [{"name": "key"}]}));
    world.pass(seconds(30));
    assert_eq!(condition(&world, "SecretsReady"), is("False", "SecretMissing"));
    world.store.sources.insert(SourceKey { namespace: "team".to_owned(), name: "key".to_owned() }, 1);
    world.pass(seconds(90));
    assert_eq!(condition(&world, "SecretsReady"), is("True", "Copied"));
    edit(&mut world, &json!({"imagePullSecrets": null}));
    assert_eq!(world.prefetch_condition("a", "SecretsReady"), None);
}
