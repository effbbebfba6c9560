//! Nodes with a cut or slow cable, or a full disk.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::{Disk, Node, Registry, Runtime, real_tests};
use rustix::fs::statvfs;

const MIB: usize = 1024 * 1024;

real_tests! {
    a_cut_cable_holds_a_pull_up_until_it_is_restored,
    a_slow_cable_slows_a_pull_until_it_is_restored,
    a_small_image_fits_on_the_disk_and_a_larger_one_does_not,
    a_disk_is_gone_with_its_node,
}

async fn a_cut_cable_holds_a_pull_up_until_it_is_restored() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &Image::new("cut").layer(Layer::of(MIB)).build()).await?;
    let reference = registry.reference("shop/web", "v1");
    for runtime in Runtime::ALL {
        let node = Node::configure().runtime(runtime).start(&registry).await?;
        node.cut()?;
        let pull = node.pull(&reference);
        tokio::pin!(pull);
        let early = tokio::time::timeout(Duration::from_secs(1), &mut pull).await;
        ensure!(early.is_err(), "{runtime:?} pulled without a cable: {early:?}");
        node.restore()?;
        pull.await?;
    }
    Ok(())
}

async fn a_slow_cable_slows_a_pull_until_it_is_restored() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    for tag in ["v1", "v2"] {
        registry.push("shop/web", &[tag], &Image::new(tag).layer(Layer::of(2 * MIB)).build()).await?;
    }
    let node = Node::start(&registry).await?;
    node.slow(16_000_000)?;
    // Slow enough that a pull without the limit is faster on any machine.
    node.slow(1_600_000)?;
    let start = Instant::now();
    node.pull(&registry.reference("shop/web", "v1")).await?;
    let slow = start.elapsed();
    ensure!(slow > Duration::from_secs(9), "2 MiB at 0.2 MB/s took only {slow:?}");
    node.restore()?;
    let start = Instant::now();
    node.pull(&registry.reference("shop/web", "v2")).await?;
    ensure!(start.elapsed() < slow, "restored, it took {:?}", start.elapsed());
    Ok(())
}

async fn a_small_image_fits_on_the_disk_and_a_larger_one_does_not() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("large", &["1"], &Image::new("large").layer(Layer::of(60 * MIB)).build()).await?;
    registry.push("small", &["1"], &Image::new("small").layer(Layer::of(MIB)).build()).await?;
    for runtime in Runtime::ALL {
        let disk = Disk::of_mebibytes(50);
        let node = Node::configure().runtime(runtime).disk(disk).start(&registry).await?;
        let space = statvfs(node.image_directory())?;
        let size = space.f_blocks * space.f_frsize / MIB as u64;
        ensure!((30..=50).contains(&size), "the disk has {size} MiB");
        // The small image first: containerd keeps what it has of a failed pull, and the disk stays full.
        node.pull(&registry.reference("small", "1")).await?;
        let failure = node.pull(&registry.reference("large", "1")).await;
        let text = format!("{:#}", failure.err().context("60 MiB went into 50")?);
        ensure!(text.contains("no space left on device"), "{text}");
        ensure!(node.images().await? == [registry.reference("small", "1")]);
    }
    Ok(())
}

async fn a_disk_is_gone_with_its_node() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    for runtime in Runtime::ALL {
        let node = Node::configure().runtime(runtime).disk(Disk::of_mebibytes(50)).start(&registry).await?;
        let file = node.directory().join("disk.img");
        let is_used = || loops_of(&file.display().to_string());
        ensure!(is_used()? && mounts_below(&node)? > 0, "the disk is not mounted");
        let place = node.directory().display().to_string();
        drop(node);
        prewarm_testkit::wait::until("the end of the loop device", async || Ok((!is_used()?).then_some(())))
            .await?;
        ensure!(!fs::read_to_string("/proc/self/mountinfo")?.contains(&place));
    }
    Ok(())
}

fn mounts_below(node: &Node) -> anyhow::Result<usize> {
    let place = node.directory().display().to_string();
    Ok(fs::read_to_string("/proc/self/mountinfo")?.lines().filter(|line| line.contains(&place)).count())
}

/// Whether a loop device uses the file.
fn loops_of(file: &str) -> anyhow::Result<bool> {
    for device in fs::read_dir("/sys/block")? {
        let backing = fs::read_to_string(device?.path().join("loop/backing_file")).unwrap_or_default();
        // Outside of the bed's mount, the path lacks its beginning.
        let name = backing.trim().trim_start_matches('/');
        if !name.is_empty() && file.ends_with(name) {
            return Ok(true);
        }
    }
    Ok(false)
}
