//! What is written past a pull becomes an image of the node, wrong bytes never enter, and what was begun is gone on with; and what is
//! said of images that go.

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::Opened;
use prewarm_testkit::image::{Image, Layer, index, native_architecture};
use prewarm_testkit::{Containerd, wait};

use crate::bed::{
    Bed, LAYER, LEASE, NAME, PIECE, append, config, described, image, labels, layer, opened, target,
};

pub async fn content_that_is_written_becomes_an_image_without_asking_the_registry(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("written").build();
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &artifact, &labels()).await?;
    bed.finish(&lease, &artifact, &config(&artifact)?).await?;
    bed.is_there(&format!("{NAME}:v1")).await?;
    bed.is_there(&format!("{NAME}@{}", artifact.digest())).await?;
    bed.store.release(LEASE, true).await?;
    ensure!(bed.proxy.requests().is_empty(), "{:?}", bed.proxy.requests());
    let listed = bed.node.cri()?.images().await?;
    let listed = listed.iter().find(|image| image.id == config(&artifact).unwrap_or_default());
    let listed = listed.context("CRI lists it under its config")?;
    ensure!(listed.tags == [format!("{NAME}:v1")], "{listed:?}");
    ensure!(listed.digests == [format!("{NAME}@{}", artifact.digest())], "{listed:?}");
    ensure!(listed.size > LAYER as u64, "{listed:?}");
    ensure!(bed.rows(&["snapshots", "ls"]).await? > 2, "it is unpacked");
    let named = bed.store.target(&format!("{NAME}:v1")).await?;
    ensure!(named == Some(target(&artifact)), "{named:?}");
    // A later pull by anybody finds everything in place.
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    bed.pull(&format!("{NAME}:v1")).await?;
    ensure!(bed.proxy.requests().iter().all(|seen| seen.bytes == 0), "{:?}", bed.proxy.requests());
    Ok(())
}

pub async fn an_index_keeps_its_digest_and_lacks_other_platforms(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let other = if native_architecture() == "amd64" { "arm64" } else { "amd64" };
    let native = image("native");
    let foreign = Image::new("foreign").architecture(other).layer(Layer::of(LAYER));
    let artifact = index(&[foreign, native.clone()]);
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &native.build(), &labels()).await?;
    bed.finish(&lease, &artifact, &config(&native.build())?).await?;
    bed.is_there(&format!("{NAME}:v1")).await?;
    bed.store.release(LEASE, true).await?;
    bed.is_there(&format!("{NAME}@{}", artifact.digest())).await?;
    for blob in native.build().blobs {
        ensure!(bed.store.size(&blob.digest).await? == Some(blob.bytes.len() as u64), "{}", blob.digest);
    }
    ensure!(bed.proxy.requests().is_empty(), "{:?}", bed.proxy.requests());
    Ok(())
}

pub async fn a_name_moves_to_another_image(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let (old, new) = (image("old").build(), image("new").build());
    bed.registry.push("shop/web", &["v1"], &old).await?;
    bed.pull(&format!("{NAME}:v1")).await?;
    let asked = bed.proxy.requests().len();
    let lease = bed.lease().await?;
    bed.write(&lease, &new, &new, &labels()).await?;
    bed.finish(&lease, &new, &config(&new)?).await?;
    let (id, reference) = (config(&new)?, ImageRef::parse(&format!("{NAME}:v1"))?);
    wait::until("the tag at its other image", async || {
        let image = bed.runtime.image(&reference).await?;
        Ok(image.filter(|image| image.id == id).map(drop))
    })
    .await?;
    ensure!(bed.proxy.requests().len() == asked, "the registry was not asked again");
    Ok(())
}

pub async fn wrong_bytes_never_enter_and_a_pull_of_the_same_layer_works(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("wrong").build();
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let lease = bed.lease().await?;
    let blob = layer(&artifact)?;
    let mut wrong = blob.bytes.clone();
    wrong[LAYER / 2] ^= 1;
    let mut ingest = opened(&bed, &lease, &described(blob)).await?;
    append(&mut ingest, &wrong).await?;
    let error = ingest.commit(labels()).await.err().context("wrong bytes are refused")?;
    ensure!(error.class() == prewarm_api::kruise::FailureClass::Corrupt, "{error}");
    ensure!(bed.store.size(&blob.digest).await?.is_none(), "nothing wrong is there");
    bed.pull(&format!("{NAME}:v1")).await?;
    bed.is_there(&format!("{NAME}:v1")).await?;
    let again = bed.store.ingest(&lease, &described(blob)).await?;
    ensure!(matches!(again, Opened::Present), "the right bytes are there now");
    Ok(())
}

pub async fn what_was_written_under_a_lease_is_gone_on_with(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("resumed").build();
    let blob = layer(&artifact)?;
    let lease = bed.lease().await?;
    let mut ingest = opened(&bed, &lease, &described(blob)).await?;
    append(&mut ingest, &blob.bytes[..2 * PIECE]).await?;
    // A writer loses nothing when its containerd is killed, nor does one that joins the lease later.
    bed.node.runtime.kill()?;
    drop(ingest);
    bed.node.runtime.spawn()?;
    bed.node.ready().await?;
    let lease_again = bed.lease().await?;
    ensure!(lease == lease_again);
    bed.collect_garbage().await?;
    let mut ingest = opened(&bed, &lease, &described(blob)).await?;
    ensure!(ingest.offset() == 2 * PIECE as u64, "it goes on at {}", ingest.offset());
    append(&mut ingest, &blob.bytes).await?;
    ensure!(ingest.is_complete());
    ingest.commit(labels()).await?;
    ensure!(bed.store.size(&blob.digest).await? == Some(blob.bytes.len() as u64));
    let read = bed.store.read(&blob.digest, u64::MAX).await?;
    ensure!(read.as_ref() == Some(&blob.bytes), "the bytes are the right ones");
    Ok(())
}

pub async fn two_writers_of_one_layer_come_one_after_the_other(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("shared").build();
    let blob = layer(&artifact)?;
    let lease = bed.lease().await?;
    let mut first = opened(&bed, &lease, &described(blob)).await?;
    let second = bed.store.ingest(&lease, &described(blob)).await?;
    ensure!(matches!(second, Opened::Busy), "the first one writes");
    append(&mut first, &blob.bytes).await?;
    first.commit(labels()).await?;
    let second = bed.store.ingest(&lease, &described(blob)).await?;
    ensure!(matches!(second, Opened::Present), "the first one has written it");
    Ok(())
}

pub async fn what_somebody_else_completes_first_stays_under_the_lease(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("raced").build();
    let tag = format!("{NAME}:v1");
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let blob = layer(&artifact)?;
    let lease = bed.lease().await?;
    let mut ingest = opened(&bed, &lease, &described(blob)).await?;
    append(&mut ingest, &blob.bytes).await?;
    bed.pull(&tag).await?;
    ingest.commit(labels()).await?;
    bed.node.cri()?.remove(&tag).await?;
    bed.collect_garbage().await?;
    ensure!(bed.store.size(&blob.digest).await?.is_some(), "it went with the image of somebody else");
    Ok(())
}

pub async fn a_removed_image_leaves_nothing_after_its_lease(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let before = bed.holds().await?;
    let artifact = image("removed").build();
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &artifact, &labels()).await?;
    bed.finish(&lease, &artifact, &config(&artifact)?).await?;
    bed.is_there(&format!("{NAME}:v1")).await?;
    bed.store.release(LEASE, true).await?;
    bed.node.cri()?.remove(&format!("{NAME}:v1")).await?;
    wait::until("the garbage collector", async || Ok((bed.holds().await? == before).then_some(()))).await
}

/// ofen C26, C27
pub async fn of_containerds_events_removals_alone_arrive(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    bed.registry.push("shop/web", &["v1"], &image("named").build()).await?;
    let first = format!("{NAME}:v1");
    bed.pull(&first).await?;
    let (counter, seen) = tokio::sync::watch::channel(0);
    let mut removals = bed.runtime.removals();
    let listener = tokio::spawn(async move {
        while removals.next().await.is_some() {
            counter.send_modify(|count| *count += 1);
        }
        *counter.borrow()
    });
    let name = |number: usize| format!("{NAME}:n{number}");
    let add = async |number| bed.node.ctr(["images", "tag", &first, &name(number)]).await;
    let remove = async |number| bed.node.ctr(["images", "rm", &name(number)]).await;
    // When the subscription begins cannot be observed, so names come and go until an event arrives.
    let mut before = 0;
    while *seen.borrow() == 0 {
        ensure!(before < 100, "no event arrives");
        add(before).await?;
        remove(before).await?;
        before += 1;
    }
    // Enough further ones that their coming could not hide among events that are late.
    let further = before..2 * before + 5;
    for number in further.clone() {
        add(number).await?;
    }
    for number in further.clone() {
        remove(number).await?;
    }
    wait::until("the removals", async || Ok((*seen.borrow() > further.len()).then_some(()))).await?;
    bed.node.runtime.kill()?;
    let events = listener.await?;
    ensure!(events <= before + further.len(), "{events} events of {} removals", before + further.len());
    Ok(())
}
