use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use prewarm_clock::TokioClock;
use prewarm_embedded::faults::{FaultPlan, Faults, Rates};
use prewarm_embedded::{Options, Server};
use serde_json::{Value, json};

use super::*;

const BEGINNING: &str = "2030-02-28T12:00:00Z";

struct World {
    server: Server,
    clock: Arc<TokioClock>,
    tally: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
}

impl Tally for Counts {
    fn wrote(&self, is_written: bool) {
        self.written.fetch_add(u64::from(is_written), Relaxed);
    }

    fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }
}

async fn world() -> World {
    let beginning: Timestamp = BEGINNING.parse().unwrap();
    let clock = Arc::new(TokioClock::starting_at(beginning));
    let server =
        Server::new(Arc::new(prewarm_embedded::TokioClock::starting_at(beginning)), Options::default());
    let shop = serde_json::from_value(json!({ "metadata": { "name": "shop" } })).unwrap();
    Api::<Namespace>::all(server.client()).create(&PostParams::default(), &shop).await.unwrap();
    World { server, clock, tally: Arc::default() }
}

impl World {
    fn recorder(&self, client: Client, instance: &str) -> (Recorder, Writer) {
        let source = Source {
            controller: "prewarm-agent",
            instance: instance.to_owned(),
            action: "PullImage",
            noun: "image",
            is_shared: |about| about.kind.as_deref() != Some("NodeImage"),
            bounds: Bounds::ONE_OF_MANY,
        };
        recorder(client, source, self.clock.clone(), self.tally.clone())
    }

    /// A recorder whose events are written in the background.
    fn start(&self) -> Recorder {
        let (recorder, writer) = self.recorder(self.server.client(), "node-1");
        tokio::spawn(writer.run());
        recorder
    }

    /// Every event in a namespace, oldest first, without the fields that only a server sets.
    async fn written(&self, namespace: &str) -> Vec<Value> {
        let api = Api::<v1::Event>::namespaced(self.server.client(), namespace);
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
}

/// A pull that failed, on the job or on the NodeImage.
fn failure(about: ObjectReference, note: &str) -> Event {
    let reason = Reason::warning("PullImageFailed").of_class("NotFound");
    Event { about, reason, note: note.to_owned() }
}

fn node_image() -> ObjectReference {
    reference("NodeImage", None, "node-1")
}

fn job() -> ObjectReference {
    reference("ImagePullJob", Some("shop"), "warm")
}

fn reference(kind: &str, namespace: Option<&str>, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("apps.kruise.io/v1beta1".to_owned()),
        kind: Some(kind.to_owned()),
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        uid: Some(format!("uid-of-{name}")),
        ..ObjectReference::default()
    }
}

/// Lets this much time pass, with everything that is due in it.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn an_event_is_beside_its_object_or_in_the_default_namespace() {
    let world = world().await;
    let recorder = world.start();
    recorder.record(failure(job(), "cannot pull web:v1"));
    let reason = Reason::normal("PullImageSucceed");
    recorder.record(Event { reason, ..failure(node_image(), "pulled web:v2") });
    pass(MOMENT).await;
    let on_job = json!({
        "regarding": job(), "type": "Warning", "reason": "PullImageFailed", "note": "cannot pull web:v1",
        "count": null,
    });
    let on_node_image = json!({
        "regarding": node_image(), "type": "Normal", "reason": "PullImageSucceed", "note": "pulled web:v2",
        "count": null,
    });
    assert_eq!(world.written("shop").await, [on_job]);
    assert_eq!(world.written("default").await, [on_node_image]);
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_reported_it_and_when() {
    let world = world().await;
    let recorder = world.start();
    pass(Duration::from_secs(90)).await;
    recorder.record(failure(node_image(), "cannot pull web:v1"));
    pass(MOMENT).await;
    let api = Api::<v1::Event>::namespaced(world.server.client(), "default");
    let event = api.list(&kube::api::ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(event.reporting_controller.as_deref(), Some("prewarm-agent"));
    assert_eq!(event.reporting_instance.as_deref(), Some("node-1"));
    assert_eq!(event.action.as_deref(), Some("PullImage"));
    assert_eq!(event.event_time.unwrap().0.to_string(), "2030-02-28T12:01:30Z");
}

#[tokio::test(start_paused = true)]
async fn thousands_of_failures_become_a_few_events() {
    let world = world().await;
    let recorder = world.start();
    for round in 0..100 {
        for number in 0..100 {
            let tag = format!("v{}", round * 100 + number);
            for about in [job(), node_image()] {
                recorder.record(failure(about, &format!("cannot pull web:{tag}")));
            }
        }
        // Not exactly at the end of a window, where the order would be open.
        pass(Duration::from_millis(999)).await;
    }
    pass(Duration::from_mins(10)).await;
    assert_eq!(
        world.notes("default").await,
        [
            "cannot pull web:v99, and 99 more images",
            "cannot pull web:v1099, and 999 more images",
            "cannot pull web:v3099, and 1999 more images",
            "cannot pull web:v7099, and 3999 more images",
            "cannot pull web:v9999, and 2899 more images",
        ]
    );
    assert_eq!(
        world.written("shop").await.len(),
        1,
        "a job gets an event for a class of failure once an hour"
    );
    assert_eq!(world.tally.dropped.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn processes_that_share_an_object_write_one_event() {
    let world = world().await;
    for node in 0..50 {
        let (recorder, writer) = world.recorder(world.server.client(), &format!("node-{node}"));
        tokio::spawn(writer.run());
        recorder.record(failure(job(), "cannot pull web:v1: not found"));
        recorder.record(failure(node_image(), "cannot pull web:v1: not found"));
    }
    pass(MOMENT).await;
    assert_eq!(world.written("shop").await.len(), 1);
    assert_eq!(world.written("default").await.len(), 50);
    assert_eq!(world.tally.dropped.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn another_reason_on_a_shared_object_is_another_event() {
    let world = world().await;
    let recorder = world.start();
    for class in ["NotFound", "Tls"] {
        let reason = Reason::warning("PullImageFailed").of_class(class);
        recorder.record(Event { reason, ..failure(job(), class) });
    }
    recorder.record(Event { reason: Reason::normal("Paused"), ..failure(job(), "paused") });
    pass(MOMENT).await;
    assert_eq!(world.written("shop").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_same_failure_again_counts_its_event_up() {
    let world = world().await;
    let recorder = world.start();
    for _ in 0..3 {
        recorder.record(failure(node_image(), "cannot pull web:v1"));
        pass(Duration::from_secs(2)).await;
    }
    pass(Duration::from_secs(10)).await;
    let counts: Vec<Value> =
        world.written("default").await.iter().map(|event| event["count"].clone()).collect();
    assert_eq!(counts, [3]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_deleted_is_written_again() {
    let world = world().await;
    let recorder = world.start();
    recorder.record(failure(node_image(), "cannot pull web:v1"));
    pass(MOMENT).await;
    let api = Api::<v1::Event>::namespaced(world.server.client(), "default");
    let name =
        api.list(&kube::api::ListParams::default()).await.unwrap().items.remove(0).metadata.name.unwrap();
    api.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    recorder.record(failure(node_image(), "cannot pull web:v1"));
    pass(Duration::from_secs(11)).await;
    assert_eq!(world.notes("default").await, ["cannot pull web:v1"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_waits_until_the_api_server_is_back() {
    let world = world().await;
    let refused = Rates { refused: 1.0, ..Rates::default() };
    let faults = Faults::new(FaultPlan::always(refused).until(Duration::from_secs(25)), 1);
    let (recorder, writer) = world.recorder(faults.client(&world.server), "node-1");
    tokio::spawn(writer.run());
    recorder.record(failure(job(), "cannot pull web:v1"));
    pass(Duration::from_secs(24)).await;
    assert_eq!(world.notes("shop").await, Vec::<String>::new());
    pass(Duration::from_secs(15)).await;
    assert_eq!(world.notes("shop").await, ["cannot pull web:v1"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_instead_of_waiting() {
    let world = world().await;
    // Nobody writes.
    let (recorder, _writer) = world.recorder(world.server.client(), "node-1");
    for _ in 0..=MOST_WAITING {
        recorder.record(failure(job(), "cannot pull web:v1"));
    }
    assert_eq!(world.tally.dropped.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_process_writes_what_is_left() {
    let world = world().await;
    let (recorder, writer) = world.recorder(world.server.client(), "node-1");
    for tag in ["v1", "v2", "v3"] {
        recorder.record(failure(node_image(), &format!("cannot pull web:{tag}")));
    }
    drop(recorder);
    writer.run().await;
    assert_eq!(world.notes("default").await, ["cannot pull web:v3, and 2 more images"]);
    assert_eq!(world.tally.written.load(Relaxed), 1);
}
