//! Nodes that join and change.

use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use prewarm_testkit::Runtime;
use serde_json::json;

use crate::world::{POOL, World, counters, label, trouble};

pub async fn a_node_that_joins_late_gets_its_pod_unless_it_is_tainted() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let spec = |tolerations: serde_json::Value| {
        json!({
            "completionPolicy": {"type": "Never"},
            "template": {"spec": {"nodeSelector": {POOL: "late"}, "tolerations": tolerations}},
        })
    };
    let scene = world.broadcast("v1beta1", &["exit", "0"], spec(json!([]))).await?;
    let job = scene.until("condition", |job| trouble(job, "NodesFound").is_some()).await?;
    let words = trouble(&job, "NodesFound").unwrap_or_default();
    ensure!(words.contains("labels do not match"), "{words}");

    let node = world.cluster.node(Runtime::Containerd).await?;
    label(&world.client()?, node.name(), "late").await?;
    scene.until("pod of the new node", |job| counters(job) == [1, 0, 1, 0]).await?;
    let nodes = scene.nodes().await?;
    ensure!(nodes == [node.name()], "pods on {nodes:?} instead of {}\n{}", node.name(), scene.whole().await?);

    let taint = json!({"spec": {"taints": [{"key": "test.example/closed", "effect": "NoSchedule"}]}});
    let nodes = Api::<Node>::all(world.client()?);
    nodes.patch(node.name(), &PatchParams::default(), &Patch::Merge(taint)).await?;
    let refused = world.broadcast("v1beta1", &["exit", "0"], spec(json!([]))).await?;
    let taken = world
        .broadcast(
            "v1beta1",
            &["exit", "0"],
            spec(json!([{"key": "test.example/closed", "operator": "Exists"}])),
        )
        .await?;
    taken.until("pod that tolerates the taint", |job| counters(job) == [1, 0, 1, 0]).await?;
    let job = refused.until("condition", |job| trouble(job, "NodesFound").is_some()).await?;
    let words = trouble(&job, "NodesFound").unwrap_or_default();
    ensure!(words.contains("taint test.example/closed:NoSchedule is not tolerated"), "{words}");
    ensure!(counters(&scene.jobs.get("sweep").await?) == [1, 0, 1, 0], "what has ended stays");
    Ok(())
}
