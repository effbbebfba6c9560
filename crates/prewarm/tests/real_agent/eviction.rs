//! Images that are removed from the node after they were warmed.

use anyhow::ensure;
use prewarm_api::kruise::{ImageTagSpec, PullPhase};
use prewarm_api::reference_object::ObjectReference;
use prewarm_testkit::Runtime;
use prewarm_testkit::image::{Image, Layer};

use crate::cluster::Cluster;
use crate::desk::{entry, spec};
use crate::program::Agent;

const BY_HAND: (&str, &str) = ("registry.example/evicted/by-hand", "v1");
const OF_A_JOB: (&str, &str) = ("registry.example/evicted/of-a-job", "v1");

pub async fn a_removed_image_is_pulled_again_or_reported_on_containerd() -> anyhow::Result<()> {
    a_removed_image_is_pulled_again_or_reported(Runtime::Containerd).await
}

pub async fn a_removed_image_is_pulled_again_or_reported_on_cri_o() -> anyhow::Result<()> {
    a_removed_image_is_pulled_again_or_reported(Runtime::Crio).await
}

async fn a_removed_image_is_pulled_again_or_reported(runtime: Runtime) -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    for (name, _) in [BY_HAND, OF_A_JOB] {
        let repository = name.trim_start_matches("registry.example/");
        let image = Image::new(repository).layer(Layer::of(100_000)).build();
        cluster.registry.push(repository, &["v1"], &image).await?;
    }
    let node = cluster.node(runtime).await?;
    let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
    let job = ObjectReference {
        kind: Some("ImagePullJob".to_owned()),
        name: Some("warm".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("uid-of-warm".to_owned()),
        ..ObjectReference::default()
    };
    let of_a_job = ImageTagSpec { owner_references: Some(vec![job]), ..entry("v1") };
    desk.ask(&spec([(BY_HAND.0, vec![entry("v1")]), (OF_A_JOB.0, vec![of_a_job])])).await?;
    desk.succeeded(BY_HAND, 0).await?;
    let warmed = desk.succeeded(OF_A_JOB, 0).await?;

    for (name, tag) in [BY_HAND, OF_A_JOB] {
        node.remove(&format!("{name}:{tag}")).await?;
    }
    let lost =
        desk.until_tag("to be lost", OF_A_JOB, |tag| tag.lost_at.is_some().then(|| tag.clone())).await?;
    ensure!(lost.phase == PullPhase::Succeeded && lost.completion_time == warmed.completion_time, "{lost:?}");
    ensure!(lost.version == warmed.version && lost.image_id == warmed.image_id, "{lost:?}");
    let is_back = |tag: &prewarm_api::kruise::ImageTagStatus| {
        (tag.phase == PullPhase::Succeeded && tag.lost_at.is_none()).then_some(())
    };
    // Two pulls of the first image, and one of the second.
    prewarm_testkit::wait::until("the image to be back", async || {
        let pulled = agent.counter("prewarm_agent_pulls_total{result=\"succeeded\",class=\"\"}").await?;
        Ok((pulled == 3).then_some(()))
    })
    .await?;
    desk.until_tag("to be back", BY_HAND, is_back).await?;
    let present = node.images().await?;
    let is_present = |(name, tag): (&str, &str)| present.contains(&format!("{name}:{tag}"));
    ensure!(is_present(BY_HAND) && !is_present(OF_A_JOB), "{present:?}");
    Ok(())
}
