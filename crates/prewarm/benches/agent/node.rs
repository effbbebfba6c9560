//! One node with the shipped agent, and its NodeImage.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::process::Command;

use anyhow::{Context as _, ensure};
use futures::{Stream, StreamExt as _};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use prewarm_api::crd;
use prewarm_api::kruise::NodeImage;
use prewarm_api::reference::ImageRef;
use prewarm_testkit::binary::given_or;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::node::Cri;
use prewarm_testkit::process::Process;
use prewarm_testkit::{ApiServer, Registry, install};
use serde_json::{Value, json};

/// Longer than the benchmark takes.
const WATCH_SECONDS: u32 = 7200;
const MEGABYTE: usize = 1_000_000;

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<NodeImage>>> + Send>>;

pub struct Node {
    server: ApiServer,
    registry: Registry,
    machine: prewarm_testkit::Node,
    agent: Option<Process>,
    api: Api<NodeImage>,
    events: Events,
    /// The generation that the last spec has.
    generation: i64,
    /// The generation that is known to be done.
    done: i64,
    /// How many tiny images were used.
    used: usize,
}

impl Node {
    pub async fn prepare(tiny_images: usize) -> anyhow::Result<Self> {
        let (server, registry) = tokio::try_join!(ApiServer::start(), Registry::start())?;
        install::definitions(&server.client()?, crd::all()).await?;
        super::push_all(&registry, tiny_images).await?;
        let node = prewarm_testkit::Node::start(&registry).await?;
        let api = Api::<NodeImage>::all(server.client()?);
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": node.name() }, "spec": {},
        });
        let object = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        let version = object.metadata.resource_version.context("a stored object has a version")?;
        let params =
            WatchParams::default().fields(&format!("metadata.name={}", node.name())).timeout(WATCH_SECONDS);
        let events = Box::pin(api.watch(&params, &version).await?);
        Ok(Self {
            server,
            registry,
            machine: node,
            agent: None,
            api,
            events,
            generation: 1,
            done: 0,
            used: 0,
        })
    }

    pub fn start_agent(&mut self) -> anyhow::Result<()> {
        let mut command: Command = self.machine.command(&given_or(env!("CARGO_BIN_EXE_prewarm")));
        command.args([
            "agent",
            "--min-free",
            "1%",
            "--listen",
            "127.0.0.1:0",
            "--node-name",
            self.machine.name(),
        ]);
        command.arg("--runtime-endpoint").arg(self.machine.socket());
        command.arg("--kubeconfig").arg(self.server.kubeconfig());
        self.agent = Some(Process::start("agent", command, self.machine.directory())?);
        Ok(())
    }

    pub fn restart_agent(&mut self) -> anyhow::Result<()> {
        self.agent.take().context("an agent runs")?.stop()?;
        self.start_agent()
    }

    pub fn agent_id(&self) -> anyhow::Result<u32> {
        self.agent.as_ref().and_then(Process::id).context("the agent runs")
    }

    /// Writes a spec that asks for exactly these images.
    pub async fn ask(&mut self, references: &[String]) -> anyhow::Result<()> {
        let patch = json!([{ "op": "add", "path": "/spec", "value": { "images": images(references)? } }]);
        let patch: json_patch::Patch = serde_json::from_value(patch)?;
        let written =
            self.api.patch(self.machine.name(), &PatchParams::default(), &Patch::Json::<()>(patch)).await?;
        self.generation = written.metadata.generation.context("a custom object has a generation")?;
        Ok(())
    }

    /// Waits until the status reports all of this many images for the present spec. Returns how many other writes came
    /// before, which are those of the status.
    pub async fn succeeded(&mut self, count: usize) -> anyhow::Result<usize> {
        let mut writes: usize = 0;
        while self.done != self.generation {
            let event = self.events.next().await.context("the watch ended")??;
            let WatchEvent::Modified(object) = event else { continue };
            if object.metadata.generation != Some(self.generation) {
                continue;
            }
            let status = object.status.unwrap_or_default();
            // The write of the spec itself shows the old status.
            writes += 1;
            ensure!(status.failed == 0, "a pull failed: {status:?}");
            let is_present =
                usize::try_from(status.desired)? == count && usize::try_from(status.succeeded)? == count;
            if is_present && is_about_spec(&object.spec.images, status.image_statuses.as_ref()) {
                self.done = self.generation;
            }
        }
        Ok(writes.saturating_sub(1))
    }

    pub async fn remove(&self, reference: &str) -> anyhow::Result<()> {
        // Each pull leaves records by name and by id; all have to be removed, or the layers stay.
        self.cri()?.remove(reference).await.context("removing an image")?;
        self.machine.ctr(["content", "prune", "references"]).await.map(drop)
    }

    pub fn cri(&self) -> anyhow::Result<Cri> {
        self.machine.cri()
    }

    pub fn large(&self) -> String {
        self.registry.reference("large", "v1")
    }

    /// The next unused tiny images.
    pub fn take(&mut self, count: usize) -> Vec<String> {
        let first = self.used;
        self.used += count;
        (first..self.used).map(|number| self.registry.reference(&format!("tiny/{number}"), "v1")).collect()
    }
}

/// Whether the status is about the images of this spec, and not of an earlier one.
fn is_about_spec<A, B>(spec: &BTreeMap<String, A>, status: Option<&BTreeMap<String, B>>) -> bool {
    spec.keys().eq(status.into_iter().flat_map(BTreeMap::keys))
}

fn images(references: &[String]) -> anyhow::Result<Value> {
    let mut images = json!({});
    for reference in references {
        let reference = ImageRef::parse(reference)?;
        let entry = json!({ "tag": reference.tag(), "pullPolicy": { "ttlSecondsAfterFinished": 3600 } });
        images[reference.name()] = json!({ "tags": [entry] });
    }
    Ok(images)
}

pub async fn push_tiny(registry: &Registry, number: usize) -> anyhow::Result<()> {
    let image = Image::new(&format!("tiny {number}")).layer(Layer::of(1000)).build();
    registry.push(&format!("tiny/{number}"), &["v1"], &image).await
}

pub async fn push_large(registry: &Registry) -> anyhow::Result<()> {
    let image = Image::new("large").layers(3, Layer::of(100 * MEGABYTE)).build();
    registry.push("large", &["v1"], &image).await
}
