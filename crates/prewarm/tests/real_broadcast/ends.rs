//! How jobs end.

use anyhow::ensure;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_testkit::wait;
use serde_json::json;

use crate::world::{POOL, VERSIONS, World, counters};

/// kruise T15: with a tainted node without a kubelet, which the pods tolerate.
pub async fn every_node_runs_the_pod_once() -> anyhow::Result<()> {
    let world = World::shared().await?;
    for version in VERSIONS {
        let pool = format!("all-{version}");
        let nodes = Api::<Node>::all(world.client()?);
        let fake = json!({
            "metadata": {"name": format!("fake-{version}"), "labels": {POOL: pool}},
            "spec": {"taints": [{"key": "test.example/fake", "value": "true", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"pods": "10"}, "capacity": {"pods": "10"}},
        });
        nodes.create(&PostParams::default(), &serde_json::from_value(fake)?).await?;
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": POOL, "operator": "In", "values": ["shared", pool]},
            ]}],
        }}});
        let template = json!({"spec": {
            "nodeSelector": null, "affinity": affinity, "tolerations": [{"operator": "Exists"}],
        }});
        let scene =
            world.broadcast(version, &["exit", "0"], json!({"parallelism": 2, "template": template})).await?;
        scene.until("desired nodes", |job| counters(job)[0] == 3).await?;
        // The fake node has no kubelet, so the test reports for it as soon as its pod exists.
        scene.until("the end of the real pods", |job| counters(job)[2] == 2).await?;
        let is_open =
            |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending");
        let name = wait::until("the pod of the fake node", async || {
            let pods = scene.pods.list(&ListParams::default()).await?.items;
            Ok(pods.into_iter().find(is_open).and_then(|pod| pod.metadata.name))
        });
        let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        scene.pods.patch_status(&name.await?, &PatchParams::default(), &ended).await?;
        let job = scene.reaches(BroadcastJobPhase::Completed).await?;
        ensure!(counters(&job) == [3, 0, 3, 0], "{:?}", job.status);
        let ran = scene.nodes().await?;
        ensure!(ran.len() >= 2 && ran.windows(2).all(|pair| pair[0] != pair[1]), "pods ran on {ran:?}");
        scene.event("JobComplete").await?;
        nodes.delete(&format!("fake-{version}"), &DeleteParams::default()).await?;
    }
    Ok(())
}

/// kruise T16, R111.
pub async fn a_job_goes_by_its_ttl_and_its_pods_with_it() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let kept = json!({"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 30}});
    let scene = world.broadcast("v1beta1", &["exit", "0"], kept).await?;
    let job = scene.reaches(BroadcastJobPhase::Completed).await?;
    ensure!(job.spec.completion_policy.ttl_seconds_after_finished == Some(30), "{:?}", job.spec);
    let short = json!({"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 2}});
    let scene = world.broadcast("v1beta1", &["exit", "0"], short).await?;
    wait::until("the end of the job and its pods", async || {
        let is_gone = scene.jobs.get_opt("sweep").await?.is_none();
        let pods = scene.pods.list(&ListParams::default()).await?.items;
        Ok((is_gone && pods.is_empty()).then_some(()))
    })
    .await
}

/// kruise T115, T117.
pub async fn a_failed_pod_fails_the_job() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let scene = world.broadcast("v1beta1", &["exit", "1"], json!({"parallelism": 1})).await?;
    let job = scene.reaches(BroadcastJobPhase::Failed).await?;
    ensure!(counters(&job) == [2, 0, 0, 1], "{:?}", job.status);
    let note = scene.event("failed pod is found").await?;
    ensure!(note.contains("1 pods failed"), "{note}");
    ensure!(scene.nodes().await?.len() == 1, "the other node was left alone");
    Ok(())
}

/// kruise T116.
pub async fn a_job_that_continues_completes_with_its_failures() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let spec = json!({"parallelism": 1, "failurePolicy": {"type": "Continue"}});
    let scene = world.broadcast("v1alpha1", &["exit", "1"], spec).await?;
    let job = scene.reaches(BroadcastJobPhase::Completed).await?;
    ensure!(counters(&job) == [2, 0, 0, 2], "{:?}", job.status);
    Ok(())
}

/// kruise T118, W26.
pub async fn a_job_that_pauses_goes_on_when_it_is_resumed() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let spec = json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}});
    let scene = world.broadcast("v1beta1", &["exit", "1"], spec).await?;
    for failures in 1..=2 {
        let noted = |job: &prewarm_api::kruise::BroadcastJob| {
            job.status.as_ref().is_some_and(|status| status.paused_failures == Some(failures))
        };
        let job = scene.until(&format!("pause for {failures} failures"), noted).await?;
        ensure!(job.spec.paused, "the pause is in the spec");
        ensure!(scene.nodes().await?.len() == usize::try_from(failures)?, "one node after the other");
        scene.edit(json!({"spec": {"paused": false}})).await?;
    }
    let job = scene.reaches(BroadcastJobPhase::Completed).await?;
    ensure!(counters(&job) == [2, 0, 0, 2], "{:?}", job.status);
    scene.event("Paused").await?;
    scene.event("Continue").await?;
    Ok(())
}

/// kruise T120.
pub async fn a_job_over_its_deadline_fails_and_its_pods_go() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let spec = json!({"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 5}});
    let scene = world.broadcast("v1beta1", &[], spec).await?;
    let job = scene.reaches(BroadcastJobPhase::Failed).await?;
    ensure!(counters(&job) == [2, 0, 0, 2], "{:?}", job.status);
    scene.live_pods(0).await?;
    scene.event("DeadlineExceeded").await?;
    Ok(())
}

/// kruise R113, W26.
pub async fn a_pod_that_restarts_too_often_counts_as_failed() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let spec = json!({
        "template": {"spec": {"restartPolicy": "OnFailure"}},
        "failurePolicy": {"type": "Continue", "restartLimit": 1},
    });
    let scene = world.broadcast("v1beta1", &["exit", "1"], spec).await?;
    let job = scene.reaches(BroadcastJobPhase::Completed).await?;
    ensure!(counters(&job) == [2, 0, 0, 2], "{:?}", job.status);
    // They would run for ever.
    scene.live_pods(0).await?;
    Ok(())
}
