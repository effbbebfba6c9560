//! What Prewarm is for: a pod on a node that has its image already starts without a byte of it being fetched.
//!
//! The agent pulls, a real kubelet starts the pod, and the bytes are counted twice: as requests to the registry, and on
//! the cable of the node, over which kubelet and agent talk to the API server as well.

#[path = "real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;

use anyhow::ensure;
use prewarm_testkit::image::{Artifact, Layer};
use prewarm_testkit::{FaultProxy, Node, Pod, Runtime, real_tests, workload};
use tokio::sync::OnceCell;

use cluster::{Cluster, node_images};
use desk::{entry, spec};
use program::Agent;

real_tests! {
    a_pod_on_a_warmed_node_starts_without_a_byte_fetched_on_containerd,
    a_pod_on_a_warmed_node_starts_without_a_byte_fetched_on_cri_o,
}

/// The size of each image, far from what all else on the cable amounts to.
const IMAGE: usize = 30_000_000;
const ALL_ELSE: u64 = 1_000_000;

async fn a_pod_on_a_warmed_node_starts_without_a_byte_fetched_on_containerd() -> anyhow::Result<()> {
    a_pod_on_a_warmed_node_starts_without_a_byte_fetched(Runtime::Containerd).await
}

async fn a_pod_on_a_warmed_node_starts_without_a_byte_fetched_on_cri_o() -> anyhow::Result<()> {
    a_pod_on_a_warmed_node_starts_without_a_byte_fetched(Runtime::Crio).await
}

async fn a_pod_on_a_warmed_node_starts_without_a_byte_fetched(runtime: Runtime) -> anyhow::Result<()> {
    let cluster = shared().await?;
    let pinned = push(cluster, "start/pinned").await?;
    for name in ["start/tagged", "start/cold", "library/short"] {
        push(cluster, name).await?;
    }
    let proxy = FaultProxy::start(&cluster.registry).await?;
    let node = Node::configure().runtime(runtime).join(&cluster.server).start(&proxy).await?;
    let scene = Scene { cluster, proxy, node, namespace: cluster.server.namespace_for_pods().await? };

    let digest = pinned.digest();
    let (desk, agent) = (cluster.desk(&scene.node)?, Agent::start(cluster, &scene.node, &[]).await?);
    let images =
        [("registry.example/start/tagged", "v1"), ("registry.example/start/pinned", digest), ("short", "v1")];
    desk.ask(&spec(images.map(|(name, tag)| (name, vec![entry(tag)])))).await?;
    for image in images {
        desk.succeeded(image, 0).await?;
    }
    agent.was_refused_nothing()?;

    let cold = scene.start("cold", "registry.example/start/cold:v1").await?;
    ensure!(cold.requests > 0 && cold.bytes > IMAGE as u64, "nothing was counted: {cold:?}");
    for (name, reference) in [
        ("tagged", "registry.example/start/tagged:v1"),
        ("pinned", &format!("registry.example/start/pinned@{digest}")),
        ("short", "short:v1"),
    ] {
        let warm = scene.start(name, reference).await?;
        ensure!(warm.requests == 0 && warm.bytes < ALL_ELSE, "{reference} was fetched: {warm:?}");
        println!("{runtime:?}: {name} is ready after {:.1?}, cold after {:.1?}", warm.time, cold.time);
    }
    Ok(())
}

/// A server with a scheduler and controllers, and a registry. Each test brings a node of its own.
async fn shared() -> anyhow::Result<&'static Cluster> {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    let start = async || {
        let bare = prewarm_testkit::Cluster::start(&[]).await?;
        Cluster::furnish(bare.server, bare.registry, &node_images()).await
    };
    SHARED.get_or_try_init(start).await
}

/// Stores an image that shares nothing with others but its program.
async fn push(cluster: &Cluster, name: &str) -> anyhow::Result<Artifact> {
    let image = workload::image(name)?.layers(3, Layer::of(IMAGE / 3)).build();
    cluster.registry.push(name, &["v1"], &image).await?;
    Ok(image)
}

struct Scene {
    cluster: &'static Cluster,
    proxy: FaultProxy,
    node: Node,
    namespace: String,
}

/// What the start of a pod cost.
#[derive(Debug)]
struct Cost {
    time: std::time::Duration,
    /// To the registry.
    requests: usize,
    /// Over the node's cable, from whomever.
    bytes: u64,
}

impl Scene {
    async fn start(&self, name: &str, reference: &str) -> anyhow::Result<Cost> {
        let before = self.node.bytes_received()?;
        self.proxy.forget();
        let pod = Pod::new(name, reference).on(&self.node);
        let time = pod.make(self.cluster.server.client()?, &self.namespace).await?.ready().await?;
        let bytes = self.node.bytes_received()? - before;
        Ok(Cost { time, requests: self.proxy.requests().len(), bytes })
    }
}
