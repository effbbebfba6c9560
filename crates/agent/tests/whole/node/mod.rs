//! A node for tests: the real agent on the embedded API and the fake runtime, in the time of the test.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use prewarm_agent::config::{Config, Mirrors, RuntimeChoice};
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, Health, Metrics, events, run};
use prewarm_api::kruise::{ImageTagStatus, NodeImage, NodeImageStatus};
use prewarm_credentials::CredentialSource;
use prewarm_embedded::faults::{Faults, Happened, PassedBody, Verb};
use prewarm_embedded::{Options, Server};
use prewarm_plan::agent::disk::MinFree;
use prewarm_runtime::fake::Fake;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Layer as _, ServiceBuilder};

mod clock;
mod entry;
mod secret;

pub use clock::JumpingClock;
pub use entry::{always, image, image_of, owned, policy, tag, version, with};
pub use secret::{docker_config, with_secrets};

/// The node's name.
pub const NODE: &str = "worker-1";
/// The namespace that the agent may read Secrets in.
pub const CONFIG_NAMESPACE: &str = "kruise-daemon-config";
/// How long a test waits for what must come, in its own time.
const PATIENCE: Duration = Duration::from_hours(2);

pub struct Node {
    pub server: Server,
    /// The test's own client, which nothing happens to.
    pub client: Client,
    /// What happens to the agent's requests, and what it asked.
    pub faults: Faults,
    pub fake: Fake,
    pub clock: Arc<JumpingClock>,
    pub config: Config,
    pub metrics: Metrics,
    pub health: Health,
    /// Where credentials come from instead of Secrets.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// What the agent reads instead of what the server has, for objects that no server of ours would take: a text
    /// and what stands in its place.
    pub rewrite: Option<(&'static str, &'static str)>,
    /// When the test began.
    pub born: Instant,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    agent: JoinHandle<()>,
    writer: JoinHandle<()>,
}

impl Node {
    /// A server with our definitions, a runtime like containerd, and no agent yet.
    pub fn new() -> Self {
        Self::on(Fake::new())
    }

    pub fn on(fake: Fake) -> Self {
        Self::with_options(fake, Options::default())
    }

    pub fn with_options(fake: Fake, options: Options) -> Self {
        let clock = Arc::new(JumpingClock::new());
        let server = Server::new(clock.clone(), options);
        server.install_definitions();
        server.install_namespace(CONFIG_NAMESPACE);
        let config = Config {
            node: NODE.to_owned(),
            name: "agent-1".to_owned(),
            runtime: RuntimeChoice::Given(fake.endpoint()),
            parallel: 2,
            min_free: MinFree::Bytes(0),
            drain: Duration::from_secs(10),
            mirrors: Mirrors::default(),
        };
        Self {
            client: server.client(),
            faults: Faults::none(),
            server,
            fake,
            clock,
            config,
            metrics: Metrics::new(),
            health: Health::default(),
            credentials: None,
            rewrite: None,
            born: Instant::now(),
            running: None,
        }
    }

    /// A second agent of this name for the same node, on the same runtime. It is not started.
    pub fn beside(&self, name: &str) -> Self {
        Self {
            server: self.server.clone(),
            client: self.client.clone(),
            faults: Faults::none(),
            fake: self.fake.clone(),
            clock: self.clock.clone(),
            config: Config { name: name.to_owned(), ..self.config.clone() },
            metrics: Metrics::new(),
            health: Health::default(),
            credentials: self.credentials.clone(),
            rewrite: None,
            born: self.born,
            running: None,
        }
    }

    /// Starts the agent.
    pub fn start(&mut self) {
        let client = self.client_of_agent();
        let (events, writer) = events(client.clone(), NODE, self.clock.clone(), self.metrics.clone());
        let secrets = || Arc::new(KubeSecrets::new(client.clone(), CONFIG_NAMESPACE.to_owned()));
        let agent = Agent {
            config: self.config.clone(),
            credentials: self.credentials.clone().unwrap_or_else(|| secrets()),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            client,
            events,
        };
        let (stop, stopped) = oneshot::channel();
        let agent = tokio::spawn(run(agent, async move { drop(stopped.await) }));
        self.running = Some(Running { stop, agent, writer: tokio::spawn(writer.run()) });
    }

    fn client_of_agent(&self) -> Client {
        let Some((text, other)) = self.rewrite else { return self.faults.client(&self.server) };
        let rewrite = move |data: Bytes| Bytes::from(String::from_utf8_lossy(&data).replace(text, other));
        let service = ServiceBuilder::new()
            .map_response(move |answer: http::Response<PassedBody>| {
                answer.map(|body| body.map_frame(move |frame| frame.map_data(rewrite)))
            })
            .service(self.faults.layer(self.server.clone()));
        Client::new(service, "default")
    }

    /// Asks the agent to stop, as SIGTERM does, and waits until it has.
    pub async fn stop(&mut self) {
        let running = self.running.take().expect("an agent runs");
        drop(running.stop);
        running.agent.await.unwrap();
        running.writer.await.unwrap();
    }

    /// Ends the agent without any notice, as SIGKILL does.
    pub async fn kill(&mut self) {
        let running = self.running.take().expect("an agent runs");
        running.agent.abort();
        running.writer.abort();
        // Being cancelled is how both are meant to end.
        drop(running.agent.await);
        drop(running.writer.await);
    }

    pub fn api(&self) -> Api<NodeImage> {
        Api::all(self.client.clone())
    }

    /// Makes the NodeImage with this map of images.
    pub async fn ask(&self, images: Value) {
        self.create(json!({ "spec": { "images": images } })).await;
    }

    /// Makes the NodeImage from these parts.
    pub async fn create(&self, parts: Value) {
        let base = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": NODE },
        });
        let object: NodeImage = serde_json::from_value(with(base, &parts)).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Merges into the spec's images.
    pub async fn change(&self, images: Value) {
        self.patch(json!({ "spec": { "images": images } })).await;
    }

    pub async fn patch(&self, patch: Value) {
        self.api().patch(NODE, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn delete(&self) {
        self.api().delete(NODE, &DeleteParams::default()).await.unwrap();
    }

    pub async fn status(&self) -> NodeImageStatus {
        self.api().get_status(NODE).await.unwrap().status.unwrap_or_default()
    }

    pub async fn tag(&self, name: &str, tag: &str) -> ImageTagStatus {
        tag_of(&self.status().await, name, tag).unwrap_or_else(|| panic!("no status of {name} {tag}"))
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
                self.changed(&status).await;
            }
        };
        let Ok(status) = tokio::time::timeout(PATIENCE, look).await else {
            panic!("{what} did not come; the status is {:#?}", self.status().await);
        };
        status
    }

    /// Waits until the status is another one.
    async fn changed(&self, status: &NodeImageStatus) {
        let params = WatchParams::default().fields(&format!("metadata.name={NODE}"));
        let mut events = self.api().watch(&params, "0").await.unwrap().boxed();
        while let Some(event) = events.next().await {
            if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) = event
                && object.status.unwrap_or_default() != *status
            {
                return;
            }
        }
    }

    /// Waits until this many tags are there and every one of them has ended.
    pub async fn settled(&self, tags: i32) -> NodeImageStatus {
        self.until("the end of all tasks", |status| {
            status.desired == tags && status.succeeded + status.failed == tags
        })
        .await
    }

    /// How often the agent wrote the status.
    pub fn status_writes(&self) -> usize {
        let is_report = |path: &str| path.contains("/nodeimages/") && path.contains("/status");
        let journal = self.faults.journal();
        journal
            .iter()
            .filter(|entry| entry.verb == Verb::Patch && is_report(&entry.path))
            .filter(|entry| matches!(entry.happened, Happened::Answered(200) | Happened::AnswerLost(200)))
            .count()
    }

    /// All events there are.
    pub async fn events(&self) -> Vec<Event> {
        Api::<Event>::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    /// The seconds from the beginning of the test to the start of each pull of a reference.
    pub fn starts(&self, reference: &str) -> Vec<f64> {
        let calls = self.fake.calls_of(reference);
        calls.iter().map(|call| (call.started - self.born).as_secs_f64()).collect()
    }

    /// The seconds since the beginning of the test.
    pub fn seconds(&self) -> f64 {
        self.born.elapsed().as_secs_f64()
    }
}

/// The status of one tag.
pub fn tag_of(status: &NodeImageStatus, name: &str, tag: &str) -> Option<ImageTagStatus> {
    status.image_statuses.as_ref()?.get(name)?.tags.iter().find(|status| status.tag == tag).cloned()
}

/// Lets this much time pass.
pub async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}
