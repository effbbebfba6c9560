//! Secrets on their way to the nodes, as far as nodes and jobs show it (kruise R57, R60–R63, W12, W31).

use prewarm_api::kruise::FailureClass;

use super::*;
use crate::cluster::command::Read;
use crate::cluster::secret::{Content, Copy};
use crate::object::SourceKey;
use crate::support::build::{CONFIG, NAMESPACE};

fn source() -> SourceKey {
    SourceKey { namespace: NAMESPACE.to_owned(), name: "regcred".to_owned() }
}

fn private(name: &str, fields: &Value) -> ImagePullJob {
    let mut all =
        json!({"pullSecrets": ["regcred"], "completionPolicy": {"type": "Never"}, "parallelism": 100});
    json_patch::merge(&mut all, fields);
    job(name, &all)
}

fn secrets(world: &World, node: &str) -> Vec<String> {
    let secrets = world.store.images[node].spec.images["nginx"].pull_secrets.clone().unwrap_or_default();
    secrets.into_iter().filter_map(|secret| secret.name).collect()
}

fn fail(world: &mut World, node: &str, class: FailureClass) {
    fail_image(world, node, "nginx:1", class);
}

fn fail_image(world: &mut World, node: &str, image: &str, class: FailureClass) {
    world.report_as(node, image, PullPhase::Failed, |status| status.failure_class = Some(class));
    world.pass(SECOND);
}

/// kruise R60, R61
#[test]
fn a_job_waits_for_the_copy_and_its_nodes_name_it() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({})));
    let commands = world.cycle();
    assert!(patched_nodes(&commands).is_empty());
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    world.settle();
    assert_eq!(secrets(&world, "n1"), world.store.copies.keys().cloned().collect::<Vec<_>>());
    world.pass(SECOND);
    assert_eq!(condition(&world, "a", "SecretsReady"), Some((true, "Copied".to_owned())));
}

/// kruise T72
#[test]
fn a_missing_secret_is_told_and_the_pull_goes_on_without_it() {
    let mut world = World::of(&["n1"]);
    world.create(private("a", &json!({}))).settle();
    world.pass(SECOND);
    assert_eq!(world.granted("a"), ["n1"]);
    assert_eq!(condition(&world, "a", "SecretsReady"), Some((false, "SecretMissing".to_owned())));
    assert_eq!(world.events.iter().map(|event| event.notice.reason).collect::<Vec<_>>(), ["SecretMissing"]);
}

/// kruise W12, R63
#[test]
fn a_failed_node_is_tried_once_more_when_the_secret_appears() {
    let mut world = World::of(&["n1"]);
    world.create(private("a", &json!({}))).settle();
    fail(&mut world, "n1", FailureClass::Unauthorized);
    world.store.sources.insert(source(), 1);
    world.pass(seconds(6));
    let tag = world.tag("n1", "nginx:1").unwrap();
    assert_eq!((tag.version, secrets(&world, "n1").len()), (1, 1));
    fail(&mut world, "n1", FailureClass::Unauthorized);
    world.pass(seconds(600));
    assert_eq!(world.tag("n1", "nginx:1").unwrap().version, 1);
}

/// kruise T52
#[test]
fn a_node_that_did_not_fail_for_lack_of_it_gets_the_secret_without_another_pull() {
    for class in [None, Some(FailureClass::NoSpace)] {
        let mut world = World::of(&["n1"]);
        world.create(private("a", &json!({}))).settle();
        match class {
            None => world.report_all("n1", PullPhase::Succeeded),
            Some(class) => fail(&mut world, "n1", class),
        }
        world.store.sources.insert(source(), 1);
        world.pass(seconds(6));
        assert_eq!((world.tag("n1", "nginx:1").unwrap().version, secrets(&world, "n1").len()), (0, 1));
    }
}

/// design 7
#[test]
fn retries_keep_to_parallelism() {
    let mut world = World::of(&["n1", "n2"]);
    world.create(private("a", &json!({"parallelism": 1}))).settle();
    for node in ["n1", "n2"] {
        fail(&mut world, node, FailureClass::Unauthorized);
    }
    world.store.sources.insert(source(), 1);
    world.pass(seconds(6));
    let versions = |world: &World| ["n1", "n2"].map(|node| world.tag(node, "nginx:1").unwrap().version);
    assert_eq!(versions(&world), [1, 0]);
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.pass(SECOND);
    assert_eq!(versions(&world), [1, 1]);
}

/// kruise W12, R63
#[test]
fn a_late_secret_serves_every_tag_of_an_image() {
    let mut world = World::of(&["n1", "n2"]);
    for (name, image) in [("a", "nginx:1"), ("b", "nginx:2")] {
        world.create(private(name, &json!({"image": image, "parallelism": 1})));
    }
    world.settle();
    for (node, image) in [("n1", "nginx:1"), ("n1", "nginx:2"), ("n2", "nginx:1"), ("n2", "nginx:2")] {
        fail_image(&mut world, node, image, FailureClass::Unauthorized);
    }
    world.store.sources.insert(source(), 1);
    world.pass(seconds(6));
    // The first job goes on to the second node and takes the Secret there, while the second job is still busy.
    world.report("n1", "nginx:1", PullPhase::Succeeded);
    world.pass(SECOND);
    world.report("n1", "nginx:2", PullPhase::Succeeded);
    world.pass(SECOND);
    let versions = |image| ["n1", "n2"].map(|node| world.tag(node, image).unwrap().version);
    assert_eq!((versions("nginx:1"), versions("nginx:2")), ([1, 1], [1, 1]));
}

#[test]
fn a_restart_does_not_take_a_missing_secret_for_one_that_appeared() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({"pullSecrets": ["regcred", "absent"]}))).settle();
    fail(&mut world, "n1", FailureClass::Unauthorized);
    let before = world.tag("n1", "nginx:1").unwrap().version;
    world.restart();
    world.pass(seconds(60));
    assert_eq!(world.tag("n1", "nginx:1").unwrap().version, before);
}

#[test]
fn an_attached_secret_whose_answer_was_lost_hides_nothing() {
    let mut world = World::of(&["n1"]);
    world.create(private("a", &json!({"selector": {"matchLabels": {"pool": "gpu"}}})));
    world.store.put_node(labelled("n1", &[("pool", "gpu")]));
    world.settle();
    world.store.sources.insert(source(), 1);
    world.now = at(6);
    world.settle_with(|command| match command {
        command if written_node(command).is_some() => Fate::Unanswered,
        _ => Fate::Fine,
    });
    assert_eq!(secrets(&world, "n1").len(), 1);
    world.pass(seconds(2));
    world.store.put_node(node("n1"));
    world.pass(SECOND);
    assert!(world.tag("n1", "nginx:1").is_none(), "the task is withdrawn");
}

/// A copy goes within a minute of its source, also under a job that never ends.
#[test]
fn the_copy_of_a_source_that_is_gone_for_a_while_goes() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({}))).settle();
    world.store.sources.remove(&source());
    world.pass(seconds(20));
    assert_eq!(world.store.copies.len(), 1, "whoever replaces a Secret deletes it for a moment");
    for _ in 0..8 {
        world.pass(seconds(5));
    }
    assert!(world.store.copies.is_empty());
    assert_eq!(condition(&world, "a", "SecretsReady"), Some((false, "SecretMissing".to_owned())));
    world.store.sources.insert(source(), 2);
    world.pass(seconds(6));
    assert_eq!(world.store.copies.len(), 1, "one that comes back is copied again");
}

/// What a copy holds is read for the registries of the jobs that name the source, and for no others.
#[test]
fn a_source_is_read_for_the_registries_of_its_jobs() {
    let registries = |commands: &[Command]| -> Vec<Vec<String>> {
        let excerpt = |command: &Command| match command {
            Command::Read(Read::Source(excerpt)) => Some(excerpt.registries.iter().cloned().collect()),
            _ => None,
        };
        commands.iter().filter_map(excerpt).collect()
    };
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({"image": "reg.example/app:1"})));
    let commands = world.cycle();
    assert_eq!(registries(&commands), [["reg.example"]]);
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    world.settle();
    world.create(private("b", &json!({"image": "nginx:1"})));
    let commands = world.cycle();
    assert_eq!(registries(&commands), [["docker.io", "reg.example"]], "at once, not at the next look");
    for command in commands {
        world.carry_out(command, Fate::Fine);
    }
    world.settle();
    assert_eq!((world.granted("a").len(), world.granted("b").len()), (1, 1));
}

/// kruise R57, R62
#[test]
fn a_finished_job_goes_when_its_copy_is_released() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    let fields = json!({"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 5}});
    world.create(private("a", &fields)).settle();
    assert_eq!(world.store.copies.len(), 1);
    world.pull_all();
    world.settle();
    assert_eq!((world.store.copies.len(), world.store.jobs.len()), (1, 1));
    world.pass(seconds(5));
    assert_eq!((world.store.copies.len(), world.store.jobs.len()), (0, 0));
}

/// kruise R60, T69
#[test]
fn a_job_of_the_config_namespace_uses_its_secrets_as_they_are() {
    let mut world = World::of(&["n1"]);
    let mut inside = private("a", &json!({}));
    inside.metadata.namespace = Some(CONFIG.to_owned());
    world.create(inside).settle();
    assert_eq!(world.pass(seconds(60)), 0, "a missing Secret is not written again and again");
    world.report_as("n1", "nginx:1", PullPhase::Failed, |status| {
        status.failure_class = Some(FailureClass::Unauthorized);
    });
    world.pass(SECOND);
    world.store.keep_copy(Copy {
        name: "regcred".to_owned(),
        uid: "regcred".to_owned(),
        source: None,
        references: [].into(),
        mode: None,
        content: Content { type_: "kubernetes.io/dockercfg".to_owned(), fingerprint: 1 },
        is_terminating: false,
    });
    world.pass(SECOND);
    assert_eq!(
        (secrets(&world, "n1"), world.tag("n1", "nginx:1").unwrap().version),
        (vec!["regcred".to_owned()], 1)
    );
    assert_eq!(world.pass(seconds(60)), 0);
}

fn is_copy(command: &Command) -> bool {
    matches!(command, Command::Write(Write { ticket, .. }) if ticket.kind == Kind::Secret)
}

#[test]
fn a_copy_that_cannot_be_written_is_tried_less_and_less_often() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({})));
    let refused = |command: &Command| if is_copy(command) { Fate::Lost } else { Fate::Fine };
    world.pass_with(seconds(3600), refused);
    let tries = world.log.iter().filter(|(_, command)| is_copy(command)).count();
    assert!((10..30).contains(&tries), "{tries}");
    world.pass(seconds(300));
    assert_eq!(world.store.copies.len(), 1);
}

#[test]
fn a_copy_outlives_its_last_job_by_five_seconds() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({"completionPolicy": {"type": "Always"}}))).settle();
    world.pull_all();
    world.pass(seconds(2));
    assert!(world.status("a").completion_time.is_some());
    world.pass(seconds(2));
    assert_eq!(world.store.copies.len(), 1);
    world.pass(seconds(4));
    assert_eq!(world.store.copies.len(), 0);
    assert_eq!(world.store.jobs[&job_key("a")].metadata.finalizers.clone().unwrap_or_default(), [""; 0]);
}

#[test]
fn a_copy_does_not_outlive_a_job_that_is_deleted() {
    let mut world = World::of(&["n1"]);
    world.store.sources.insert(source(), 1);
    world.create(private("a", &json!({"completionPolicy": {"type": "Always"}}))).settle();
    world.pull_all();
    world.pass(seconds(2));
    assert_eq!(world.store.copies.len(), 1);
    world.store.delete_job(&job_key("a"), world.now);
    world.settle();
    assert_eq!((world.store.copies.len(), world.store.jobs.len()), (0, 0));
}
