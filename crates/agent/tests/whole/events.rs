//! What events people see (kruise D24, W27, W43).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use prewarm_runtime::Code;
use serde_json::{Map, Value, json};

use crate::node::{NODE, Node, image, image_of, owned, pass, policy, tag, with};

const NAME: &str = "reg.example/app";

#[tokio::test(start_paused = true)]
async fn a_pull_that_succeeds_is_an_event_of_the_node_image() {
    let mut node = Node::new();
    node.fake.image("reg.example/app:1").takes(Duration::from_secs(4));
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.settled(1).await;
    pass(1.0).await;
    let uid = node.api().get(NODE).await.unwrap().uid();
    let [event] = <[Event; 1]>::try_from(node.events().await).unwrap();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let said = [&event.type_, &event.reason, &event.note, &event.reporting_controller].map(text);
    assert_eq!(said, ["Normal", "PullImageSucceed", "reg.example/app:1 pulled in 4.0 s", "prewarm-agent"]);
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    let regarding = event.regarding.unwrap();
    assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("NodeImage"), Some(NODE)));
    assert_eq!(regarding.uid, uid);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_event_of_every_job_and_of_the_node_image() {
    let mut node = Node::new();
    let two = |job: &str| owned(tag("absent"), job)["ownerReferences"][0].clone();
    let entry = with(tag("absent"), &json!({ "ownerReferences": [two("one"), two("other")] }));
    let entry = policy(entry, &json!({ "backoffLimit": 0 }));
    node.ask(json!({ NAME: image_of(vec![entry]) })).await;
    node.start();
    node.settled(1).await;
    pass(1.0).await;
    let mut regarding: Vec<(String, String, String)> = Vec::new();
    for event in node.events().await {
        let about = event.regarding.unwrap();
        regarding.push((about.kind.unwrap(), about.name.unwrap(), about.uid.unwrap_or_default()));
        let said = [event.type_.as_deref(), event.reason.as_deref()];
        assert_eq!(said, [Some("Warning"), Some("PullImageFailed")]);
        assert!(
            event.note.unwrap().contains("cannot pull reg.example/app:absent: not found (attempt 1 of 1)")
        );
    }
    regarding.sort();
    let names: Vec<_> = regarding.iter().map(|(kind, name, _)| format!("{kind} {name}")).collect();
    assert_eq!(names, ["ImagePullJob one", "ImagePullJob other", "NodeImage worker-1"]);
    assert_eq!(regarding[0].2, "uid-of-one");
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_that_is_repeated_is_no_event() {
    let mut node = Node::new();
    node.fake.image("reg.example/app:1").fails(3, Code::Unknown, "connection refused");
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    node.settled(1).await;
    pass(1.0).await;
    let events = node.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason.as_deref(), Some("PullImageSucceed"));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_failures_become_a_handful_of_events() {
    // kruise W43.
    let mut node = Node::new();
    node.config.parallel = 100;
    let mut images = Map::new();
    for number in 0..200 {
        let entry = |tag_number: i32| {
            let entry = policy(tag(&format!("v{tag_number}")), &json!({ "backoffLimit": 0 }));
            owned(entry, "job")
        };
        images.insert(format!("reg.example/{number:03}"), image_of((0..5).map(entry).collect()));
    }
    node.ask(Value::Object(images)).await;
    node.start();
    assert_eq!(node.settled(1000).await.failed, 1000);
    pass(3600.0).await;
    let mut by_kind: BTreeMap<String, usize> = BTreeMap::new();
    for event in node.events().await {
        *by_kind.entry(event.regarding.unwrap().kind.unwrap()).or_default() += 1;
    }
    assert_eq!(by_kind.keys().map(String::as_str).collect::<Vec<_>>(), ["ImagePullJob", "NodeImage"]);
    assert!(by_kind.values().all(|count| *count <= 5), "{by_kind:?}");
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_written_hold_up_nothing() {
    use prewarm_embedded::faults::{FaultPlan, Faults, Filter, Rates, Rule, Verb};
    let mut node = Node::new();
    let rates = Rates { refused: 1.0, ..Rates::default() };
    let rule = Rule { applies_to: Filter::verb(Verb::Create).of("events"), rates };
    let plan = FaultPlan { rules: vec![rule], ..FaultPlan::default() };
    node.faults = Faults::new(plan.until(Duration::from_secs(100)), 0);
    node.fake.image("reg.example/app:1");
    node.ask(json!({ NAME: image(&["1"]) })).await;
    node.start();
    assert_eq!(node.settled(1).await.succeeded, 1);
    assert!(node.seconds() < 1.0);
    assert!(node.events().await.is_empty());
    pass(120.0).await;
    assert_eq!(node.events().await.len(), 1, "it is recorded when that is possible");
}
