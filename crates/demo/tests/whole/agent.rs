//! The real agent on the embedded API, pulling from the registry into the store.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use prewarm_agent::config::{Config, Mirrors};
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, run};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, NodeImage, NodeImageStatus, PullPhase};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::{Clock, MachineClock};
use prewarm_demo::Flow;
use prewarm_demo::store::Disk;
use prewarm_embedded::{Options, Server};
use prewarm_plan::agent::disk::MinFree;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::site::{HOST, KIB, LARGE_DISK, Site, full};

const NODE: &str = "worker-1";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// An agent for the node of a site.
struct Worker {
    client: Client,
    stop: oneshot::Sender<()>,
    agent: JoinHandle<()>,
}

impl Worker {
    fn start(site: &Site) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(MachineClock);
        let server = Server::new(clock.clone(), Options::default());
        server.install_definitions();
        server.install_namespace(DEFAULT_CONFIG_NAMESPACE);
        let client = server.client();
        let config = Config {
            node: NODE.to_owned(),
            name: "agent".to_owned(),
            runtime: site.store.runtime_choice(),
            parallel: 2,
            min_free: MinFree::default(),
            drain: Duration::ZERO,
            mirrors: Mirrors::default(),
        };
        let credentials = Arc::new(KubeSecrets::new(client.clone(), DEFAULT_CONFIG_NAMESPACE.to_owned()));
        let (agent, writer) = Agent::new(config, client.clone(), credentials, clock);
        let (stop, stopped) = oneshot::channel();
        let agent = tokio::spawn(async move {
            tokio::join!(run(agent, async move { drop(stopped.await) }), writer.run());
        });
        Self { client, stop, agent }
    }

    /// Requests one tag.
    async fn ask(&self, name: &str, entry: Value) {
        let object: NodeImage = serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": NODE },
            "spec": { "images": { name: entry } },
        }))
        .unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Waits until a condition on the one tag holds. Returns its status and the whole status.
    async fn until(&self, is_so: impl Fn(&ImageTagStatus) -> bool) -> (ImageTagStatus, NodeImageStatus) {
        let look = async {
            let params = WatchParams::default();
            let mut seen = self.api().watch(&params, "0").await.unwrap().boxed();
            while let Some(event) = seen.next().await {
                let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event.unwrap() else {
                    continue;
                };
                let status = object.status.unwrap_or_default();
                let tags = status.image_statuses.iter().flat_map(|images| images.values());
                let tag = tags.flat_map(|image| image.tags.clone()).next();
                if let Some(tag) = tag.filter(|tag| is_so(tag)) {
                    return (tag, status);
                }
            }
            panic!("the watch ended");
        };
        tokio::time::timeout(PATIENCE, look).await.expect("it comes in time")
    }

    fn api(&self) -> Api<NodeImage> {
        Api::all(self.client.clone())
    }

    async fn stop(self) {
        drop(self.stop);
        self.agent.await.unwrap();
    }
}

fn entry() -> Value {
    json!({ "tags": [{ "tag": "v1", "pullPolicy": { "ttlSecondsAfterFinished": 600, "backoffLimit": 1 } }] })
}

#[tokio::test]
async fn the_agent_pulls_a_task_from_the_registry_into_the_store() {
    let site = Site::new();
    let artifact = site.offer("shop/web", "v1", 3, 100 * KIB);
    let worker = Worker::start(&site);
    worker.ask(&format!("{HOST}/shop/web"), entry()).await;
    let (tag, status) = worker.until(|tag| tag.phase == PullPhase::Succeeded).await;
    assert_eq!((tag.tag.as_str(), status.succeeded), ("v1", 1));
    let config = &artifact.blobs[0].digest;
    assert_eq!(tag.image_id, Some(format!("{HOST}/shop/web@{config}")));
    assert!(site.store.images().iter().any(|image| image.is(&full("shop/web:v1"))));
    assert_eq!(site.store.received(), artifact.size());
    worker.stop().await;
}

#[tokio::test]
async fn the_agent_notices_that_the_store_lost_an_image() {
    // Slow enough that the loss is reported before the image is back.
    let site = Site::with(Flow::Free, Flow::Limited(200_000), LARGE_DISK);
    site.offer("shop/web", "v1", 1, 200 * KIB);
    let worker = Worker::start(&site);
    worker.ask(&format!("{HOST}/shop/web"), entry()).await;
    worker.until(|tag| tag.phase == PullPhase::Succeeded).await;
    assert!(site.store.remove(&full("shop/web:v1")).unwrap());
    worker.until(|tag| tag.lost_at.is_some()).await;
    worker.until(|tag| tag.phase == PullPhase::Succeeded && tag.lost_at.is_none()).await;
    assert_eq!(site.store.images().len(), 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_wrong_tag_fails_with_its_class() {
    let site = Site::new();
    site.offer("shop/web", "v2", 1, 10 * KIB);
    let worker = Worker::start(&site);
    worker.ask(&format!("{HOST}/shop/web"), entry()).await;
    let (tag, _) = worker.until(|tag| tag.phase == PullPhase::Failed).await;
    assert_eq!(tag.failure_class, Some(FailureClass::NotFound), "{tag:?}");
    worker.stop().await;
}

#[tokio::test]
async fn a_nearly_full_disk_stops_the_agent_and_is_reported() {
    let disk = Disk { capacity: 100 << 20, taken: 85 << 20 };
    let site = Site::with(Flow::Free, Flow::Free, disk);
    site.offer("shop/web", "v1", 1, 10 * KIB);
    let worker = Worker::start(&site);
    worker.ask(&format!("{HOST}/shop/web"), entry()).await;
    let waits = |tag: &ImageTagStatus| {
        tag.message.as_deref().is_some_and(|message| message.starts_with("waits for room: 15 % free on "))
    };
    let (_, status) = worker.until(waits).await;
    let filesystem = status.image_filesystem.unwrap();
    assert_eq!(u64::try_from(filesystem.capacity_bytes).unwrap(), disk.capacity);
    assert_eq!(site.store.received(), 0);
    worker.stop().await;
}

#[tokio::test]
async fn a_pull_that_fills_the_disk_to_the_floor_is_stopped() {
    let disk = Disk { capacity: 10_000_000, taken: 7_500_000 };
    let site = Site::with(Flow::Free, Flow::Limited(1_000_000), disk);
    site.offer("shop/big", "v1", 2, 1_000_000);
    let worker = Worker::start(&site);
    worker.ask(&format!("{HOST}/shop/big"), entry()).await;
    let (tag, _) = worker.until(|tag| tag.phase == PullPhase::Failed).await;
    assert_eq!(tag.failure_class, Some(FailureClass::NoSpace), "{tag:?}");
    assert!(tag.message.unwrap().contains("stopped for lack of room"));
    worker.stop().await;
    assert_eq!(site.store.room().free, disk.capacity - disk.taken);
}

#[tokio::test]
async fn a_private_image_is_pulled_with_its_secret() {
    let site = Site::with(Flow::Free, Flow::Free, LARGE_DISK);
    site.offer("team/app", "v1", 1, 10 * KIB);
    site.registry.protect("team/app", "robot", "hunter2");
    let worker = Worker::start(&site);
    let config = json!({ "auths": { HOST: { "username": "robot", "password": "hunter2" } } });
    let secret = Secret {
        metadata: ObjectMeta { name: Some("pull".to_owned()), ..ObjectMeta::default() },
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some([(".dockerconfigjson".to_owned(), ByteString(config.to_string().into_bytes()))].into()),
        ..Secret::default()
    };
    let secrets = Api::<Secret>::namespaced(worker.client.clone(), DEFAULT_CONFIG_NAMESPACE);
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let mut entry = entry();
    entry["pullSecrets"] = json!([{ "namespace": DEFAULT_CONFIG_NAMESPACE, "name": "pull" }]);
    worker.ask(&format!("{HOST}/team/app"), entry).await;
    worker.until(|tag| tag.phase == PullPhase::Succeeded).await;
    worker.stop().await;
}
