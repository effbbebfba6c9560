//! What keeps pods from running, with the messages of the server and the scheduler.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use prewarm_api::kruise::BroadcastJobPhase;
use serde_json::json;

use crate::world::{World, counters, trouble};

/// The server checks a template only when a pod is made from it.
pub async fn a_refused_pod_is_named() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let containers = json!([{"name": "Not A Name", "image": "registry.example/broadcast/tool:v1"}]);
    let spec = json!({"template": {"spec": {"containers": containers}}});
    let scene = world.broadcast("v1beta1", &[], spec).await?;
    let job = scene.until("condition", |job| trouble(job, "PodsCreated").is_some()).await?;
    let words = trouble(&job, "PodsCreated").unwrap_or_default();
    ensure!(words.contains("spec.containers[0].name: Invalid value"), "{words}");
    ensure!(scene.event("PodRefused").await? == words, "the event says the same");
    // The user repairs the template, and the job continues.
    let fixed =
        json!([{"name": "main", "image": "registry.example/broadcast/tool:v1", "args": ["exit", "0"]}]);
    scene.edit(json!({"spec": {"template": {"spec": {"containers": fixed}}}})).await?;
    let job = scene.reaches(BroadcastJobPhase::Completed).await?;
    ensure!(counters(&job) == [2, 0, 2, 0], "{:?}", job.status);
    Ok(())
}

/// The first job takes more than half of each node, so the second one would fit but finds no free resources.
pub async fn a_pod_without_room_is_named() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let node = Api::<Node>::all(world.client()?).get(world.cluster.nodes[0].name()).await?;
    let has = node.status.and_then(|status| status.allocatable?.get("memory").cloned()).context("memory")?;
    let kibibytes: u64 = has.0.trim_end_matches("Ki").parse().context("an amount of memory in Ki")?;
    let resources = json!({"requests": {"memory": format!("{}Ki", kibibytes / 5 * 3)}});
    let container = |arguments: &[&str]| {
        json!([{"name": "main", "image": "registry.example/broadcast/tool:v1", "args": arguments,
            "resources": resources}])
    };
    let spec = |arguments: &[&str]| json!({"template": {"spec": {"containers": container(arguments)}}});
    let first = world.broadcast("v1beta1", &[], spec(&[])).await?;
    first.until("two pods", |job| counters(job)[1] == 2).await?;
    first.live_pods(2).await?;
    let second = world.broadcast("v1beta1", &[], spec(&["exit", "0"])).await?;
    let job = second.until("condition", |job| trouble(job, "PodsScheduled").is_some()).await?;
    let words = trouble(&job, "PodsScheduled").unwrap_or_default();
    ensure!(words.contains("Insufficient memory"), "{words}");
    second.event("PodUnschedulable").await?;
    first.jobs.delete("sweep", &kube::api::DeleteParams::background()).await?;
    let job = second.reaches(BroadcastJobPhase::Completed).await?;
    ensure!(counters(&job) == [2, 0, 2, 0], "{:?}", job.status);
    Ok(())
}
