//! A full node with an agent, a registry that counts requests, and pods whose start is measured.

use std::time::Duration;

use prewarm_testkit::image::{Artifact, Layer};
use prewarm_testkit::{FaultProxy, Node, Pod, Runtime, workload};

use crate::cluster::{Cluster, node_images};
use crate::desk::{Desk, entry, spec};
use crate::program::Agent;

pub struct Scene<'a> {
    pub node: Node,
    cluster: &'a Cluster,
    /// Every image name leads to it.
    proxy: FaultProxy,
    desk: Desk,
    agent: Agent,
    namespace: String,
}

/// What the start of a pod cost.
#[derive(Debug)]
pub struct Cost {
    /// From the creation of the pod until it is ready.
    pub time: Duration,
    pub requests: usize,
    /// From the registry.
    pub fetched: u64,
    /// All bytes on the node's network link.
    pub received: u64,
}

/// A server with a scheduler and controllers, and a registry. Each test brings its own node.
pub async fn furnish(bare: prewarm_testkit::Cluster) -> anyhow::Result<Cluster> {
    Cluster::furnish(bare.server, bare.registry, &node_images()).await
}

/// Stores an image of this size in several layers, which shares nothing with others but its program.
pub async fn push(cluster: &Cluster, name: &str, bytes: usize) -> anyhow::Result<Artifact> {
    const LAYERS: usize = 4;
    let image = workload::image(name)?.layers(LAYERS, Layer::of(bytes / LAYERS)).build();
    cluster.registry.push(name, &["v1"], &image).await?;
    Ok(image)
}

impl<'a> Scene<'a> {
    pub async fn set(cluster: &'a Cluster, runtime: Runtime) -> anyhow::Result<Self> {
        let proxy = FaultProxy::start(&cluster.registry).await?;
        let node = Node::configure().runtime(runtime).join(&cluster.server).start(&proxy).await?;
        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
        let namespace = cluster.server.namespace_for_pods().await?;
        Ok(Self { node, cluster, proxy, desk, agent, namespace })
    }

    /// Lets the agent pull exactly these images, by name and tag or digest.
    pub async fn warm(&self, images: &[(&str, &str)]) -> anyhow::Result<()> {
        self.desk.ask(&spec(images.iter().map(|(name, tag)| (*name, vec![entry(tag)])))).await?;
        for image in images {
            self.desk.succeeded(*image, 0).await?;
        }
        self.agent.was_refused_nothing()
    }

    /// Starts a pod and measures its cost.
    pub async fn start(&self, name: &str, reference: &str) -> anyhow::Result<Cost> {
        let before = self.node.bytes_received()?;
        self.proxy.forget();
        let pod = Pod::new(name, reference).on(&self.node);
        let time = pod.make(self.cluster.server.client()?, &self.namespace).await?.ready().await?;
        let received = self.node.bytes_received()? - before;
        let requests = self.proxy.requests();
        let fetched = requests.iter().map(|request| request.bytes).sum();
        Ok(Cost { time, requests: requests.len(), fetched, received })
    }
}
