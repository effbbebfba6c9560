//! A cluster as a user has it: our definitions, and the agent's role and policy as they are shipped.

use std::path::PathBuf;

use anyhow::Context as _;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use prewarm_api::permission::{AGENT, SYSTEM_NAMESPACE};
use prewarm_testkit::{ApiServer, Node, Registry, Runtime};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::desk::Desk;
use prewarm_testkit::install;

/// An API server and a registry. Each test brings nodes of its own.
pub struct Cluster {
    pub server: ApiServer,
    pub registry: Registry,
}

impl Cluster {
    /// The cluster that is shared by the tests that disturb neither the server nor the registry.
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED.get_or_try_init(async || Self::start(&node_images()).await).await
    }

    /// A cluster of its own, with these definitions.
    pub async fn start(definitions: &[CustomResourceDefinition]) -> anyhow::Result<Self> {
        Self::furnish(ApiServer::start().await?, Registry::start().await?, definitions).await
    }

    /// Makes a cluster from a running server and registry.
    pub async fn furnish(
        server: ApiServer,
        registry: Registry,
        definitions: &[CustomResourceDefinition],
    ) -> anyhow::Result<Self> {
        install::definitions(&server.client()?, definitions).await?;
        install::rights(&server).await?;
        Ok(Self { server, registry })
    }

    /// A node on which all image names lead to the registry.
    pub async fn node(&self, runtime: Runtime) -> anyhow::Result<Node> {
        Node::configure().runtime(runtime).start(&self.registry).await
    }

    /// The NodeImage of a node.
    pub fn desk(&self, node: &Node) -> anyhow::Result<Desk> {
        Ok(Desk::new(self.server.client()?, node.name()))
    }

    /// Registers the node, and returns a kubeconfig with the token that its kubelet would mount into the agent's pod.
    pub async fn kubeconfig(&self, node: &str) -> anyhow::Result<PathBuf> {
        let nodes = Api::<core::Node>::all(self.server.client()?);
        apply(&nodes, json!({ "metadata": { "name": node } })).await?;
        self.server.kubeconfig_of_service_account(SYSTEM_NAMESPACE, AGENT.name, node).await
    }
}

/// The definition of NodeImages, the only one that agents need.
pub fn node_images() -> Vec<CustomResourceDefinition> {
    let all = prewarm_api::crd::all().iter();
    all.filter(|crd| crd.spec.names.plural == "nodeimages").cloned().collect()
}

/// Applies an object of the kind that the API is for.
pub async fn apply<K>(api: &Api<K>, mut object: Value) -> anyhow::Result<K>
where
    K: k8s_openapi::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let name = object["metadata"]["name"].as_str().context("an object has a name")?.to_owned();
    object["apiVersion"] = K::API_VERSION.into();
    object["kind"] = K::KIND.into();
    let params = PatchParams::apply("prewarm-tests").force();
    api.patch(&name, &params, &Patch::Apply(object)).await.with_context(|| format!("applying {name}"))
}
