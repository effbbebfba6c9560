//! Calls that look something up.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::Kind;

use super::{PATIENCE, SMALL, World, connect, request};

pub async fn an_image_that_was_never_pulled_is_absent(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    ensure!(runtime.image(&offer.tagged).await?.is_none());
    ensure!(runtime.image(&offer.by_digest).await?.is_none());
    Ok(())
}

pub async fn a_pulled_image_is_found_by_tag_and_by_digest(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    runtime.pull(&request(&offer.tagged)).await?;
    for reference in [&offer.tagged, &offer.by_digest] {
        let image = runtime.image(reference).await?.with_context(|| format!("{reference} is absent"))?;
        ensure!(image.is(&offer.tagged) && image.is(&offer.by_digest), "{image:?}");
    }
    let other = ImageRef::from_parts(offer.tagged.name(), "v2")?;
    ensure!(runtime.image(&other).await?.is_none(), "another tag is present too");
    Ok(())
}

pub async fn a_short_name_means_the_public_registry(world: &impl World) -> anyhow::Result<()> {
    let runtime = connect(world).await?;
    world.offer("library/tool", "v1", SMALL).await?;
    let short = ImageRef::parse("tool:v1")?;
    runtime.pull(&request(&short)).await?;
    let image = runtime.image(&short).await?.context("it is absent")?;
    ensure!(image.is(&ImageRef::parse("docker.io/library/tool:v1")?), "{image:?}");
    ensure!(!image.is(&ImageRef::parse("registry.example/library/tool:v1")?), "{image:?}");
    Ok(())
}

pub async fn an_image_pulled_by_digest_does_not_have_its_tag(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    runtime.pull(&request(&offer.by_digest)).await?;
    let image = runtime.image(&offer.by_digest).await?.context("it is absent")?;
    ensure!(image.is(&offer.by_digest) && !image.is(&offer.tagged), "{image:?}");
    ensure!(runtime.image(&offer.tagged).await?.is_none(), "the tag is present");
    Ok(())
}

pub async fn the_same_content_under_another_name_is_another_image(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    runtime.pull(&request(&offer.tagged)).await?;
    let other = ImageRef::from_parts("registry.example/other/web", offer.by_digest.tag())?;
    ensure!(runtime.image(&other).await?.is_none_or(|image| !image.is(&other)));
    Ok(())
}

pub async fn all_images_are_listed_with_their_names_and_sizes(world: &impl World) -> anyhow::Result<()> {
    let runtime = connect(world).await?;
    let one = world.offer("shop/web", "v1", SMALL).await?;
    let other = world.offer("shop/worker", "v1", SMALL).await?;
    for offer in [&one, &other] {
        runtime.pull(&request(&offer.tagged)).await?;
    }
    let images = runtime.images().await?;
    for offer in [&one, &other] {
        let image = images.iter().find(|image| image.is(&offer.tagged)).context("it is not listed")?;
        // Packed or unpacked, random bytes have about the same size.
        ensure!(image.size.abs_diff(offer.size) < 100_000, "{} and {}", image.size, offer.size);
        ensure!(!image.id.is_empty() && !image.pinned);
    }
    Ok(())
}

pub async fn a_removed_image_is_absent(world: &impl World) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    runtime.pull(&request(&offer.tagged)).await?;
    world.remove(&offer.tagged).await?;
    // The runtime may take a moment to notice a removal behind its back.
    let gone = async {
        while runtime.image(&offer.tagged).await?.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, gone).await.context("it is still there")?
}

pub async fn a_removal_wakes_listeners_on_containerd_and_nobody_elsewhere(
    world: &impl World,
) -> anyhow::Result<()> {
    let (runtime, offer) = (connect(world).await?, world.offer("shop/web", "v1", SMALL).await?);
    let mut removals = runtime.removals();
    let listen = tokio::spawn(async move { removals.next().await });
    // The subscription cannot be observed, so images are removed until an event arrives.
    let disturb = async {
        loop {
            runtime.pull(&request(&offer.tagged)).await?;
            world.remove(&offer.tagged).await?;
            if runtime.kind() != Kind::Containerd || listen.is_finished() {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, disturb).await.context("nobody was woken")??;
    if runtime.kind() == Kind::Containerd {
        ensure!(listen.await?.is_some(), "the stream ended");
    } else {
        tokio::time::sleep(Duration::from_millis(500)).await;
        ensure!(!listen.is_finished(), "somebody was woken");
        listen.abort();
    }
    Ok(())
}

pub async fn images_are_kept_in_a_directory_that_exists(world: &impl World) -> anyhow::Result<()> {
    let runtime = connect(world).await?;
    let directory = runtime.image_filesystem().await?;
    ensure!(directory.is_dir(), "{}", directory.display());
    Ok(())
}
