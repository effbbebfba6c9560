//! The cluster of the benchmark: an API server of either kind, its objects, and the programs on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use prewarm_api::crd;
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::MachineClock;
use prewarm_controller::config::Config;
use prewarm_controller::lease::Term;
use prewarm_controller::{Controller, lead};
use prewarm_embedded::{Options, Server, TokioClock};
use prewarm_testkit::{ApiServer, install};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Layer as _;

use super::agents::Agents;
use super::record::{Recorder, Write};

/// The prefix of node names.
pub const NODE: &str = "node-";
/// The namespace of the jobs.
pub const NAMESPACE: &str = "default";
/// How many requests prepare a cluster at once.
const AT_ONCE: usize = 16;

pub enum Place {
    Embedded(Server),
    Real(Box<ApiServer>),
}

pub struct Cluster {
    pub place: Place,
    pub client: Client,
    pub recorder: Recorder,
    pub nodes: usize,
}

/// A running controller with the agents.
pub struct Running {
    stop: oneshot::Sender<()>,
    controller: JoinHandle<()>,
    writer: JoinHandle<()>,
    pub agents: Agents,
}

/// The writes that the server accepted, by resource and subresource.
pub type Counts = BTreeMap<String, u64>;

impl Cluster {
    pub async fn embedded(nodes: usize) -> anyhow::Result<Self> {
        let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
        server.install_definitions();
        let client = server.client();
        Self::fill(Place::Embedded(server), client, nodes).await
    }

    pub async fn real(nodes: usize) -> anyhow::Result<Self> {
        let server = ApiServer::start().await?;
        let client = server.client()?;
        install::definitions(&client, crd::all()).await?;
        Self::fill(Place::Real(Box::new(server)), client, nodes).await
    }

    /// Makes the nodes, all of them ready.
    async fn fill(place: Place, client: Client, nodes: usize) -> anyhow::Result<Self> {
        let cluster = Self { place, client, recorder: Recorder::default(), nodes };
        cluster.make_namespace(DEFAULT_CONFIG_NAMESPACE).await?;
        let made = (0..nodes).map(|number| cluster.make_node(node(number)));
        stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        Ok(cluster)
    }

    pub async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    async fn make_node(&self, name: String) -> anyhow::Result<()> {
        let api = Api::<Node>::all(self.client.clone());
        let node = json!({ "metadata": { "name": name, "labels": labels(&name) } });
        api.create(&PostParams::default(), &serde_json::from_value(node)?).await.context("making a Node")?;
        let status = json!({ "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "allocatable": { "cpu": "4", "memory": "16Gi", "pods": "110" },
        } });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .context("a Node's status")?;
        Ok(())
    }

    pub fn is_real(&self) -> bool {
        matches!(self.place, Place::Real(_))
    }

    /// What figures of this cluster are called.
    pub fn word(&self) -> &'static str {
        if self.is_real() { "real" } else { "embedded" }
    }

    /// A client whose writes are recorded.
    async fn recorded(&self) -> anyhow::Result<Client> {
        match &self.place {
            Place::Embedded(server) => Ok(Client::new(self.recorder.layer(server.clone()), NAMESPACE)),
            Place::Real(server) => {
                let file = Kubeconfig::read_from(server.kubeconfig())?;
                let config =
                    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
                Ok(ClientBuilder::try_from(config)?.with_layer(&self.recorder).build())
            }
        }
    }

    /// Starts the controller, and agents whose pulls take this long; waits until every node has its NodeImage.
    pub async fn start(&self, pull: Duration) -> anyhow::Result<Running> {
        let client = self.recorded().await?;
        let (parts, writer) =
            Controller::new("controller", Config::default(), client, Arc::new(MachineClock));
        let (stop, stopped) = oneshot::channel();
        let controller = tokio::spawn(lead(parts, Term::endless(), async move { drop(stopped.await) }));
        let writer = tokio::spawn(writer.run());
        let agents = Agents::start(self.recorded().await?, pull);
        agents.wait("a NodeImage for every node", |totals| totals.nodes == self.nodes).await?;
        Ok(Running { stop, controller, writer, agents })
    }

    /// The writes that the server has accepted so far. The embedded server has only ours, which are all recorded.
    pub async fn counts(&self) -> anyhow::Result<Option<Counts>> {
        if self.is_real() { counts(&self.client).await.map(Some) } else { Ok(None) }
    }

    /// What was written since `before`: as the server counts it, and where it does not count, as recorded.
    pub async fn written(&self, before: Option<Counts>, writes: &[Write]) -> anyhow::Result<Counts> {
        let mut recorded = Counts::new();
        for write in writes.iter().filter(|write| write.is_taken()) {
            *recorded.entry(resource_of(write.place())).or_default() += 1;
        }
        let Some((before, after)) = before.zip(self.counts().await?) else { return Ok(recorded) };
        let grown = after.into_iter().map(|(what, count)| {
            let old = before.get(&what).copied().unwrap_or_default();
            (what, count.saturating_sub(old))
        });
        Ok(grown.filter(|(_, count)| *count > 0).collect())
    }

    /// Makes a job or a list.
    pub async fn make(&self, plural: &str, object: &Value) -> anyhow::Result<()> {
        let path = format!("/apis/apps.kruise.io/v1beta1/namespaces/{NAMESPACE}/{plural}");
        let request = Request::post(path).header("content-type", "application/json");
        self.client.request_text(request.body(serde_json::to_vec(object)?)?).await.context("making a job")?;
        Ok(())
    }

    /// How many NodeImages there are.
    pub async fn node_images(&self) -> anyhow::Result<usize> {
        let api = Api::<prewarm_api::kruise::NodeImage>::all(self.client.clone());
        Ok(api.list_metadata(&ListParams::default()).await?.items.len())
    }
}

impl Running {
    /// Ends the controller as SIGTERM does, and the agents.
    pub async fn stop(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.controller.await?;
        self.writer.await?;
        Ok(())
    }
}

/// The writes that a real server has accepted so far.
pub async fn counts(client: &Client) -> anyhow::Result<Counts> {
    let text = client.request_text(Request::get("/metrics").body(Vec::new())?).await?;
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
        let is_write = ["POST", "PUT", "PATCH", "APPLY", "DELETE"].contains(&label(line, "verb"));
        if is_write && label(line, "code").starts_with('2') {
            let (_, count) = line.rsplit_once(' ').context("a metric has a value")?;
            let what = resource(label(line, "resource"), label(line, "subresource"));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let count = count.parse::<f64>()? as u64;
            *counts.entry(what).or_default() += count;
        }
    }
    Ok(counts)
}

pub fn node(number: usize) -> String {
    format!("{NODE}{number:05}")
}

/// The labels that a node of a cluster has in any case.
pub fn labels(name: &str) -> Value {
    json!({ "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" })
}

fn label<'a>(line: &'a str, name: &str) -> &'a str {
    let value = line.split_once(&format!("{name}=\"")).map(|(_, rest)| rest);
    value.and_then(|rest| rest.split_once('"')).map(|(value, _)| value).unwrap_or_default()
}

fn resource(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") }
}

/// The resource of a path, such as `nodeimages/status`.
fn resource_of(path: &str) -> String {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    // Without `apis`, group and version, or `api` and version.
    let parts = if parts[0] == "apis" { &parts[3..] } else { &parts[2..] };
    let parts = if parts[0] == "namespaces" && parts.len() > 2 { &parts[2..] } else { parts };
    resource(parts[0], parts.get(2).copied().unwrap_or_default())
}
