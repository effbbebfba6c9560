//! Connections that die without a word: no request fails by itself, no watch ends, and the agent finds out all the same
//! (reliability L5).

use std::time::Duration;

use prewarm_embedded::faults::{Action, Cut, Faults, Filter, ScriptedFault, Verb};
use serde_json::json;

use crate::node::{Node, docker_config, image, image_of, pass, policy, tag, with_secrets};

const NAME: &str = "reg.example/app";
const APP: &str = "reg.example/app:1";
/// A watch may be silent for so long, and then it is opened anew within seconds.
const BLIND: f64 = 130.0;
/// So soon everything is current again once packets arrive (reliability L5).
const CURRENT: f64 = 30.0;

/// A node with an agent that has nothing to do yet and whose requests meet this.
async fn idle(script: Vec<ScriptedFault>) -> Node {
    let mut node = Node::new();
    node.faults = Faults::scripted(script);
    node.fake.image(APP).takes(Duration::from_secs(1));
    node.ask(json!({})).await;
    node.start();
    node
}

/// The seconds until a change is carried out and reported.
async fn seconds_to_pull(node: &Node) -> f64 {
    let begin = node.seconds();
    node.change(json!({ NAME: image(&["1"]) })).await;
    assert_eq!(node.settled(1).await.succeeded, 1);
    node.seconds() - begin
}

fn at(number: u64, verb: Verb, action: Action) -> ScriptedFault {
    ScriptedFault::at(number, action).of(Filter::verb(verb))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_opened_anew() {
    let node = idle(vec![at(1, Verb::Watch, Action::CutWatch(0, Cut::Silent))]).await;
    node.until("the first pass", |status| status.first_sync_status.is_some()).await;
    let seconds = seconds_to_pull(&node).await;
    assert!(seconds < BLIND, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_that_are_never_answered_and_lists_that_stop_in_the_middle_are_asked_for_again() {
    for fault in [
        at(1, Verb::List, Action::Unanswered),
        at(1, Verb::List, Action::Stalled),
        at(1, Verb::Watch, Action::Unanswered),
    ] {
        let described = format!("{fault:?}");
        let node = idle(vec![fault]).await;
        let seconds = seconds_to_pull(&node).await;
        assert!((20.0..CURRENT).contains(&seconds), "{seconds}: {described}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_never_answered_is_sent_again() {
    let node = idle(vec![]).await;
    node.until("the first pass", |status| status.first_sync_status.is_some()).await;
    // Everything that is sent from here on is carried out, and the agent does not learn of it.
    node.faults.add(ScriptedFault::always(Action::Unanswered).of(Filter::verb(Verb::Patch)));
    seconds_to_pull(&node).await;
    node.faults.clear_script();
    pass(CURRENT).await;
    let writes = node.faults.writes();
    pass(3600.0).await;
    assert_eq!(node.faults.writes(), writes, "nothing is written without need");
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_packets_are_swallowed_pulls_on_and_is_current_soon_after_they_arrive_again() {
    for outage in [30.0, 130.0, 600.0] {
        let node = idle(vec![]).await;
        node.fake.image("reg.example/app:2").takes(Duration::from_secs(20));
        node.change(json!({ NAME: image(&["2"]) })).await;
        node.until("a pull", |status| status.pulling == 1).await;
        node.faults.swallow();
        pass(outage).await;
        assert!(node.fake.has("reg.example/app:2"));
        assert_eq!(node.status().await.succeeded, 0, "nobody can be told");
        node.faults.heal();
        let healed = node.seconds();
        node.until("its end", |status| status.succeeded == 1).await;
        let seconds = node.seconds() - healed;
        assert!(seconds < CURRENT, "{seconds} after {outage}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_whose_secret_is_never_answered_is_not_the_last() {
    let mut node = Node::new();
    node.fake.image(APP).needs("robot", "correct");
    node.secret("pull", &docker_config("reg.example", "robot", "wrong")).await;
    let entry = policy(tag("1"), &json!({ "backoffLimit": 0 }));
    node.ask(json!({ NAME: with_secrets(image_of(vec![entry]), &["pull"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.failed, 1);
    node.faults.add(at(1, Verb::Get, Action::Unanswered));
    pass(70.0).await;
    assert_eq!(node.faults.tally()["unanswered"], 1, "a look has asked for the Secret");
    node.secret("pull", &docker_config("reg.example", "robot", "correct")).await;
    node.until("the pull with the corrected Secret", |status| status.succeeded == 1).await;
}
