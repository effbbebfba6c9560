//! Images that come from mirrors alone, on simulated mirrors (ofen A11, A12, A15, W19), and nodes that cannot keep that.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use prewarm_agent::config::{Fallback, Mirrors, NodeMirrors, Verifiers};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, PullPhase};
use prewarm_runtime::Code;
use prewarm_runtime::fake::Fake;
use serde_json::{Value, json};

use crate::node::{Node, image, image_of, owned, pass, policy, tag, tag_of, version, with};

const NAME: &str = "reg.example/app";
const APP: &str = "reg.example/app:1";

/// A node whose mirrors have what its fake says.
fn mirrored() -> Node {
    let mut node = Node::new();
    let fake = node.fake.clone();
    node.config.mirrors = Mirrors::Simulated(Arc::new(move |reference, digest| {
        let fake = fake.clone();
        async move { fake.bring(&reference, digest.as_deref()).await }.boxed()
    }));
    node
}

fn mirror_only(entry: Value) -> Value {
    with(entry, &json!({ "registryPolicy": "MirrorOnly" }))
}

fn pinned(entry: Value, digest: &str) -> Value {
    with(mirror_only(entry), &json!({ "digest": digest }))
}

fn on_node(fake: Fake, mirrors: NodeMirrors) -> Node {
    let mut node = Node::on(fake);
    node.config.mirrors = Mirrors::OfNode(mirrors);
    node
}

async fn refused(mut node: Node) -> ImageTagStatus {
    node.fake.image(APP);
    node.ask(json!({ NAME: image_of(vec![policy(mirror_only(tag("1")), &json!({ "backoffLimit": 0 }))]) }))
        .await;
    node.start();
    node.settled(1).await;
    assert!(node.fake.calls().is_empty(), "the runtime pulled");
    node.tag(NAME, "1").await
}

/// ofen C16, C19
#[tokio::test(start_paused = true)]
async fn an_image_comes_from_mirrors_and_the_runtime_asks_nobody() {
    let mut node = mirrored();
    let digest = node.fake.image(APP).on_mirrors().with_index().digest();
    node.ask(json!({ NAME: image_of(vec![pinned(tag("1"), &digest)]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    let status = node.tag(NAME, "1").await;
    assert_eq!((status.phase, status.digest.as_deref()), (PullPhase::Succeeded, Some(digest.as_str())));
    assert!(node.fake.calls().is_empty() && node.fake.has(APP));
}

#[tokio::test(start_paused = true)]
async fn the_digest_of_an_ordinary_pull_and_of_what_was_there_is_reported() {
    let mut node = Node::new();
    let pulled = node.fake.image(APP).digest();
    let present = node.fake.image("reg.example/app:2").present().digest();
    node.ask(json!({ NAME: image(&["1", "2"]) })).await;
    node.start();
    node.settled(2).await;
    assert_eq!(node.tag(NAME, "1").await.digest, Some(pulled));
    assert_eq!(node.tag(NAME, "2").await.digest, Some(present));
}

/// ofen C17
#[tokio::test(start_paused = true)]
async fn an_image_that_is_removed_is_brought_from_mirrors_again() {
    let mut node = mirrored();
    node.fake.image(APP).on_mirrors();
    node.ask(json!({ NAME: image_of(vec![mirror_only(tag("1"))]) })).await;
    node.start();
    node.settled(1).await;
    assert!(node.fake.remove(APP));
    node.until("the image again", |_| node.fake.has(APP)).await;
    assert_eq!(node.fake.brought(), [APP, APP]);
    assert!(node.fake.calls().is_empty());
}

/// ofen C20
#[tokio::test(start_paused = true)]
async fn mirrors_that_fail_use_up_the_attempts() {
    let mut node = mirrored();
    node.fake.image(APP).mirrors_fail(9, FailureClass::Unreachable, "a mirror answers 500");
    node.ask(json!({ NAME: image_of(vec![policy(mirror_only(tag("1")), &json!({ "backoffLimit": 1 }))]) }))
        .await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let status = node.tag(NAME, "1").await;
    assert_eq!((status.failure_class, status.failed_attempts), (Some(FailureClass::Unreachable), 2));
    assert!(status.message.unwrap().contains("a mirror answers 500"));
}

/// ofen C21, C22, C49
#[tokio::test(start_paused = true)]
async fn what_mirrors_do_not_have_yet_is_no_failure_and_what_the_registry_does_not_have_is_one() {
    for (is_mirror_only, failed) in [(true, 0), (false, 1)] {
        let mut node = mirrored();
        node.fake.image(APP).on_mirrors();
        let entry = |name| {
            let entry = policy(tag(name), &json!({ "backoffLimit": 0 }));
            if is_mirror_only { mirror_only(entry) } else { entry }
        };
        node.ask(json!({ NAME: image_of(vec![entry("1"), entry("2")]) })).await;
        node.start();
        let status = node
            .until("the other image to be missed", |status| {
                status.succeeded == 1
                    && tag_of(status, NAME, "2").is_some_and(|tag| tag.failure_class.is_some())
            })
            .await;
        assert_eq!((status.succeeded, status.failed), (1, failed), "MirrorOnly: {is_mirror_only}");
        let missed = node.tag(NAME, "2").await;
        assert_eq!(missed.failure_class, Some(FailureClass::NotFound));
        assert_eq!(
            missed.message.unwrap().starts_with("no mirror of this node has reg.example/app:2 yet"),
            is_mirror_only
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_mirrors_get_is_there_within_half_a_minute() {
    let mut node = mirrored();
    let script = node.fake.image(APP);
    let entry = policy(mirror_only(tag("1")), &json!({ "backoffLimit": 0 }));
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    node.start();
    pass(3600.0).await;
    assert_eq!(node.tag(NAME, "1").await.phase, PullPhase::Pulling);
    script.on_mirrors();
    node.settled(1).await;
    assert!(node.seconds() < 3632.0, "{}", node.seconds());
}

/// ofen C46
#[tokio::test(start_paused = true)]
async fn an_image_that_is_there_is_a_success_unless_it_has_to_stand_for_another_digest() {
    let mut node = mirrored();
    let here = node.fake.image(APP).present().digest();
    node.ask(json!({ NAME: image_of(vec![pinned(tag("1"), &here)]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!(node.fake.brought().is_empty());
    let moved = node.fake.image(APP).moves().on_mirrors().digest();
    node.change(json!({ NAME: image_of(vec![version(pinned(tag("1"), &moved), 1)]) })).await;
    node.until("the other image", |status| {
        tag_of(status, NAME, "1").is_some_and(|tag| tag.digest.as_deref() == Some(moved.as_str()))
    })
    .await;
    assert_eq!(node.fake.brought(), [APP]);
}

/// ofen C47
#[tokio::test(start_paused = true)]
async fn a_task_that_is_withdrawn_brings_nothing_more() {
    let mut node = mirrored();
    node.fake.image(APP).on_mirrors().takes(Duration::from_mins(1));
    node.ask(json!({ NAME: image_of(vec![mirror_only(tag("1"))]) })).await;
    node.start();
    node.until("the beginning", |_| !node.fake.brought().is_empty()).await;
    node.patch(json!({ "spec": { "images": { NAME: null } } })).await;
    pass(120.0).await;
    assert!(!node.fake.has(APP));
}

/// ofen C48
#[tokio::test(start_paused = true)]
async fn several_owners_of_one_image_bring_it_once() {
    let mut node = mirrored();
    node.fake.image(APP).on_mirrors();
    let entry = owned(mirror_only(tag("1")), "one");
    let both = with(
        entry.clone(),
        &json!({ "ownerReferences": [entry["ownerReferences"][0].clone(), owned(tag("1"), "two")["ownerReferences"][0].clone()] }),
    );
    node.ask(json!({ NAME: image_of(vec![both]) })).await;
    node.start();
    node.settled(1).await;
    assert_eq!(node.fake.brought(), [APP]);
}

#[tokio::test(start_paused = true)]
async fn a_killed_agent_goes_on_with_the_policy_that_is_asked() {
    let mut node = mirrored();
    node.fake.image(APP).on_mirrors().takes(Duration::from_mins(1));
    node.ask(json!({ NAME: image_of(vec![mirror_only(tag("1"))]) })).await;
    node.start();
    node.until("the beginning", |_| !node.fake.brought().is_empty()).await;
    node.kill().await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(node.fake.brought(), [APP, APP]);
    assert!(node.fake.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_registry_is_asked_at_once_when_the_policy_no_longer_forbids_it() {
    let mut node = mirrored();
    node.fake.image(APP);
    node.ask(json!({ NAME: image_of(vec![mirror_only(tag("1"))]) })).await;
    node.start();
    pass(300.0).await;
    node.change(json!({ NAME: image_of(vec![with(tag("1"), &json!({ "registryPolicy": "Default" }))]) }))
        .await;
    let asked = node.seconds();
    node.settled(1).await;
    assert!(node.seconds() - asked < 2.0, "{}", node.seconds() - asked);
    assert_eq!(node.fake.calls_of(APP).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cri_o_refuses_and_says_why_and_which_flag_decides() {
    let mirrors = NodeMirrors { verifiers: Verifiers::None, ..NodeMirrors::default() };
    let message = refused(on_node(Fake::crio(), mirrors)).await.message.unwrap();
    assert!(message.contains("MirrorOnly cannot be kept with cri-o"), "{message}");
    assert!(message.ends_with("let the runtime pull with --mirror-only-fallback=runtime"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn cri_o_pulls_by_itself_if_the_flag_says_so() {
    let mirrors = NodeMirrors { fallback: Fallback::Runtime, ..NodeMirrors::default() };
    let mut node = on_node(Fake::crio(), mirrors);
    node.fake.image(APP).fails(1, Code::Unknown, "connection refused");
    node.ask(json!({ NAME: image_of(vec![mirror_only(tag("1"))]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert_eq!(node.fake.calls_of(APP).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_runtime_pulls_instead_has_to_be_the_image_that_was_asked_for() {
    let mirrors = NodeMirrors { fallback: Fallback::Runtime, ..NodeMirrors::default() };
    let mut node = on_node(Fake::crio(), mirrors);
    let found = node.fake.image(APP).digest();
    let wanted = format!("sha256:{}", "7".repeat(64));
    let entry = policy(pinned(tag("1"), &wanted), &json!({ "backoffLimit": 0 }));
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let message = node.tag(NAME, "1").await.message.unwrap();
    assert!(message.contains(&format!("pulled {found}")) && message.contains(&wanted), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_the_registry_lacks_that_the_runtime_asks_instead_is_a_failure() {
    let mirrors = NodeMirrors { fallback: Fallback::Runtime, ..NodeMirrors::default() };
    let mut node = on_node(Fake::crio(), mirrors);
    let entry = policy(mirror_only(tag("1")), &json!({ "backoffLimit": 1 }));
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    let status = node.tag(NAME, "1").await;
    assert_eq!((status.failure_class, status.failed_attempts), (Some(FailureClass::NotFound), 2));
}

#[tokio::test(start_paused = true)]
async fn image_verifiers_are_not_passed_by_whatever_else_is_allowed() {
    for fallback in [Fallback::Refuse, Fallback::Runtime] {
        let mirrors = NodeMirrors { fallback, ..NodeMirrors::default() };
        let message = refused(on_node(Fake::new(), mirrors)).await.message.unwrap();
        assert!(message.contains("may have image verifiers"), "{message}");
        assert!(message.ends_with("give the agent --image-verifiers=none"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_containerd_that_fails_the_trial_refuses_and_says_so() {
    // The fake has no content store that can be written.
    let mirrors = NodeMirrors { verifiers: Verifiers::None, ..NodeMirrors::default() };
    let message = refused(on_node(Fake::new(), mirrors)).await.message.unwrap();
    assert!(message.contains("a trial at its start failed"), "{message}");
}
