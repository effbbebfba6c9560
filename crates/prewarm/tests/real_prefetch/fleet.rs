//! Nodes with containerd, each with an agent and a mirror, and a controller: as they are deployed.

use std::sync::OnceLock;

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use prewarm_api::crd;
use prewarm_api::kruise::NodeImage;
use prewarm_api::permission::{CONTROLLER, SYSTEM_NAMESPACE};
use prewarm_testkit::image::{Artifact, Blob};
use prewarm_testkit::{ApiServer, Node, PeerMirror, Process, Registry, Runtime, wait};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::cluster::Cluster;
use crate::program::{Agent, as_nobody, binary};

pub const NODES: usize = 8;
/// Where containerd keeps finished content, in the directory of its images. Each file is named after its digest.
const CONTENT: &str = "io.containerd.content.v1.content/blobs/sha256";

/// Nodes with agents and mirrors, and a controller on the first of them.
pub struct Fleet {
    /// Ended first: agents need their nodes.
    _agents: Vec<Agent>,
    pub controller: Process,
    /// One for each node, in the same order; each asks all others.
    pub mirrors: Vec<PeerMirror>,
    pub nodes: Vec<Node>,
    pub cluster: Cluster,
}

impl Fleet {
    /// The fleet of all tests. Each has names of its own for images, and tells them what they refer to.
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<Fleet> = OnceCell::const_new();
        // Mirrors serve for longer than the test that starts them.
        static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
        let start = async || {
            let runtime = || tokio::runtime::Runtime::new().expect("a runtime like that of every test");
            let start = move || RUNTIME.get_or_init(runtime).block_on(Self::start(NODES));
            tokio::task::spawn_blocking(start).await?
        };
        SHARED.get_or_try_init(start).await
    }

    pub async fn start(count: usize) -> anyhow::Result<Self> {
        let cluster =
            Cluster::furnish(ApiServer::start().await?, Registry::start().await?, crd::all()).await?;
        let nodes = try_join_all((0..count).map(|_| cluster.node(Runtime::Containerd))).await?;
        let mirrors = try_join_all(nodes.iter().map(PeerMirror::start)).await?;
        PeerMirror::introduce(&mirrors.iter().collect::<Vec<_>>());
        let mut agents = Vec::new();
        for node in &nodes {
            let hosts = node.hosts_directory().display().to_string();
            let flags = ["--image-verifiers", "none", "--containerd-host-dir", &hosts];
            agents.push(Agent::start(&cluster, node, &flags).await?);
            ready(&cluster, node.name()).await?;
        }
        let controller = controller(&cluster, &nodes[0]).await?;
        let fleet = Self { _agents: agents, controller, mirrors, nodes, cluster };
        wait::until("a NodeImage for every node", async || {
            Ok((fleet.node_images().await?.len() == count).then_some(()))
        })
        .await?;
        Ok(fleet)
    }

    pub async fn node_images(&self) -> anyhow::Result<Vec<NodeImage>> {
        let images = Api::<NodeImage>::all(self.cluster.server.client()?);
        Ok(images.list(&ListParams::default()).await?.items)
    }

    /// Gives the first so many nodes a label that no other node has.
    pub async fn label(&self, count: usize, label: &str) -> anyhow::Result<()> {
        let nodes = Api::<core::Node>::all(self.cluster.server.client()?);
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: "true"}}}));
        for node in &self.nodes[..count] {
            nodes.patch(node.name(), &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }
}

/// Whether the node shows an image under this name, as pods look for it.
pub async fn shows(node: &Node, name: &str) -> anyhow::Result<bool> {
    Ok(node.images().await?.iter().any(|shown| shown == name))
}

/// The digests of all content of a node. Fails if some of it is not what its digest says.
pub fn content(node: &Node) -> anyhow::Result<Vec<String>> {
    let mut digests = Vec::new();
    for entry in
        std::fs::read_dir(node.image_directory().join(CONTENT)).context("reading a node's content")?
    {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).context("content is named after its digest")?;
        let digest = format!("sha256:{name}");
        ensure!(Blob::of(std::fs::read(&path)?).digest == digest, "{} has other content", path.display());
        digests.push(digest);
    }
    Ok(digests)
}

/// The digests that a node has of an image.
pub fn held(node: &Node, image: &Artifact) -> anyhow::Result<Vec<String>> {
    let content = content(node)?;
    let blobs = image.blobs.iter().chain(image.manifests.iter().map(|manifest| &manifest.blob));
    Ok(blobs.map(|blob| blob.digest.clone()).filter(|digest| content.contains(digest)).collect())
}

/// The kubelet of a node says that it is ready.
async fn ready(cluster: &Cluster, node: &str) -> anyhow::Result<()> {
    let nodes = Api::<core::Node>::all(cluster.server.client()?);
    let ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "Tested", "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    nodes.patch_status(node, &PatchParams::default(), &Patch::Strategic(ready)).await?;
    Ok(())
}

async fn controller(cluster: &Cluster, node: &Node) -> anyhow::Result<Process> {
    let server = &cluster.server;
    let kubeconfig =
        server.kubeconfig_of_service_account(SYSTEM_NAMESPACE, CONTROLLER.name, node.name()).await?;
    let mut command = as_nobody(node)?;
    command.arg(binary()?).arg("controller").arg("--kubeconfig").arg(kubeconfig);
    command.args(["--listen", "0.0.0.0:10220", "--log-level", "info,prewarm=debug,prewarm_controller=debug"]);
    command.env("POD_NAME", "controller");
    Process::start("controller", command, node.directory())
}
