//! What is kept of what was begun, and for how long; and what two images do that share layers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use http::StatusCode;
use prewarm_agent::config::RuntimeChoice;
use prewarm_agent::disk::Room;
use prewarm_api::kruise::PullPhase;
use prewarm_plan::agent::disk::MinFree;
use prewarm_runtime::Endpoint;
use prewarm_testkit::image::{Artifact, Layer};
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::wait;
use serde_json::json;

use crate::node::{image_of, tag, with};
use crate::{Bed, LAYER, NAME, image};

impl Bed {
    /// Asks for two tags.
    pub async fn ask_for_two(&mut self, artifacts: [&Artifact; 2]) -> anyhow::Result<()> {
        for (tag, artifact) in ["v1", "v2"].iter().zip(artifacts) {
            self.registry.push("shop/web", &[tag], artifact).await?;
        }
        let entry = |name| with(tag(name), &json!({ "registryPolicy": "MirrorOnly" }));
        self.agent.ask(json!({ NAME: image_of(vec![entry("v1"), entry("v2")]) })).await;
        self.agent.start();
        Ok(())
    }

    /// Waits until so many pieces are begun.
    pub async fn begun(&self, pieces: usize) -> anyhow::Result<()> {
        wait::until("what was begun", async || Ok((self.pieces().await? >= pieces).then_some(()))).await
    }

    /// Waits until nothing is kept of what was begun.
    pub async fn discarded(&self) -> anyhow::Result<()> {
        wait::until("the end of what was begun", async || {
            let leases = self.machine.ctr(["leases", "ls", "-q"]).await?;
            Ok((leases.trim().is_empty() && self.pieces().await? == 0).then_some(()))
        })
        .await
    }

    /// How many of our pieces are begun, once the trial is over and mirrors are asked.
    pub async fn pieces(&self) -> anyhow::Result<usize> {
        if self.mirrors[0].requests_on(&On::Blobs).is_empty() {
            return Ok(0);
        }
        let active = self.machine.ctr(["content", "active"]).await?;
        Ok(active.lines().filter(|line| line.contains("prewarm-")).count())
    }
}

pub async fn nothing_is_kept_of_an_image_that_is_withdrawn() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    bed.push(&image("withdrawn").build()).await?;
    bed.mirrors[0].fail(On::Blobs, Fault::Slow(500_000));
    bed.configure(1)?;
    bed.ask(&json!({})).await;
    bed.agent.start();
    bed.begun(1).await?;
    bed.agent.patch(json!({ "spec": { "images": { NAME: null } } })).await;
    bed.discarded().await
}

pub async fn nothing_is_kept_of_an_image_that_failed_for_good() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifact = image("failed").build();
    bed.push(&artifact).await?;
    let last = artifact.blobs.iter().rfind(|blob| blob.bytes.len() > LAYER / 2).context("it has layers")?;
    let failure = Fault::Status(StatusCode::INTERNAL_SERVER_ERROR);
    bed.mirrors[0].fail(On::Path(last.digest.clone()), failure);
    bed.configure(1)?;
    bed.ask(&json!({ "pullPolicy": { "backoffLimit": 1 } })).await;
    bed.agent.start();
    let status = bed.status("its end", |tag| tag.phase == PullPhase::Failed).await;
    ensure!(status.failed_attempts == 2, "{status:?}");
    bed.discarded().await?;
    wait::until("the garbage collector", async || Ok(bed.holds_nothing_of(&artifact).await.ok())).await
}

pub async fn nothing_is_kept_of_any_image_when_the_disk_is_full() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let free = Arc::new(AtomicU64::new(500));
    let room = free.clone();
    let disk = Arc::new(move || Room { free: room.load(Ordering::Relaxed), capacity: 1000 });
    bed.agent.config.runtime = RuntimeChoice::Simulated(Endpoint::unix(bed.machine.socket()), disk);
    bed.agent.config.min_free = MinFree::Share(2000);
    bed.mirrors[0].fail(On::Blobs, Fault::Slow(500_000));
    bed.configure(1)?;
    bed.ask_for_two([&image("one").build(), &image("other").build()]).await?;
    // No image has more at once.
    bed.begun(4).await?;
    free.store(100, Ordering::Relaxed);
    bed.discarded().await
}

pub async fn an_image_does_not_wait_at_layers_that_another_one_brings() -> anyhow::Result<()> {
    let mut bed = Bed::start().await?;
    let artifacts = [LAYER / 2, LAYER / 4].map(|own| image("shared").layer(Layer::of(own)).build());
    let is_shared =
        |digest: &String| artifacts.iter().all(|one| one.blobs.iter().any(|blob| blob.digest == *digest));
    let digests =
        artifacts.iter().flat_map(|artifact| &artifact.blobs).filter(|blob| blob.bytes.len() > LAYER / 8);
    let (shared, own): (Vec<_>, Vec<_>) = digests.map(|blob| blob.digest.clone()).partition(is_shared);
    ensure!((shared.len(), own.len()) == (6, 2), "{shared:?} {own:?}");
    for digest in shared {
        bed.mirrors[0].fail(On::Path(digest), Fault::Hang);
    }
    bed.configure(1)?;
    bed.ask_for_two([&artifacts[0], &artifacts[1]]).await?;
    wait::until("a layer that is not shared", async || {
        let is_there = |digest: &String| {
            bed.mirrors[0].requests_on(&On::Path(digest.clone())).iter().any(|seen| seen.is_complete)
        };
        Ok(own.iter().any(is_there).then_some(()))
    })
    .await
}
