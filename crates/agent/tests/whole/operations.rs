//! What an operator sees of a running agent: readiness and metrics (kruise D50, T137, W46).

use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_runtime::Code;
use serde_json::json;

use crate::node::{Node, image, image_of, pass, policy, tag};

const NAME: &str = "reg.example/app";

fn has(node: &Node, line: &str) {
    let metrics = node.metrics.encode();
    assert!(metrics.lines().any(|it| it == format!("prewarm_agent_{line}")), "no {line} in\n{metrics}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_ready_once_it_has_read_its_node_image_and_its_runtime_answers() {
    let mut node = Node::new();
    let failing = |node: &Node| node.health.checks().failing();
    let waits_for_runtime = |node: &Node| {
        let failing = failing(node);
        assert!(matches!(failing.as_slice(), [("runtime", _)]), "{failing:?}");
        assert!(failing[0].1.starts_with("the container runtime does not answer"), "{failing:?}");
        failing[0].1.clone()
    };
    assert_eq!(failing(&node).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["nodeimage", "runtime"]);
    node.fake.stop();
    node.start();
    pass(5.0).await;
    // The answer says why.
    assert!(waits_for_runtime(&node).len() > "the container runtime does not answer: ".len());
    node.fake.start();
    pass(15.0).await;
    assert!(failing(&node).is_empty());
    // An idle agent asks once a minute.
    node.fake.stop();
    pass(90.0).await;
    waits_for_runtime(&node);
    node.fake.start();
    pass(15.0).await;
    assert!(failing(&node).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_idle_agent_answers_the_probe_of_life_and_one_that_hangs_does_not() {
    let mut node = Node::new();
    node.start();
    for _ in 0..10 {
        pass(20.0).await;
        assert_eq!(node.health.alive().failing(), []);
    }
    // A loop that is gone is the same to a probe as one that hangs.
    node.kill().await;
    assert_eq!(node.health.alive().failing(), []);
    pass(80.0).await;
    assert_eq!(node.health.alive().failing(), [("loop", "the loop has not run for 80 s".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn pulls_are_counted_by_result_and_class() {
    let mut node = Node::new();
    node.fake.image("reg.example/app:pulled").takes(Duration::from_secs(20)).size(5000);
    node.fake.image("reg.example/app:present").present();
    let absent = policy(tag("absent"), &json!({ "backoffLimit": 0 }));
    let limited = policy(tag("limited"), &json!({ "backoffLimit": 0 }));
    node.fake.image("reg.example/app:limited").fails(1, Code::Unknown, "429 Too Many Requests");
    node.ask(json!({ NAME: image_of(vec![tag("pulled"), tag("present"), absent, limited]) })).await;
    node.start();
    node.until("the pull", |status| status.pulling == 1 && status.waiting == 0).await;
    has(&node, "tasks{state=\"pulling\",reason=\"\"} 1");
    node.settled(4).await;
    pass(1.0).await;
    has(&node, "pulls_total{result=\"succeeded\",class=\"\"} 1");
    has(&node, "pulls_total{result=\"present\",class=\"\"} 1");
    has(&node, "pulls_total{result=\"failed\",class=\"NotFound\"} 1");
    has(&node, "pulls_total{result=\"failed\",class=\"RateLimited\"} 1");
    has(&node, "tasks{state=\"pulling\",reason=\"\"} 0");
    has(&node, "tasks{state=\"waiting\",reason=\"place\"} 0");
    has(&node, "pulled_bytes_total 5100");
    let writes = node.status_writes();
    has(&node, &format!("api_writes_total{{kind=\"status\",result=\"written\"}} {writes}"));
}

#[tokio::test(start_paused = true)]
async fn however_many_images_and_failures_there_are_the_number_of_series_stays() {
    let mut node = Node::new();
    node.config.parallel = 10;
    let before = node.metrics.encode().lines().count();
    let images: serde_json::Map<_, _> =
        (0..100).map(|number| (format!("reg-{number}.example/{number}"), image(&["1"]))).collect();
    node.ask(images.into()).await;
    node.start();
    node.settled(100).await;
    let after = node.metrics.encode();
    assert!(after.lines().count() < before + 40, "{after}");
    assert!(!after.contains(".example"), "{after}");
    let classes = FailureClass::ALL.len();
    assert_eq!(after.lines().filter(|line| line.contains("result=\"failed\",class=")).count(), classes);
}
