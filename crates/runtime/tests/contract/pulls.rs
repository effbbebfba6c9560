//! Pulls that succeed.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::FutureExt as _;
use prewarm_runtime::{Kind, Progress};

use super::{PATIENCE, SMALL, Shape, World, connect, request};

pub async fn a_present_image_is_pulled_again_without_harm(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    for _ in 0..2 {
        runtime.pull(&request(&offer.tagged)).await?;
        ensure!(runtime.image(&offer.tagged).await?.is_some());
    }
    Ok(())
}

pub async fn an_index_leads_to_the_image_of_this_platform(world: &impl World) -> anyhow::Result<()> {
    let shape = Shape { layers: 1, is_index: true };
    let (runtime, offer) = (connect(world).await?, world.offer("shop/both", "v1", shape).await?);
    runtime.pull(&request(&offer.tagged)).await?;
    let image = runtime.image(&offer.by_digest).await?.context("it is absent by the digest of its index")?;
    ensure!(image.is(&offer.tagged) && image.is(&offer.by_digest), "{image:?}");
    ensure!(image.size.abs_diff(offer.size) < 100_000, "{} and {}", image.size, offer.size);
    Ok(())
}

pub async fn a_dropped_pull_is_cancelled_and_the_next_one_succeeds(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    world.hold()?;
    let asked = request(&offer.tagged);
    let pull = tokio::time::timeout(Duration::from_secs(1), runtime.pull(&asked));
    ensure!(pull.await.is_err(), "a pull ended although the registry hangs");
    ensure!(runtime.image(&offer.tagged).await?.is_none());
    ensure!(runtime.progress(&offer.tagged).await?.is_none(), "a cancelled pull has progress");
    world.release()?;
    let next = tokio::time::timeout(PATIENCE, runtime.pull(&asked)).await.context("the next pull hangs")?;
    if let Err(error) = next {
        // CRI-O lets a caller join a pull that is about to end because its only caller has gone.
        ensure!(runtime.kind() == Kind::CriO && error.is_interrupted(), "{error}");
        runtime.pull(&asked).await?;
    }
    ensure!(runtime.image(&offer.tagged).await?.is_some());
    Ok(())
}

pub async fn two_callers_of_one_image_both_get_it(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    let asked = request(&offer.tagged);
    tokio::try_join!(runtime.pull(&asked), runtime.pull(&asked))?;
    ensure!(runtime.image(&offer.tagged).await?.is_some());
    Ok(())
}

pub async fn when_the_first_of_two_callers_leaves_the_second_gets_the_image_or_may_repeat(
    world: &impl World,
) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    world.hold()?;
    let asked = request(&offer.tagged);
    let mut first = Box::pin(runtime.pull(&asked));
    ensure!(tokio::time::timeout(Duration::from_millis(300), &mut first).await.is_err());
    let mut second = Box::pin(runtime.pull(&asked));
    ensure!(tokio::time::timeout(Duration::from_millis(300), &mut second).await.is_err());
    drop(first);
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.release()?;
    match tokio::time::timeout(PATIENCE, second).await.context("the second caller hangs")? {
        Ok(()) => ensure!(runtime.kind() == Kind::Containerd, "callers that share a pull end together"),
        Err(error) => {
            ensure!(runtime.kind() == Kind::CriO && error.is_interrupted(), "{error}");
            ensure!(!error.is_runtime_away() && !error.is_registry_overloaded(), "{error}");
            runtime.pull(&asked).await?;
        }
    }
    ensure!(runtime.image(&offer.tagged).await?.is_some());
    Ok(())
}

pub async fn progress_grows_to_the_sum_of_all_layers_on_containerd(world: &impl World) -> anyhow::Result<()> {
    let shape = Shape { layers: 6, is_index: true };
    let (runtime, offer) = (connect(world).await?, world.offer("shop/big", "v1", shape).await?);
    // Another image of the same repository, whose manifest must not be mistaken for this one's.
    let other = world.offer("shop/big", "v0", SMALL).await?;
    runtime.pull(&request(&other.tagged)).await?;
    world.slow()?;
    let asked = request(&offer.tagged);
    let mut pull = Box::pin(runtime.pull(&asked));
    let mut samples: Vec<Progress> = Vec::new();
    loop {
        let pause = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            pulled = &mut pull => break pulled?,
            () = pause => samples.extend(runtime.progress(&offer.tagged).await?),
        }
    }
    ensure!(runtime.progress(&offer.tagged).await?.is_none(), "a pull that ended has progress");
    if runtime.kind() != Kind::Containerd {
        ensure!(samples.is_empty(), "{samples:?}");
        return Ok(());
    }
    ensure!(samples.iter().all(|sample| sample.total == offer.size), "not {}: {samples:?}", offer.size);
    ensure!(samples.is_sorted_by_key(|sample| sample.done), "{samples:?}");
    let between = samples.iter().filter(|sample| (1..offer.size).contains(&sample.done)).count();
    ensure!(between >= 5, "only {between} samples on the way: {samples:?}");
    ensure!(samples.iter().all(|sample| sample.is_unpacking == (sample.done == sample.total)), "{samples:?}");
    Ok(())
}

pub async fn without_a_pull_there_is_no_progress(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    ensure!(runtime.progress(&offer.tagged).await?.is_none());
    world.hold()?;
    let asked = request(&offer.tagged);
    let mut pull = Box::pin(runtime.pull(&asked));
    ensure!(pull.as_mut().now_or_never().is_none());
    // The manifest has not arrived, so nothing is known yet. The fake has it at once.
    let early = runtime.progress(&offer.tagged).await?;
    ensure!(early.is_none_or(|early| early.done < early.total), "{early:?}");
    world.release()?;
    tokio::time::timeout(PATIENCE, pull).await.context("the pull hangs")??;
    ensure!(runtime.progress(&offer.tagged).await?.is_none());
    Ok(())
}
