//! The trial that an agent makes before it brings images past a pull, and what it says of a containerd that is not fit for that.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use prewarm_testkit::{Containerd, Node, wait};

use crate::bed::{Bed, LEASE, config, image, labels, platform, target};

/// The name of the images of trials.
const TRIAL: &str = "prewarm.invalid/start-check";

pub async fn a_trial_succeeds_and_leaves_nothing(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let before = bed.holds().await?;
    let fitness = bed.runtime.try_out_content(&platform()).await?;
    ensure!(fitness.takes_other_digests == (release == Containerd::Newest), "{fitness:?}");
    left_nothing(&bed, before).await
}

pub async fn what_a_killed_trial_left_goes_with_the_next_one(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let before = bed.holds().await?;
    let artifact = image("left by a trial").build();
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &artifact, &labels()).await?;
    let root = target(&artifact);
    bed.store.unpack(&lease, &root, &platform(), &bed.runtime.snapshotter().await?).await?;
    let names =
        [format!("{TRIAL}@{}", root.digest), config(&artifact)?, format!("{TRIAL}:1700000000000000000")];
    for name in &names {
        bed.store.name(name, &root).await?;
    }
    bed.is_there(&names[2]).await?;
    bed.store.release(LEASE, true).await?;
    bed.runtime.try_out_content(&platform()).await?;
    wait::until("the garbage collector", async || Ok((bed.holds().await? == before).then_some(()))).await?;
    left_nothing(&bed, before).await
}

pub async fn a_trial_that_nobody_waits_for_leaves_nothing(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let before = bed.holds().await?;
    let platform = platform();
    for milliseconds in [1, 5, 20, 60] {
        let patience = Duration::from_millis(milliseconds);
        drop(tokio::time::timeout(patience, bed.runtime.try_out_content(&platform)).await);
    }
    wait::until("the end of the trials", async || Ok(left_nothing(&bed, before).await.ok())).await
}

/// As before containerd 1.7, which has neither of the two.
pub async fn without_a_transfer_service_the_trial_fails_and_says_so(
    release: Containerd,
) -> anyhow::Result<()> {
    let services = &["io.containerd.grpc.v1.transfer", "io.containerd.grpc.v1.streaming"];
    let bed = Bed::on(Node::configure().containerd(release).without(services)).await?;
    fails(&bed, "this containerd has no transfer service; version 1.7 or newer has one").await
}

pub async fn a_snapshotter_without_unpack_config_is_named(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::on(Node::configure().containerd(release).snapshotter("native")).await?;
    fails(
        &bed,
        "containerd's transfer service does not unpack with the snapshotter native; add it to unpack_config of \
         io.containerd.transfer.v1.local",
    )
    .await
}

async fn fails(bed: &Bed, why: &str) -> anyhow::Result<()> {
    let before = bed.holds().await?;
    let error = bed.runtime.try_out_content(&platform()).await.err().context("the trial fails")?;
    ensure!(error.to_string() == why, "{error}");
    ensure!(!error.is_runtime_away(), "it is there and answers");
    left_nothing(bed, before).await
}

async fn left_nothing(bed: &Bed, before: (usize, usize)) -> anyhow::Result<()> {
    // CRI learns by events that names are gone.
    let none = async || Ok(bed.node.cri()?.images().await?.is_empty().then_some(()));
    wait::until("CRI to forget the image", none).await?;
    let after = bed.holds().await?;
    ensure!(after == before, "{before:?} {after:?}");
    ensure!(bed.node.ctr(["leases", "ls", "-q"]).await?.trim().is_empty(), "a lease is left");
    ensure!(bed.proxy.requests().is_empty(), "{:?}", bed.proxy.requests());
    Ok(())
}
