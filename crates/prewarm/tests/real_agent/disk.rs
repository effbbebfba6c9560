//! A node with a disk of 200 MiB that fills up.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use prewarm_api::kruise::{FailureClass, ImageTagStatus, NodeImageStatus, PullPhase};
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::node::Disk;
use prewarm_testkit::{Node, Runtime};
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::cluster::Cluster;
use crate::desk::{Desk, entry, spec};
use crate::program::Agent;

const MIB: u64 = 1024 * 1024;
/// 16 MiB per second: slow enough for the guard to check several times.
const PACE: u64 = 128 * MIB;
const SMALL: (&str, &str) = ("registry.example/disk/small", "v1");
const LARGE: (&str, &str) = ("registry.example/disk/large", "v1");

/// A node on a small disk, and a file that uses its space up.
struct Scene {
    node: Node,
    desk: Desk,
    _agent: Agent,
}

impl Scene {
    async fn set(runtime: Runtime) -> anyhow::Result<Self> {
        let cluster = Cluster::shared().await?;
        let small = Image::new("small").layer(Layer::of(1_000_000)).build();
        cluster.registry.push("disk/small", &["v1"], &small).await?;
        let large = Image::new("large").layers(2, Layer::of(40_000_000)).build();
        cluster.registry.push("disk/large", &["v1"], &large).await?;
        let node =
            Node::configure().runtime(runtime).disk(Disk::of_mebibytes(200)).start(&cluster.registry).await?;
        let (desk, agent) =
            (cluster.desk(&node)?, Agent::start(cluster, &node, &["--min-free", "20%"]).await?);
        Ok(Self { node, desk, _agent: agent })
    }

    fn filler(&self) -> anyhow::Result<PathBuf> {
        let directory = self.node.image_directory().parent().context("images lie in a directory")?;
        Ok(directory.join("filler"))
    }

    /// Leaves this percentage of the disk free.
    fn fill_up_to(&self, percent: u64) -> anyhow::Result<()> {
        let room = statvfs(self.node.image_directory())?;
        let (free, capacity) = (room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize);
        let taken = free - capacity * percent / 100;
        fallocate(File::create(self.filler()?)?, FallocateFlags::empty(), 0, taken)
            .context("filling the disk")
    }

    fn free_percent(&self) -> anyhow::Result<u64> {
        let room = statvfs(self.node.image_directory())?;
        Ok(room.f_bavail * 100 / room.f_blocks)
    }

    fn make_room(&self) -> anyhow::Result<()> {
        fs::remove_file(self.filler()?).context("removing the file that fills the disk")
    }
}

pub async fn below_the_floor_a_task_waits_and_says_so() -> anyhow::Result<()> {
    for runtime in Runtime::ALL {
        let scene = Scene::set(runtime).await?;
        scene.fill_up_to(12)?;
        scene.desk.ask(&spec([(SMALL.0, vec![entry(SMALL.1)])])).await?;
        // Before it waits for disk space, it may wait for the runtime, which the agent has yet to reach.
        let for_room =
            |tag: &ImageTagStatus| tag.message.clone().filter(|says| says.starts_with("waits for room"));
        let says = scene.desk.until_tag("to wait for room", SMALL, for_room).await?;
        ensure!(says.starts_with("waits for room: 1") && says.contains(" % free on "), "{says}");
        ensure!(says.ends_with("starts at 21 %; remove unused images or lower --min-free"), "{says}");
        let status: NodeImageStatus = scene.desk.status().await?;
        ensure!(status.waiting == 1 && status.failed == 0, "{status:?}");
        ensure!(scene.node.images().await?.is_empty(), "nothing is pulled below the floor");
        scene.make_room()?;
        let tag = scene.desk.succeeded(SMALL, 0).await?;
        ensure!(tag.failed_attempts == 0, "{tag:?}");
    }
    Ok(())
}

pub async fn a_pull_that_crosses_the_floor_is_stopped_before_the_disk_is_full() -> anyhow::Result<()> {
    for runtime in Runtime::ALL {
        let scene = Scene::set(runtime).await?;
        scene.fill_up_to(45)?;
        scene.node.slow(PACE)?;
        scene.desk.ask(&spec([(LARGE.0, vec![entry(LARGE.1)])])).await?;
        let tag = scene.desk.ended(LARGE, 0).await?;
        let free = scene.free_percent()?;
        ensure!(
            tag.phase == PullPhase::Failed && tag.failure_class == Some(FailureClass::NoSpace),
            "{tag:?}"
        );
        let says = tag.message.unwrap_or_default();
        ensure!(
            says.contains("stopped for lack of room") && says.contains("20 % has to stay free"),
            "{says}"
        );
        ensure!(free > 0, "{runtime:?} filled the disk");
        scene.node.restore()?;
        scene.make_room()?;
        scene.desk.ask(&spec([(LARGE.0, vec![entry(LARGE.1)]), (SMALL.0, vec![entry(SMALL.1)])])).await?;
        scene.desk.succeeded(SMALL, 0).await?;
    }
    Ok(())
}
