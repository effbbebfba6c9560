//! What CRI's own pulls make of content that is there, and of layers that somebody else is writing. Nobody documents this.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use http::Method;
use prewarm_bed::programs;
use prewarm_testkit::image::Blob;
use prewarm_testkit::registry::fault::Seen;
use prewarm_testkit::{Containerd, Node, wait};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};

use crate::bed::{Bed, LEASE, NAME, append, described, image, labels, layer, opened};

/// Where containerd keeps what is not complete, in the directory of its images: a directory for each with its bytes and its name.
const INGESTS: &str = "io.containerd.content.v1.content/ingest";
/// How much of a layer somebody else writes.
const BEGUN: usize = 2 * 1024 * 1024;

pub async fn a_pull_of_what_is_written_asks_with_one_head(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let before = bed.holds().await?;
    let (artifact, tag) = (image("whole").build(), format!("{NAME}:v1"));
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &artifact, &BTreeMap::new()).await?;
    bed.pull(&tag).await?;
    let asked = bed.proxy.requests();
    let is_head = |seen: &Seen| seen.method == Method::HEAD && seen.path.contains("/manifests/v1");
    ensure!(matches!(&asked[..], [only] if is_head(only)), "{asked:?}");
    bed.is_there(&tag).await?;
    // The pull has labelled what belongs together and where it is from, so it stays without our lease and goes with its names.
    bed.store.release(LEASE, true).await?;
    for blob in &artifact.blobs {
        ensure!(bed.store.size(&blob.digest).await?.is_some(), "{} is gone", blob.digest);
        let labels = bed.labels(&blob.digest).await?;
        ensure!(labels.contains("containerd.io/distribution.source.registry.example=shop/web"), "{labels}");
    }
    let labels = bed.labels(artifact.digest()).await?;
    ensure!(labels.contains("containerd.io/gc.ref.content.config="), "{labels}");
    ensure!(labels.contains("containerd.io/gc.ref.content.l.0="), "{labels}");
    bed.node.cri()?.remove(&tag).await?;
    wait::until("the garbage collector", async || Ok((bed.holds().await? == before).then_some(()))).await
}

pub async fn a_registry_that_refuses_stays_the_authority_on_what_is_written(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("refused").build();
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &artifact, &labels()).await?;
    let refused = bed.pull(&format!("{NAME}:v1")).await;
    ensure!(refused.is_err(), "the registry does not have it");
    ensure!(bed.node.cri()?.images().await?.is_empty(), "CRI shows it");
    Ok(())
}

pub async fn a_pull_goes_on_where_another_writer_of_a_layer_stops(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    bed.collect_garbage().await?;
    let artifact = image("begun").build();
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let blob = layer(&artifact)?;
    let mut writer = Writer::open(&bed, blob)?;
    writer.write(&blob.bytes[..BEGUN]).await?;
    wait::until("the beginning", async || Ok((begun(&bed.node, blob)? == Some(BEGUN)).then_some(()))).await?;
    let tag = format!("{NAME}:v1");
    let (pulled, left) = tokio::join!(bed.pull(&tag), async {
        bed.has_all_but(&artifact.blobs, blob).await?;
        writer.give_up().await
    });
    left?;
    pulled?;
    let ranges: Vec<_> = bed.downloads_of(blob).into_iter().map(|seen| seen.range).collect();
    ensure!(ranges == [Some(format!("bytes={BEGUN}-"))], "{ranges:?}");
    bed.is_there(&tag).await
}

pub async fn a_pull_waits_for_another_writer_of_a_layer_and_takes_it(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    bed.collect_garbage().await?;
    let artifact = image("taken").build();
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let blob = layer(&artifact)?;
    let mut writer = Writer::open(&bed, blob)?;
    writer.write(&blob.bytes[..BEGUN]).await?;
    wait::until("the beginning", async || Ok((begun(&bed.node, blob)? == Some(BEGUN)).then_some(()))).await?;
    let tag = format!("{NAME}:v1");
    let (pulled, committed) = tokio::join!(bed.pull(&tag), async {
        bed.has_all_but(&artifact.blobs, blob).await?;
        writer.write(&blob.bytes[BEGUN..]).await?;
        writer.commit().await
    });
    committed?;
    pulled?;
    ensure!(bed.downloads_of(blob).is_empty(), "{:?}", bed.downloads_of(blob));
    bed.is_there(&tag).await
}

/// A writer that is held on containerd's own name is a lock: the bytes come under a name of ours.
pub async fn a_pull_waits_at_a_lock_while_the_layer_comes_under_another_name(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    bed.collect_garbage().await?;
    let artifact = image("locked").build();
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let (lease, blob) = (bed.lease().await?, layer(&artifact)?);
    let lock = Writer::open(&bed, blob)?;
    wait::until("the lock", async || Ok(begun(&bed.node, blob)?.map(drop))).await?;
    let tag = format!("{NAME}:v1");
    let (pulled, released) = tokio::join!(bed.pull(&tag), async {
        bed.has_all_but(&artifact.blobs, blob).await?;
        let mut ingest = opened(&bed, &lease, &described(blob)).await?;
        append(&mut ingest, &blob.bytes).await?;
        ingest.commit(labels()).await?;
        lock.give_up().await
    });
    released?;
    pulled?;
    ensure!(bed.downloads_of(blob).is_empty(), "{:?}", bed.downloads_of(blob));
    bed.is_there(&tag).await
}

/// A lease that is not flat would keep what the pull unpacked, too.
pub async fn a_removed_image_is_unpacked_no_more_while_the_lease_lasts(
    release: Containerd,
) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let (content, snapshots) = bed.holds().await?;
    let (artifact, tag) = (image("flat").build(), format!("{NAME}:v1"));
    bed.registry.push("shop/web", &["v1"], &artifact).await?;
    let lease = bed.lease().await?;
    bed.write(&lease, &artifact, &artifact, &labels()).await?;
    bed.pull(&tag).await?;
    bed.is_there(&tag).await?;
    bed.node.cri()?.remove(&tag).await?;
    wait::until("its snapshots to go", async || Ok((bed.holds().await?.1 == snapshots).then_some(())))
        .await?;
    for blob in &artifact.blobs {
        ensure!(bed.store.size(&blob.digest).await?.is_some(), "the lease keeps {}", blob.digest);
    }
    bed.store.release(LEASE, true).await?;
    ensure!(bed.holds().await? == (content, snapshots), "something is left");
    Ok(())
}

pub async fn what_was_begun_goes_with_its_lease(release: Containerd) -> anyhow::Result<()> {
    let bed = Bed::start(release).await?;
    let artifact = image("gone").build();
    let blob = described(layer(&artifact)?);
    let lease = bed.lease().await?;
    // The garbage collector stops at a store that has never had any content.
    let small = artifact.blobs.iter().min_by_key(|blob| blob.bytes.len()).context("it has a config")?;
    let mut ingest = opened(&bed, &lease, &described(small)).await?;
    append(&mut ingest, &small.bytes).await?;
    ingest.commit(labels()).await?;
    let mut ingest = opened(&bed, &lease, &blob).await?;
    ingest.append(layer(&artifact)?.bytes[..BEGUN].to_vec()).await?;
    drop(ingest);
    bed.collect_garbage().await?;
    let ingest = opened(&bed, &lease, &blob).await?;
    ensure!(ingest.offset() == BEGUN as u64, "it stays under its lease");
    drop(ingest);
    bed.store.release(LEASE, true).await?;
    let lease = bed.lease().await?;
    ensure!(opened(&bed, &lease, &blob).await?.offset() == 0, "nothing of it is left");
    Ok(())
}

impl Bed {
    /// Waits until a pull has fetched everything but one piece.
    async fn has_all_but(&self, blobs: &[Blob], missing: &Blob) -> anyhow::Result<()> {
        for blob in blobs.iter().filter(|blob| blob.digest != missing.digest) {
            let is_there = async || Ok(self.store.size(&blob.digest).await?.map(drop));
            wait::until("everything else", is_there).await?;
        }
        Ok(())
    }

    /// The requests for a piece of content.
    fn downloads_of(&self, blob: &Blob) -> Vec<Seen> {
        let is_it = |seen: &Seen| seen.method == Method::GET && seen.path.contains(&blob.digest);
        self.proxy.requests().into_iter().filter(is_it).collect()
    }

    /// The labels of a piece of content, as containerd's own client prints them.
    async fn labels(&self, digest: &str) -> anyhow::Result<String> {
        let listed = self.node.ctr(["content", "ls"]).await?;
        let row = listed.lines().find(|row| row.starts_with(digest));
        row.map(str::to_owned).with_context(|| format!("{digest} is not listed:\n{listed}"))
    }
}

/// containerd's own client as the writer of a layer, under the name that a pull writes it under.
struct Writer {
    process: Child,
    input: ChildStdin,
}

impl Writer {
    fn open(bed: &Bed, blob: &Blob) -> anyhow::Result<Self> {
        let mut command = bed.node.command(&programs::locate("ctr")?);
        command.arg("--address").arg(bed.node.socket()).args(["--namespace", "k8s.io", "content", "ingest"]);
        command.arg(format!("--expected-size={}", blob.bytes.len()));
        command.arg(format!("--expected-digest={}", blob.digest)).arg(name(blob));
        let mut process = Command::from(command).stdin(Stdio::piped()).kill_on_drop(true).spawn()?;
        let input = process.stdin.take().context("its input is a pipe")?;
        Ok(Self { process, input })
    }

    async fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.input.write_all(bytes).await?)
    }

    /// Goes away in the middle.
    async fn give_up(mut self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Completes the layer.
    async fn commit(mut self) -> anyhow::Result<()> {
        drop(self.input);
        let status = self.process.wait().await?;
        ensure!(status.success(), "ctr: {status}");
        Ok(())
    }
}

/// The name under which containerd's pulls write a layer.
fn name(blob: &Blob) -> String {
    format!("layer-{}", blob.digest)
}

/// How much of a layer is written under that name.
fn begun(node: &Node, blob: &Blob) -> anyhow::Result<Option<usize>> {
    let is_it = |directory: &Path| {
        fs::read_to_string(directory.join("ref")).is_ok_and(|found| found.ends_with(&name(blob)))
    };
    let Ok(ingests) = fs::read_dir(node.image_directory().join(INGESTS)) else { return Ok(None) };
    for entry in ingests {
        let directory = entry?.path();
        if is_it(&directory) {
            return Ok(Some(usize::try_from(fs::metadata(directory.join("data"))?.len())?));
        }
    }
    Ok(None)
}
