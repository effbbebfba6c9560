//! Every form of a reference, and when the registry is asked.

use anyhow::ensure;
use prewarm_api::kruise::{ImagePullPolicy, ImageTagSpec, PullPhase, SyncResult};
use prewarm_testkit::image::{Image, Layer, index, native_architecture};
use prewarm_testkit::registry::fault::On;
use prewarm_testkit::{FaultProxy, Runtime};

use crate::cluster::Cluster;
use crate::desk::{entry, find, spec};
use crate::program::Agent;

const LAYER: usize = 100_000;

pub async fn every_form_of_reference_is_pulled_on_containerd() -> anyhow::Result<()> {
    every_form_of_reference_is_pulled(Runtime::Containerd).await
}

pub async fn every_form_of_reference_is_pulled_on_cri_o() -> anyhow::Result<()> {
    every_form_of_reference_is_pulled(Runtime::Crio).await
}

async fn every_form_of_reference_is_pulled(runtime: Runtime) -> anyhow::Result<()> {
    let cluster = Cluster::shared().await?;
    let registry = &cluster.registry;
    let image = |seed: &str| Image::new(seed).layer(Layer::of(LAYER));
    let plain = image("forms").build();
    let pinned = image("pinned").build();
    let foreign = if native_architecture() == "arm64" { "amd64" } else { "arm64" };
    let both = index(&[image("foreign").architecture(foreign), image("native")]);
    for name in ["forms/web", "forms/deep/down/here", "library/forms"] {
        registry.push(name, &["v1"], &plain).await?;
    }
    registry.push("forms/pinned", &["v1"], &pinned).await?;
    registry.push("forms/both", &["v1"], &both).await?;
    let with_port = format!("{}/forms/web", registry.host());
    let digest = pinned.digest();
    let forms = [
        ("registry.example/forms/web", "v1", "registry.example/forms/web:v1".to_owned()),
        ("registry.example/forms/pinned", digest, format!("registry.example/forms/pinned@{digest}")),
        (&with_port, "v1", format!("{with_port}:v1")),
        (
            "registry.example/forms/deep/down/here",
            "v1",
            "registry.example/forms/deep/down/here:v1".to_owned(),
        ),
        ("registry.example/forms/both", "v1", "registry.example/forms/both:v1".to_owned()),
        ("forms", "v1", "docker.io/library/forms:v1".to_owned()),
    ];

    let node = cluster.node(runtime).await?;
    let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
    desk.ask(&spec(forms.iter().map(|(name, tag, _)| (*name, vec![entry(tag)])))).await?;
    let status = desk.settled(forms.len()).await?;

    let present = node.cri()?.images().await?;
    let present: Vec<&String> =
        present.iter().flat_map(|image| image.tags.iter().chain(&image.digests)).collect();
    for (name, tag, reference) in &forms {
        let tag = find(&status, name, tag).expect("every entry has a status");
        ensure!(tag.phase == PullPhase::Succeeded && tag.failed_attempts == 0, "{tag:?}");
        ensure!(tag.progress == 100 && tag.start_time.is_some() && tag.completion_time.is_some(), "{tag:?}");
        ensure!(tag.image_id.as_ref().is_some_and(|id| id.starts_with(&format!("{name}@"))), "{tag:?}");
        ensure!(present.contains(&reference), "{reference} is not among {present:?}");
    }
    ensure!(usize::try_from(status.succeeded)? == forms.len(), "{status:?}");
    let first_sync = status.first_sync_status.expect("the first pass is over");
    ensure!(first_sync.status == Some(SyncResult::Succeeded), "{first_sync:?}");
    ensure!(status.image_filesystem.is_some_and(|room| room.free_bytes > 0), "the disk is looked at");
    agent.ready().await?;
    agent.was_refused_nothing()
}

pub async fn an_image_that_is_there_costs_the_registry_nothing_unless_it_is_to_be_asked() -> anyhow::Result<()>
{
    let cluster = Cluster::shared().await?;
    let image = Image::new("present").layer(Layer::of(LAYER)).build();
    cluster.registry.push("present/web", &["v1"], &image).await?;
    for runtime in Runtime::ALL {
        let (node, proxy) = (cluster.node(runtime).await?, FaultProxy::start(&cluster.registry).await?);
        node.lead("watched.example", &proxy)?;
        let name = "watched.example/present/web";
        node.pull(&format!("{name}:v1")).await?;
        proxy.forget();

        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
        desk.ask(&spec([(name, vec![entry("v1")])])).await?;
        desk.succeeded((name, "v1"), 0).await?;
        ensure!(proxy.requests().is_empty(), "{runtime:?}: {:#?}", proxy.requests());
        ensure!(agent.counter("prewarm_agent_pulls_total{result=\"present\",class=\"\"}").await? == 1);

        let image_pull_policy = ImagePullPolicy::Always;
        let again = ImageTagSpec { version: 1, image_pull_policy, ..entry("v1") };
        desk.ask(&spec([(name, vec![again])])).await?;
        desk.succeeded((name, "v1"), 1).await?;
        ensure!(!proxy.requests_on(&On::Manifests).is_empty(), "{runtime:?} was not made to ask");
        // CRI-O reads the image's configuration again, but no layer.
        let layer = On::Path(image.blobs[1].digest.clone());
        ensure!(proxy.requests_on(&layer).is_empty(), "{runtime:?}: {:#?}", proxy.requests());
        agent.was_refused_nothing()?;
    }
    Ok(())
}
