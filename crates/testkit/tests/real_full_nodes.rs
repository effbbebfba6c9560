//! Full nodes: kubelet, real pods, and what they must not do to the machine.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use prewarm_testkit::image::Layer;
use prewarm_testkit::{Cluster, Pod, Runtime, real_tests, workload};

real_tests! {
    a_pod_runs_on_a_node_of_each_runtime,
}

const MIB: usize = 1024 * 1024;

async fn a_pod_runs_on_a_node_of_each_runtime() -> anyhow::Result<()> {
    let sysctls = sysctls()?;
    let start = Instant::now();
    let cluster = Cluster::start(&Runtime::ALL).await?;
    println!("both nodes ready after {:?}", start.elapsed());
    let image = workload::image("shop")?.layer(Layer::of(MIB)).build();
    cluster.registry.push("shop/web", &["v1"], &image).await?;
    let namespace = cluster.namespace().await?;
    for node in &cluster.nodes {
        let pod = Pod::new(node.name(), "registry.example/shop/web:v1").on(node);
        let pod = pod.make(cluster.server.client()?, &namespace).await?;
        println!("pod on {:?} ready after {:?}", node.kind(), pod.ready().await?);
        ensure!(pod.log().await?.contains("workload begins"), "{}", pod.log().await?);
    }
    let nodes = Api::<core::Node>::all(cluster.server.client()?);
    let node = nodes.get(cluster.nodes[1].name()).await?;
    let about = node.status.and_then(|status| status.node_info).context("a node tells about itself")?;
    ensure!(about.container_runtime_version.starts_with("cri-o://"), "{about:?}");
    ensure!(sysctls == self::sysctls()?, "a kubelet changed the machine");
    Ok(())
}

/// The values of the machine that a kubelet would change.
fn sysctls() -> anyhow::Result<Vec<String>> {
    let names = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"];
    let read =
        |name| fs::read_to_string(format!("/proc/sys/{name}")).with_context(|| format!("reading {name}"));
    names.into_iter().map(read).collect()
}
