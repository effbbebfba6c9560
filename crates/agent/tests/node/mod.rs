//! A node for tests: the real agent on the embedded API and the fake runtime, in the time of the test.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_agent::config::{Config, RuntimeChoice};
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, Health, Metrics, events, run};
use prewarm_api::kruise::{ImageTagStatus, NodeImage, NodeImageStatus};
use prewarm_clock::TokioClock;
use prewarm_embedded::{Options, Server};
use prewarm_plan::node::disk::MinFree;
use prewarm_runtime::fake::Fake;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The node's name.
pub const NODE: &str = "worker-1";
/// How long a test waits for what must come, in its own time.
const PATIENCE: Duration = Duration::from_hours(24);

pub struct Node {
    pub server: Server,
    pub client: Client,
    pub fake: Fake,
    pub config: Config,
    pub metrics: Metrics,
    pub health: Health,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    agent: JoinHandle<()>,
    writer: JoinHandle<()>,
}

impl Node {
    /// A server with our definitions, a runtime, and no agent yet.
    pub fn new() -> Self {
        Self::on(Fake::new())
    }

    pub fn on(fake: Fake) -> Self {
        let server = Server::new(Arc::new(embedded_clock()), Options::default());
        for definition in prewarm_api::crd::all() {
            server.install(&serde_json::to_value(definition).unwrap()).unwrap();
        }
        let config = Config {
            node: NODE.to_owned(),
            runtime: RuntimeChoice::Given(fake.endpoint()),
            parallel: 2,
            min_free: MinFree::Bytes(0),
            drain: Duration::from_secs(10),
            config_namespace: "kruise-daemon-config".to_owned(),
        };
        let client = server.client();
        Self {
            server,
            client,
            fake,
            config,
            metrics: Metrics::new(),
            health: Health::default(),
            running: None,
        }
    }

    /// Starts the agent.
    pub fn start(&mut self) {
        let clock = Arc::new(clock());
        let client = self.client.clone();
        let (events, writer) = events(client.clone(), NODE, clock.clone(), self.metrics.clone());
        let agent = Agent {
            config: self.config.clone(),
            credentials: Arc::new(KubeSecrets::new(client.clone(), self.config.config_namespace.clone())),
            client,
            clock,
            metrics: self.metrics.clone(),
            events,
            health: self.health.clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let agent = tokio::spawn(run(agent, async move { drop(stopped.await) }));
        self.running = Some(Running { stop, agent, writer: tokio::spawn(writer.run()) });
    }

    /// Asks the agent to stop, as SIGTERM does, and waits until it has.
    pub async fn stop(&mut self) {
        let running = self.running.take().expect("an agent runs");
        drop(running.stop);
        running.agent.await.unwrap();
        running.writer.await.unwrap();
    }

    /// Ends the agent without any word, as SIGKILL does.
    pub async fn kill(&mut self) {
        let running = self.running.take().expect("an agent runs");
        running.agent.abort();
        running.writer.abort();
        drop(running.agent.await);
        // Workers are tasks of their own; a killed process takes them along.
        drop(running.writer.await);
    }

    pub fn api(&self) -> Api<NodeImage> {
        Api::all(self.client.clone())
    }

    /// Makes the NodeImage with this map of images.
    pub async fn ask(&self, images: Value) {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": NODE },
            "spec": { "images": images },
        });
        let object: NodeImage = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Merges into the spec's images.
    pub async fn change(&self, images: Value) {
        let patch = json!({ "spec": { "images": images } });
        self.api().patch(NODE, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn status(&self) -> NodeImageStatus {
        self.api().get_status(NODE).await.unwrap().status.unwrap_or_default()
    }

    pub async fn tag(&self, name: &str, tag: &str) -> Option<ImageTagStatus> {
        let statuses = self.status().await.image_statuses.unwrap_or_default();
        statuses.get(name)?.tags.iter().find(|status| status.tag == tag).cloned()
    }

    /// Waits until the status is as wanted, in the time of the test.
    pub async fn until(
        &self,
        what: &str,
        mut is_wanted: impl FnMut(&NodeImageStatus) -> bool,
    ) -> NodeImageStatus {
        let look = async {
            loop {
                let status = self.status().await;
                if is_wanted(&status) {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(status) => status,
            Err(_) => panic!("{what} did not come; the status is {:#?}", self.status().await),
        }
    }

    /// Waits until every tag has ended.
    pub async fn settled(&self) -> NodeImageStatus {
        self.until("the end of all tasks", |status| {
            status.desired > 0 && status.succeeded + status.failed == status.desired
        })
        .await
    }
}

/// An entry of the spec for one tag, as a person writes it.
pub fn tag(tag: &str) -> Value {
    json!({ "tag": tag, "pullPolicy": { "ttlSecondsAfterFinished": 600 } })
}

/// One image with tags.
pub fn image(tags: &[&str]) -> Value {
    json!({ "tags": tags.iter().map(|name| tag(name)).collect::<Vec<_>>() })
}

fn embedded_clock() -> TokioClock {
    clock()
}

fn clock() -> TokioClock {
    TokioClock::starting_at("2026-11-15T08:00:00Z".parse::<Timestamp>().unwrap())
}
