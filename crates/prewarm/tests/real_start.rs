//! The purpose of Prewarm: a pod on a node that already has its image starts without fetching a byte of it.
//!
//! The agent pulls, a real kubelet starts the pod, and the bytes are counted twice: as requests to the registry,
//! and on the network link of the node, which kubelet and agent also use to reach the API server.

#[path = "real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "real_start/scene.rs"]
mod scene;

use anyhow::ensure;
use prewarm_testkit::{Runtime, real_tests};
use tokio::sync::OnceCell;

use cluster::Cluster;
use scene::{Scene, push};

real_tests! {
    a_pod_on_a_warmed_node_starts_without_a_byte_fetched_on_containerd,
    a_pod_on_a_warmed_node_starts_without_a_byte_fetched_on_cri_o,
}

/// The size of each image, far more than everything else on the link.
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
    let pinned = push(cluster, "start/pinned", IMAGE).await?;
    for name in ["start/tagged", "start/cold", "library/short"] {
        push(cluster, name, IMAGE).await?;
    }
    let (scene, digest) = (Scene::set(cluster, runtime).await?, pinned.digest());
    let (tagged, pinned) = ("registry.example/start/tagged", "registry.example/start/pinned");
    scene.warm(&[(tagged, "v1"), (pinned, digest), ("short", "v1")]).await?;

    // Without this, a count of zero could mean that nothing is counted.
    let cold = scene.start("cold", "registry.example/start/cold:v1").await?;
    ensure!(cold.fetched > IMAGE as u64 && cold.received > IMAGE as u64, "{cold:?}");
    for (name, reference) in [
        ("tag", format!("{tagged}:v1")),
        ("digest", format!("{pinned}@{digest}")),
        ("short", "short:v1".into()),
    ] {
        let warm = scene.start(name, &reference).await?;
        ensure!(warm.requests == 0 && warm.received < ALL_ELSE, "{reference} was fetched: {warm:?}");
        println!(
            "{runtime:?}, by {name}: ready after {:.1?} with {} kB over the cable; cold after {:.1?} with {} kB",
            warm.time,
            warm.received / 1000,
            cold.time,
            cold.received / 1000
        );
    }
    Ok(())
}

async fn shared() -> anyhow::Result<&'static Cluster> {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    let start = async || scene::furnish(prewarm_testkit::Cluster::start(&[]).await?).await;
    SHARED.get_or_try_init(start).await
}
