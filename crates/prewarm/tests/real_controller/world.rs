//! A cluster with everything that is shipped: three nodes with agents, controllers, one NodeImage without a node.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{self as core, Secret};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::{Api, Client};
use prewarm_api::crd;
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::names::{DEFAULT_CONFIG_NAMESPACE, FAKE_NODE_IMAGE_LABEL, SECRET_REFERENCES_ANNOTATION};
use prewarm_api::permission::{CONTROLLER, SYSTEM_NAMESPACE};
use prewarm_bed::inside;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::{ApiServer, Node, Process, Registry, Runtime};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::program::{Agent, as_nobody, binary};
use prewarm_testkit::install;

pub const NODES: i32 = 3;
/// The NodeImage without a node.
pub const FAKE: &str = "fake-node";
/// Both versions of the API.
pub const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
/// The factor for the time limits of OpenKruise's tests.
const GENEROSITY: u32 = 3;
const INTERVAL: Duration = Duration::from_millis(100);

pub struct World {
    pub cluster: Cluster,
    pub nodes: Vec<Node>,
    pub controllers: Vec<Process>,
    pub audit: PathBuf,
    /// Kept alive, because an agent ends when its handle is dropped.
    pub agents: Vec<Agent>,
}

impl World {
    /// The cluster that is shared by the tests that disturb no controller.
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<World> = OnceCell::const_new();
        SHARED.get_or_try_init(async || Self::start("shared", 1).await).await
    }

    /// A cluster of its own with this many controllers.
    pub async fn start(label: &str, controllers: usize) -> anyhow::Result<Self> {
        let directory = inside::directory(&format!("world-{label}"))?;
        let audit = directory.join("audit.log");
        let server = server(&directory, &audit).await?;
        let cluster = Cluster { server, registry: Registry::start().await? };
        install::definitions(&cluster.server.client()?, crd::all()).await?;
        install::rights(&cluster.server).await?;
        let mut world = Self { cluster, nodes: vec![], controllers: vec![], audit, agents: vec![] };
        for _ in 0..NODES {
            world.add_node().await?;
        }
        world.add_fake_node().await?;
        for number in 0..controllers {
            let controller = world.controller(number).await?;
            world.controllers.push(controller);
        }
        world
            .until(60, "a NodeImage for every node", async || Ok(world.node_images().await?.len() == 4))
            .await?;
        Ok(world)
    }

    async fn add_node(&mut self) -> anyhow::Result<()> {
        let node = self.cluster.node(Runtime::Containerd).await?;
        let agent = Agent::start(&self.cluster, &node, &[]).await?;
        let nodes = Api::<core::Node>::all(self.client()?);
        let ready = json!({"status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "Tested", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}});
        nodes.patch_status(node.name(), &PatchParams::default(), &Patch::Strategic(ready)).await?;
        self.nodes.push(node);
        self.agents.push(agent);
        Ok(())
    }

    async fn add_fake_node(&self) -> anyhow::Result<()> {
        let fake = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "spec": {},
            "metadata": {"name": FAKE, "labels": {FAKE_NODE_IMAGE_LABEL: "true"}},
        });
        let api = Api::<NodeImage>::all(self.client()?);
        api.create(&PostParams::default(), &serde_json::from_value(fake)?).await?;
        Ok(())
    }

    /// Starts a controller on one of the nodes, as nobody and with the shipped role.
    pub async fn controller(&self, number: usize) -> anyhow::Result<Process> {
        self.controller_with(number, &[]).await
    }

    /// The same with these flags.
    pub async fn controller_with(&self, number: usize, flags: &[&str]) -> anyhow::Result<Process> {
        let node = &self.nodes[number];
        let server = &self.cluster.server;
        let kubeconfig =
            server.kubeconfig_of_service_account(SYSTEM_NAMESPACE, CONTROLLER.name, node.name()).await?;
        let mut command = as_nobody(node)?;
        command.arg(binary()?).arg("controller").arg("--kubeconfig").arg(kubeconfig);
        command.args([
            "--listen",
            "0.0.0.0:10220",
            "--log-level",
            "info,prewarm=debug,prewarm_controller=debug",
        ]);
        command.args(flags).env("POD_NAME", format!("controller-{number}"));
        Process::start(&format!("controller-{number}"), command, node.directory())
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.cluster.server.client()
    }

    /// Pushes a small image to the registry. Returns the name under which every node reaches it.
    pub async fn publish(&self, name: &str) -> anyhow::Result<String> {
        let artifact = Image::new(name).layer(Layer::of(50_000)).build();
        self.cluster.registry.push(name, &["v1"], &artifact).await?;
        Ok(format!("registry.example/{name}:v1"))
    }

    /// Makes a job in one version of the API.
    pub async fn create(
        &self,
        version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        spec: Value,
    ) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": format!("apps.kruise.io/{version}"), "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        let resource = ApiResource {
            group: "apps.kruise.io".into(),
            version: version.into(),
            api_version: format!("apps.kruise.io/{version}"),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client()?, namespace, &resource);
        let created = api.create(&PostParams::default(), &serde_json::from_value(object)?).await;
        created.with_context(|| format!("creating {kind} {name} as {version}"))?;
        Ok(())
    }

    pub fn jobs(&self, namespace: &str) -> anyhow::Result<Api<ImagePullJob>> {
        Ok(Api::namespaced(self.client()?, namespace))
    }

    pub fn lists(&self, namespace: &str) -> anyhow::Result<Api<ImageListPullJob>> {
        Ok(Api::namespaced(self.client()?, namespace))
    }

    pub async fn node_images(&self) -> anyhow::Result<Vec<NodeImage>> {
        Ok(Api::<NodeImage>::all(self.client()?).list(&ListParams::default()).await?.items)
    }

    /// The copies of a Secret, found by its namespace and name.
    fn copies_api(&self) -> anyhow::Result<Api<Secret>> {
        Ok(Api::namespaced(self.client()?, DEFAULT_CONFIG_NAMESPACE))
    }

    pub async fn copies(&self, namespace: &str, name: &str) -> anyhow::Result<Vec<Secret>> {
        let of_source = |secret: &Secret| {
            let annotations = secret.metadata.annotations.as_ref();
            let source = annotations.and_then(|all| all.get("imagepulljobs.kruise.io/source-key"));
            source.is_some_and(|source| *source == format!("{namespace}/{name}"))
        };
        Ok(self
            .copies_api()?
            .list(&ListParams::default())
            .await?
            .items
            .into_iter()
            .filter(of_source)
            .collect())
    }

    /// Creates or replaces a Secret with a login for a host.
    pub async fn secret(
        &self,
        namespace: &str,
        name: &str,
        kind: &str,
        host: &str,
        password: &str,
    ) -> anyhow::Result<()> {
        let config = json!({"auths": {host: {"username": "warmer", "password": password}}}).to_string();
        let key = if kind.ends_with("json") { ".dockerconfigjson" } else { ".dockercfg" };
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind,
            "stringData": {key: config},
        });
        let api = Api::<Secret>::namespaced(self.client()?, namespace);
        api.patch(name, &PatchParams::apply("prewarm-tests").force(), &Patch::Apply(secret)).await?;
        Ok(())
    }

    /// Waits until this holds, for three times as long as OpenKruise's test does.
    pub async fn until(
        &self,
        seconds: u32,
        what: &str,
        mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let limit = Duration::from_secs(u64::from(seconds * GENEROSITY));
        let start = Instant::now();
        while !holds().await? {
            if start.elapsed() > limit {
                let logs: Vec<String> = self.controllers.iter().map(Process::log_tail).collect();
                bail!(
                    "after {} s still waiting for {what}; the controllers logged\n{}",
                    limit.as_secs(),
                    logs.join("\n")
                );
            }
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until a job has these numbers: desired, succeeded, and whether it is over.
    pub async fn job_is(
        &self,
        seconds: u32,
        namespace: &str,
        name: &str,
        wanted: (i32, i32, bool),
    ) -> anyhow::Result<()> {
        let jobs = self.jobs(namespace)?;
        self.until(seconds, &format!("{name} to be {wanted:?}"), async || {
            let Some(job) = jobs.get_opt(name).await? else { return Ok(false) };
            let status = job.status.unwrap_or_default();
            Ok((status.desired, status.succeeded, status.completion_time.is_some()) == wanted)
        })
        .await
    }

    pub async fn job_desires(
        &self,
        seconds: u32,
        namespace: &str,
        name: &str,
        desired: i32,
    ) -> anyhow::Result<()> {
        let jobs = self.jobs(namespace)?;
        self.until(seconds, &format!("{name} to see {desired} nodes"), async || {
            let job = jobs.get_opt(name).await?;
            Ok(job.and_then(|job| job.status).is_some_and(|status| status.desired == desired))
        })
        .await
    }

    pub async fn job_is_gone(&self, seconds: u32, namespace: &str, name: &str) -> anyhow::Result<()> {
        let jobs = self.jobs(namespace)?;
        self.until(seconds, &format!("the end of {name}"), async || Ok(jobs.get_opt(name).await?.is_none()))
            .await
    }

    /// Waits until no NodeImage has an image of this name.
    pub async fn entry_is_gone(&self, seconds: u32, image: &str) -> anyhow::Result<()> {
        self.until(seconds, &format!("the end of the entries of {image}"), async || {
            Ok(!self.has_entry(image).await?)
        })
        .await
    }

    pub async fn has_entry(&self, image: &str) -> anyhow::Result<bool> {
        let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
        Ok(self.node_images().await?.iter().any(|node| node.spec.images.contains_key(name)))
    }

    pub async fn copies_are_gone(&self, seconds: u32, namespace: &str, name: &str) -> anyhow::Result<()> {
        self.until(seconds, &format!("the end of the copy of {name}"), async || {
            Ok(self.copies(namespace, name).await?.is_empty())
        })
        .await
    }

    /// Exactly one copy that lists the job.
    pub async fn is_copied(
        &self,
        seconds: u32,
        namespace: &str,
        name: &str,
        job: &str,
    ) -> anyhow::Result<Secret> {
        self.until(seconds, &format!("a copy of {name}"), async || {
            Ok(!self.copies(namespace, name).await?.is_empty())
        })
        .await?;
        let mut copies = self.copies(namespace, name).await?;
        ensure!(copies.len() == 1, "{} copies", copies.len());
        let copy = copies.remove(0);
        ensure!(lists(&copy, namespace, job), "{:?}", copy.metadata.annotations);
        Ok(copy)
    }

    /// The current resource version of the copies.
    pub async fn history(&self) -> anyhow::Result<String> {
        let list = self.copies_api()?.list(&ListParams::default()).await?;
        list.metadata.resource_version.context("a list without a version")
    }

    /// Whether a copy that lists the job was made since then. The copy for a quick job is gone too soon to be read
    /// directly.
    pub async fn was_copied(&self, since: &str, namespace: &str, job: &str) -> anyhow::Result<bool> {
        let briefly = WatchParams::default().timeout(1);
        let events = self.copies_api()?.watch(&briefly, since).await?.try_collect::<Vec<_>>().await?;
        Ok(events.iter().any(|event| matches!(event, WatchEvent::Added(copy) if lists(copy, namespace, job))))
    }

    /// The holder of the Lease.
    pub async fn holder(&self) -> anyhow::Result<Option<String>> {
        let leases =
            Api::<Lease>::namespaced(self.client()?, SYSTEM_NAMESPACE).list(&ListParams::default()).await?;
        let holders = leases.items.into_iter().filter_map(|lease| lease.spec?.holder_identity);
        Ok(holders.into_iter().find(|holder| holder.starts_with("controller-")))
    }

    /// The number of the controller that leads.
    pub async fn leader(&self) -> anyhow::Result<usize> {
        self.until(30, "a leader", async || Ok(self.holder().await?.is_some())).await?;
        let holder = self.holder().await?.context("a leader")?;
        let number = holder
            .trim_start_matches("controller-")
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>();
        number.parse().with_context(|| format!("reading {holder}"))
    }

    pub async fn delete_job(&self, namespace: &str, name: &str) -> anyhow::Result<()> {
        self.jobs(namespace)?.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }
}

/// An API server with the garbage collector and an audit log.
async fn server(directory: &Path, audit: &Path) -> anyhow::Result<ApiServer> {
    let policy = directory.join("audit.yaml");
    // The beginning of an answer counts too, because a watch may end after the test.
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
                 rules:\n- level: Metadata\n";
    std::fs::write(&policy, rules)?;
    ApiServer::configure()
        .controllers(&["garbage-collector-controller"])
        .flag(&format!("--audit-policy-file={}", policy.display()))
        .flag(&format!("--audit-log-path={}", audit.display()))
        .start()
        .await
}

/// Whether a copy is kept for the job.
fn lists(copy: &Secret, namespace: &str, job: &str) -> bool {
    let annotations = copy.metadata.annotations.as_ref();
    let references = annotations.and_then(|all| all.get(SECRET_REFERENCES_ANNOTATION));
    references.is_some_and(|list| list.split(',').any(|reference| reference == format!("{namespace}/{job}")))
}

/// Selects every node but the fake one.
pub fn real_nodes() -> Value {
    json!({"matchExpressions": [{"key": FAKE_NODE_IMAGE_LABEL, "operator": "DoesNotExist"}]})
}
