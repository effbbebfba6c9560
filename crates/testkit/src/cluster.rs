//! A whole cluster: API server, controllers, scheduler, registry, and full nodes on which pods run.

use anyhow::Context as _;
use futures::future::try_join_all;

use crate::api_server::{self, ApiServer};
use crate::node::{Node, Runtime};
use crate::registry::Registry;
use crate::workload;

/// The controllers that pods need to behave as in every cluster.
const CONTROLLERS: [&str; 7] = [
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
];

/// A running cluster. Dropping it ends its programs and pods.
pub struct Cluster {
    /// Dropped first: kubelet and pods need the others until they have ended.
    pub nodes: Vec<Node>,
    pub server: ApiServer,
    pub registry: Registry,
}

/// How a cluster differs from the usual one.
#[derive(Default)]
pub struct Configure {
    runtimes: Vec<Runtime>,
    server: api_server::Configure,
}

impl Cluster {
    /// Starts a cluster with a full node for each of these runtimes, and waits until all of them are ready for pods.
    pub async fn start(runtimes: &[Runtime]) -> anyhow::Result<Self> {
        Self::configure().nodes(runtimes).start().await
    }

    /// Configures a cluster that differs from the usual one, for example by its controllers.
    pub fn configure() -> Configure {
        Configure::default()
    }

    /// One more full node, which belongs to the caller.
    pub async fn node(&self, runtime: Runtime) -> anyhow::Result<Node> {
        node(&self.server, &self.registry, runtime).await
    }

    /// A fresh namespace in which pods can be created.
    pub async fn namespace(&self) -> anyhow::Result<String> {
        self.server.namespace_for_pods().await
    }
}

impl Configure {
    /// Adds a full node for each of these runtimes.
    #[must_use]
    pub fn nodes(mut self, runtimes: &[Runtime]) -> Self {
        self.runtimes.extend(runtimes);
        self
    }

    /// Runs further controllers of kube-controller-manager, by their full names, for example `job-controller`.
    #[must_use]
    pub fn controllers(mut self, names: &[&str]) -> Self {
        self.server = self.server.controllers(names);
        self
    }

    /// Adds a flag of kube-apiserver.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.server = self.server.flag(flag);
        self
    }

    pub async fn start(self) -> anyhow::Result<Cluster> {
        let server = self.server.controllers(&CONTROLLERS).scheduler();
        let (server, registry) = tokio::try_join!(server.start(), registry())?;
        let nodes = self.runtimes.iter().map(|runtime| node(&server, &registry, *runtime));
        let nodes = try_join_all(nodes).await.context("starting the nodes")?;
        Ok(Cluster { nodes, server, registry })
    }
}

async fn registry() -> anyhow::Result<Registry> {
    let registry = Registry::start().await?;
    workload::push_sandbox(&registry).await?;
    Ok(registry)
}

async fn node(server: &ApiServer, registry: &Registry, runtime: Runtime) -> anyhow::Result<Node> {
    Node::configure().runtime(runtime).join(server).start(registry).await
}
