//! Credentials from Secrets (kruise D31, D32, T133, W29, W32). kruise D7, D34 and T135 are turned round: each
//! attempt reads them anew.

use prewarm_api::kruise::{FailureClass, ImageTagStatus, PullPhase};
use prewarm_runtime::fake::Call;
use serde_json::json;

use crate::node::{
    Node, always, docker_config, image, image_of, owned, pass, policy, tag, with, with_secrets,
};

const APP: &str = "reg.example/team/app:1";
const NAME: &str = "reg.example/team/app";

/// A node with an image that only this account gets, and an entry by hand that names these Secrets.
async fn private(secrets: &[&str]) -> Node {
    let node = Node::new();
    node.fake.image(APP).needs("robot", "hunter2-correct");
    let entry = policy(tag("1"), &json!({ "backoffLimit": 1 }));
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), secrets) })).await;
    node
}

fn users(calls: &[Call]) -> Vec<Option<&str>> {
    calls.iter().map(|call| call.username.as_deref()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_secret_for_the_registry_is_used_and_bound_to_its_host() {
    let mut node = private(&["good"]).await;
    node.secret("good", &docker_config("reg.example", "robot", "hunter2-correct")).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    let calls = node.fake.calls();
    assert_eq!(users(&calls), [Some("robot")]);
    assert_eq!(calls[0].server_address.as_deref(), Some("https://reg.example"));
}

#[tokio::test(start_paused = true)]
async fn the_credential_of_the_longest_path_is_tried_first_and_then_the_others() {
    let mut node = private(&["wide", "narrow", "elsewhere"]).await;
    node.secret("wide", &docker_config("reg.example", "robot", "hunter2-correct")).await;
    node.secret("narrow", &docker_config("reg.example/team", "narrow", "wrong-password")).await;
    node.secret("elsewhere", &docker_config("other.example", "elsewhere", "wrong-password")).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(users(&node.fake.calls()), [Some("narrow"), Some("robot")]);
}

#[tokio::test(start_paused = true)]
async fn a_pull_without_credentials_is_tried_last_so_that_a_stale_secret_keeps_no_public_image_away() {
    // kruise W32. The fake refuses whoever shows another account, so the first call is answered by script.
    let mut node = Node::new();
    node.fake.image(APP).fails(1, prewarm_runtime::Code::Unknown, "unauthorized: authentication required");
    node.ask(json!({ NAME: with_secrets(image(&["1"]), &["stale"]) })).await;
    node.secret("stale", &docker_config("reg.example", "leaver", "expired-password")).await;
    node.start();
    let status = node.settled(1).await;
    assert_eq!(status.succeeded, 1);
    assert_eq!(users(&node.fake.calls()), [Some("leaver"), None]);
    assert_eq!(node.tag(NAME, "1").await.failed_attempts, 0, "it was one attempt");
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_fail_with_a_class_and_advice() {
    let mut node = private(&["wrong"]).await;
    node.secret("wrong", &docker_config("reg.example", "robot", "hunter2-wrong")).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let tag = node.tag(NAME, "1").await;
    assert_eq!(tag.failure_class, Some(FailureClass::Unauthorized));
    let message = tag.message.unwrap();
    assert!(message.contains("not authorized (attempt 2 of 2)"), "{message}");
    assert!(message.ends_with("give a pull secret that reg.example accepts for team/app"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_named() {
    let mut node = private(&["absent"]).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let message = node.tag(NAME, "1").await.message.unwrap();
    let wanted = "credentials: secret kruise-daemon-config/absent does not exist; give a pull secret";
    assert!(message.contains(wanted), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_for_another_registry_is_named_with_the_registry_it_lacks() {
    let mut node = private(&["other"]).await;
    node.secret("other", &docker_config("elsewhere.example", "robot", "hunter2")).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let message = node.tag(NAME, "1").await.message.unwrap();
    let wanted = "credentials: secret kruise-daemon-config/other has no entry for reg.example; give a pull";
    assert!(message.contains(wanted) && !message.contains("hunter2"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_secret_is_named_and_hides_no_good_one() {
    let mut node = private(&["broken", "good"]).await;
    node.raw_secret("broken", b"{ \"auths\": hunter2-broken").await;
    node.secret("good", &docker_config("reg.example", "robot", "hunter2-wrong")).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let message = node.tag(NAME, "1").await.message.unwrap();
    assert!(message.contains("kruise-daemon-config/broken") && !message.contains("hunter2"), "{message}");
    assert!(users(&node.fake.calls()).contains(&Some("robot")));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_corrected_between_two_attempts_is_used_by_the_next() {
    // kruise T135 turned round: the daemon of old kept a Secret for ten minutes, and a worker for ever.
    let mut node = private(&["rotated"]).await;
    node.secret("rotated", &docker_config("reg.example", "robot", "hunter2-old")).await;
    node.start();
    node.fake.ended(2).await;
    node.secret("rotated", &docker_config("reg.example", "robot", "hunter2-correct")).await;
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(users(&node.fake.calls()), [Some("robot"), None, Some("robot")]);
    assert_eq!(node.tag(NAME, "1").await.failed_attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_comes_late_gives_an_entry_by_hand_one_more_round() {
    let mut node = private(&["late"]).await;
    node.start();
    node.settled(1).await;
    pass(300.0).await;
    assert_eq!(node.fake.calls().len(), 2, "no Secret, no more attempts");
    node.secret("late", &docker_config("reg.example", "robot", "hunter2-correct")).await;
    let came = node.seconds();
    node.until("the image", |status| status.succeeded == 1).await;
    assert!(node.seconds() - came < 62.0);
    assert_eq!(node.fake.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_more_round_is_all_that_late_secrets_give() {
    let mut node = private(&["late"]).await;
    node.start();
    node.settled(1).await;
    for password in ["hunter2-one", "hunter2-two", "hunter2-three"] {
        node.secret("late", &docker_config("reg.example", "robot", password)).await;
        pass(150.0).await;
    }
    // Two attempts without it, and one more round of two with two credentials each: robot's and nobody's.
    assert_eq!(node.fake.calls().len(), 2 + 4);
    assert_eq!(node.status().await.failed, 1);
}

#[tokio::test(start_paused = true)]
async fn for_the_task_of_a_job_the_controller_decides_about_late_secrets() {
    let mut node = private(&["late"]).await;
    let entry = owned(policy(tag("1"), &json!({ "backoffLimit": 1 })), "job");
    node.change(json!({ NAME: { "tags": [entry] } })).await;
    node.start();
    node.settled(1).await;
    node.secret("late", &docker_config("reg.example", "robot", "hunter2-correct")).await;
    pass(300.0).await;
    assert_eq!((node.fake.calls().len(), node.status().await.failed), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_not_asked_for_again_and_again() {
    // kruise W29: the daemon of old read missing Secrets with every poll, for ever.
    let mut node = private(&["absent"]).await;
    let entry = owned(tag("1"), "job");
    node.change(json!({ NAME: with(image_of(vec![entry]), &json!({})) })).await;
    node.start();
    node.settled(1).await;
    let reads = || node.faults.journal().iter().filter(|entry| entry.path.contains("/secrets/")).count();
    let before = reads();
    pass(3600.0).await;
    assert_eq!(reads(), before);
    assert!(before <= 4, "one read for each attempt: {before}");
}

/// kruise W30
#[tokio::test(start_paused = true)]
async fn a_task_is_never_pulled_with_the_secret_of_another_tenants_job() {
    let mut node = Node::new();
    node.fake.image("reg.example/app:1").needs("robot", "right");
    node.fake.image("reg.example/app:2").needs("robot", "right");
    node.secret("pull", &docker_config("reg.example", "robot", "right")).await;
    let entry = |name: &str, job: &str| owned(policy(tag(name), &json!({ "backoffLimit": 0 })), job);
    let entries = image_of(vec![entry("1", "job"), entry("2", "stranger")]);
    node.ask(json!({ "reg.example/app": with_secrets(entries, &["pull"]) })).await;
    node.start();
    let status = node.settled(2).await;
    let phase = |name: &str| crate::node::tag_of(&status, "reg.example/app", name).unwrap().phase;
    assert_eq!((phase("1"), phase("2")), (PullPhase::Succeeded, PullPhase::Failed));
    let asked = node.fake.calls_of("reg.example/app:2");
    assert!(!asked.is_empty() && asked.iter().all(|call| call.username.is_none()), "{asked:#?}");
}

/// A node of a cluster with three tenants.
fn tenants() -> Node {
    let node = Node::new();
    for tenant in ["red", "blue", "team"] {
        node.server.install_namespace(tenant);
    }
    node
}

/// A Secret of the config namespace that serves one job of a namespace, with one login.
async fn copy(node: &Node, name: &str, served: &str, user: &str, password: &str) {
    node.copy(name, served, &docker_config("reg.example", user, password)).await;
}

/// An entry with these owners, each as namespace and name.
fn owned_by(entry: serde_json::Value, owners: &[(&str, &str)]) -> serde_json::Value {
    let owner = |(namespace, name): &(&str, &str)| {
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
            "namespace": namespace, "name": name, "uid": format!("uid-of-{namespace}-{name}"),
        })
    };
    with(entry, &json!({ "ownerReferences": owners.iter().map(owner).collect::<Vec<_>>() }))
}

/// For whom the result of a tag counts, and how it was refused to others.
fn results(tag: &ImageTagStatus) -> Vec<(&str, Option<FailureClass>)> {
    let results = tag.owner_results.as_ref().expect("it was pulled with somebody's credentials");
    results.iter().map(|result| (result.uid.as_str(), result.failure_class)).collect()
}

fn once(entry: serde_json::Value) -> serde_json::Value {
    policy(entry, &json!({ "backoffLimit": 0 }))
}

/// kruise S7, W30
#[tokio::test(start_paused = true)]
async fn of_two_tenants_of_one_tag_only_the_one_with_the_credentials_succeeds() {
    for entry in [once(tag("1")), always(once(tag("1")))] {
        let mut node = tenants();
        node.fake.image(APP).needs("robot", "right");
        copy(&node, "pull", "red/warm", "robot", "right").await;
        let entry = owned_by(entry, &[("blue", "rider"), ("red", "warm")]);
        node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &["pull"]) })).await;
        node.start();
        assert_eq!(node.settled(1).await.succeeded, 1);
        let tag = node.tag(NAME, "1").await;
        let unauthorized = Some(FailureClass::Unauthorized);
        assert_eq!(results(&tag), [("uid-of-blue-rider", unauthorized), ("uid-of-red-warm", None)]);
        let refused = &tag.owner_results.unwrap()[0].message.clone().unwrap();
        assert!(
            !refused.contains("pull-") && !refused.contains("red/") && !refused.contains("robot"),
            "{refused}"
        );
        assert_eq!(users(&node.fake.calls()), [Some("robot"), None], "no layer is fetched twice");
        pass(1.0).await;
        let told: Vec<String> =
            node.events().await.into_iter().filter_map(|event| event.regarding?.name).collect();
        assert!(told.contains(&"rider".to_owned()) && !told.contains(&"warm".to_owned()), "{told:?}");
    }
}

/// kruise S7
#[tokio::test(start_paused = true)]
async fn two_tenants_with_credentials_of_their_own_are_both_asked_for_and_the_image_is_pulled_once() {
    let mut node = tenants();
    node.fake.image(APP).needs("robot", "right").takes(std::time::Duration::from_mins(1));
    copy(&node, "one", "red/warm", "robot", "right").await;
    copy(&node, "two", "blue/warm", "robot", "right").await;
    let entry = owned_by(once(tag("1")), &[("red", "warm"), ("blue", "warm")]);
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &["one", "two"]) })).await;
    node.start();
    node.settled(1).await;
    assert_eq!(results(&node.tag(NAME, "1").await), [("uid-of-blue-warm", None), ("uid-of-red-warm", None)]);
    assert_eq!(node.fake.calls().len(), 1, "the same login need not be shown twice");
    assert!(node.seconds() < 62.0);
}

#[tokio::test(start_paused = true)]
async fn a_public_image_counts_for_everybody() {
    let mut node = tenants();
    node.fake.image(APP);
    let entry = owned_by(tag("1"), &[("red", "warm"), ("blue", "warm")]);
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    node.start();
    node.settled(1).await;
    assert_eq!(node.tag(NAME, "1").await.owner_results, None);
    assert_eq!(node.fake.calls().len(), 1);
}

/// What is there is there for every pod, as the kubelet sees it.
#[tokio::test(start_paused = true)]
async fn what_is_present_satisfies_if_not_present_for_everybody() {
    let mut node = tenants();
    node.fake.image(APP).needs("robot", "right").present();
    let entry = owned_by(tag("1"), &[("blue", "rider")]);
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(node.tag(NAME, "1").await.owner_results, None);
    assert!(node.fake.calls().is_empty());
}

/// One tenant cannot crowd out another with wrong logins, however many and however well they fit.
#[tokio::test(start_paused = true)]
async fn wrong_logins_of_one_tenant_do_not_crowd_out_anothers_right_one() {
    let mut node = tenants();
    node.fake.image(APP).needs("robot", "right");
    let logins: serde_json::Map<String, serde_json::Value> = (1..=40)
        .map(|n| {
            let path = &"/team/app"[..9 - n % 8];
            (format!("reg.example{path}?{n}"), json!({ "username": format!("wrong{n}"), "password": "x" }))
        })
        .collect();
    node.copy("many", "blue/rider", &json!({ "auths": logins })).await;
    copy(&node, "pull", "red/warm", "robot", "right").await;
    let entry = owned_by(once(tag("1")), &[("blue", "rider"), ("red", "warm")]);
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &["many", "pull"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    let unauthorized = Some(FailureClass::Unauthorized);
    let tag = node.tag(NAME, "1").await;
    assert_eq!(results(&tag), [("uid-of-blue-rider", unauthorized), ("uid-of-red-warm", None)]);
}

/// The 65th tenant of a shared image, whose Secret stands behind all others.
#[tokio::test(start_paused = true)]
async fn a_tenants_own_secret_is_found_behind_hundreds_of_others() {
    let mut node = tenants();
    node.fake.image(APP).needs("robot", "right");
    // The name that a copy of the Secret `regcred` of the namespace `team` has.
    let own = "regcred-fbcc9d";
    copy(&node, own, "team/warm", "robot", "right").await;
    let names: Vec<String> = (0..200).map(|n| format!("gone-{n:06x}")).chain([own.to_owned()]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let entry = owned_by(once(tag("1")), &[("team", "warm")]);
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &names) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1, "{:?}", node.tag(NAME, "1").await.message);
}

#[tokio::test(start_paused = true)]
async fn the_secrets_of_other_tenants_are_in_nobodys_message() {
    let mut node = tenants();
    node.fake.image(APP).needs("robot", "right");
    node.copy("elsewhere", "red/warm", &docker_config("other.example", "robot", "right")).await;
    let entry = owned_by(once(tag("1")), &[("red", "warm"), ("blue", "warm")]);
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &["elsewhere", "gone-000001"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let message = node.tag(NAME, "1").await.message.unwrap();
    assert!(!message.contains("elsewhere") && !message.contains("gone-000001"), "{message}");
    pass(1.0).await;
    let events = node.events().await;
    assert!(!events.is_empty());
    for said in events.into_iter().filter_map(|event| event.note) {
        assert!(!said.contains("elsewhere") && !said.contains("gone-000001"), "{said}");
    }
}

/// For whom a result counts survives the agent.
#[tokio::test(start_paused = true)]
async fn a_restarted_agent_remembers_for_whom_a_result_counts() {
    let mut node = tenants();
    node.fake.image(APP).needs("robot", "right");
    copy(&node, "pull", "red/warm", "robot", "right").await;
    let entry = owned_by(once(tag("1")), &[("blue", "rider"), ("red", "warm")]);
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &["pull"]) })).await;
    node.start();
    node.settled(1).await;
    let before = node.tag(NAME, "1").await;
    node.stop().await;
    node.start();
    pass(120.0).await;
    assert_eq!(node.tag(NAME, "1").await, before);
}
