use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::PostParams;
use prewarm_api::kruise::FailureClass;
use prewarm_clock::TokioClock;
use prewarm_embedded::{Options, Server};
use prewarm_plan::agent::kruise;
use serde_json::{Value, json};

use super::*;

const BEGINNING: &str = "2030-02-28T12:00:00Z";

struct World {
    server: Server,
    clock: Arc<TokioClock>,
    metrics: Metrics,
}

async fn world() -> World {
    let beginning: Timestamp = BEGINNING.parse().unwrap();
    let clock = Arc::new(TokioClock::starting_at(beginning));
    let server =
        Server::new(Arc::new(prewarm_embedded::TokioClock::starting_at(beginning)), Options::default());
    let shop = serde_json::from_value(json!({ "metadata": { "name": "shop" } })).unwrap();
    Api::<Namespace>::all(server.client()).create(&PostParams::default(), &shop).await.unwrap();
    World { server, clock, metrics: Metrics::new() }
}

impl World {
    /// Events that are written in the background.
    fn start(&self) -> Events {
        let client = self.server.client();
        let (events, writer) = events(client, "node-1", self.clock.clone(), self.metrics.clone());
        tokio::spawn(writer.run());
        events.set_uid(Some("uid-of-node-1".to_owned()));
        events
    }

    /// Every event in a namespace, oldest first, without what only a server adds.
    async fn written(&self, namespace: &str) -> Vec<Value> {
        let api = Api::<Event>::namespaced(self.server.client(), namespace);
        let mut events = api.list(&kube::api::ListParams::default()).await.unwrap().items;
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        events.into_iter().map(|event| json!({
            "regarding": event.regarding, "type": event.type_, "reason": event.reason, "note": event.note,
            "count": event.series.map(|series| series.count),
        })).collect()
    }

    async fn notes(&self, namespace: &str) -> Vec<String> {
        let events = self.written(namespace).await;
        events.iter().map(|event| event["note"].as_str().unwrap().to_owned()).collect()
    }

    fn count(&self, metric: &str) -> u64 {
        let text = self.metrics.encode();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("prewarm_agent_{metric} ")));
        line.unwrap().parse().unwrap()
    }
}

fn ending(tag: &str, failure: Option<&str>) -> Ending {
    let owner = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "namespace": "shop", "name": "warm", "uid": "uid-of-warm",
    });
    let entry =
        json!({ "tag": tag, "pullPolicy": { "ttlSecondsAfterFinished": 1 }, "ownerReferences": [owner] });
    let spec = json!({ "images": { "registry.example/web": { "tags": [entry] } } });
    let task = kruise::read(&spec).tasks.into_values().next().unwrap();
    let result = match failure {
        Some(message) => Ended::Failed { class: FailureClass::NotFound, message: Some(message.to_owned()) },
        None => Ended::Pulled { bytes: None, results: None },
    };
    Ending { task, result, took: Duration::from_millis(1234) }
}

/// Lets everything happen that is due within this time.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

const MOMENT: Duration = Duration::from_millis(1);

fn node_image_reference() -> Value {
    json!({ "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "name": "node-1", "uid": "uid-of-node-1" })
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_succeeded_is_an_event_of_the_node_image_in_the_default_namespace() {
    let world = world().await;
    world.start().record(&ending("v1", None));
    pass(MOMENT).await;
    let wanted = json!({
        "regarding": node_image_reference(), "type": "Normal", "reason": "PullImageSucceed",
        "note": "registry.example/web:v1 pulled in 1.2 s", "count": null,
    });
    assert_eq!(world.written("default").await, [wanted]);
    assert_eq!(world.written("shop").await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn the_event_says_if_the_image_was_there_already() {
    let world = world().await;
    world.start().record(&Ending { result: Ended::Present, ..ending("v1", None) });
    pass(MOMENT).await;
    assert_eq!(world.notes("default").await, ["registry.example/web:v1 was on the node already"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_event_of_the_node_image_and_of_each_owner() {
    let world = world().await;
    world.start().record(&ending("v1", Some("cannot pull web:v1: not found")));
    pass(MOMENT).await;
    let on_node_image = json!({
        "regarding": node_image_reference(), "type": "Warning", "reason": "PullImageFailed",
        "note": "cannot pull web:v1: not found", "count": null,
    });
    let on_job = json!({
        "regarding": {
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
            "namespace": "shop", "name": "warm", "uid": "uid-of-warm",
        },
        "type": "Warning", "reason": "PullImageFailed",
        "note": "on node node-1: cannot pull web:v1: not found", "count": null,
    });
    assert_eq!(world.written("default").await, [on_node_image]);
    assert_eq!(world.written("shop").await, [on_job]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_no_event_of_an_image_prefetch_or_a_node_image_set() {
    let world = world().await;
    let mut failure = ending("v1", Some("cannot pull web:v1: not found"));
    failure.task.owners[0].kind = Some("ImagePrefetch".to_owned());
    failure.task.owners[0].api_version = Some("ofen.cybozu.io/v1".to_owned());
    failure.task.owners[0].uid = Some("uid-of-warm/0123456789abcdef".to_owned());
    let refusal = Refusal { class: FailureClass::Unauthorized, message: "no credentials".to_owned() };
    let refused = OwnerResult { uid: "uid-of-warm/0123456789abcdef".to_owned(), refusal: Some(refusal) };
    let pulled = Ended::Pulled { bytes: None, results: Some(vec![refused]) };
    let events = world.start();
    events.record(&Ending { result: pulled, ..failure.clone() });
    events.record(&failure);
    pass(MOMENT).await;
    assert_eq!(world.written("shop").await, Vec::<Value>::new());
    assert_eq!(world.notes("default").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_recorded_it_and_when() {
    let world = world().await;
    let events = world.start();
    pass(Duration::from_secs(90)).await;
    events.record(&ending("v1", None));
    pass(MOMENT).await;
    let api = Api::<Event>::namespaced(world.server.client(), "default");
    let event = api.list(&kube::api::ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(event.reporting_controller.as_deref(), Some("prewarm-agent"));
    assert_eq!(event.reporting_instance.as_deref(), Some("node-1"));
    assert_eq!(event.action.as_deref(), Some("PullImage"));
    assert_eq!(event.event_time.unwrap().0.to_string(), "2030-02-28T12:01:30Z");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_fail_alike_record_one_event_of_the_job() {
    let world = world().await;
    for node in 0..50 {
        let (events, writer) = events(
            world.server.client(),
            &format!("node-{node}"),
            world.clock.clone(),
            world.metrics.clone(),
        );
        tokio::spawn(writer.run());
        events.record(&ending("v1", Some("cannot pull web:v1: not found")));
    }
    pass(MOMENT).await;
    assert_eq!(world.written("shop").await.len(), 1);
    assert_eq!(world.written("default").await.len(), 50);
    assert_eq!(world.count("events_dropped_total"), 0);
}
