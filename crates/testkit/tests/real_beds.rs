//! Beds themselves: several at the same time, and nothing left of one that was killed half-way.
//!
//! The tests start this same binary again as a program that opens a bed with a whole cluster and running pods in it,
//! reports that and waits. Beds nest, so all of this happens inside the bed of the tests.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use prewarm_bed::{cgroups, enter};
use prewarm_testkit::{Cluster, Disk, Node, Pod, Runtime, real, wait, workload};
use rustix::process::{Pid, Signal, kill_process};

/// Makes this binary hold a bed open instead of running tests. Its value marks every process of that bed.
const HOLD: &str = "PREWARM_HOLD_A_BED";

const READY: &str = "the bed is ready";

fn main() -> ExitCode {
    if let Ok(marker) = env::var(HOLD) {
        return hold(&marker);
    }
    real::run(vec![
        real::test("two_beds_use_the_same_addresses_at_once", two_beds_use_the_same_addresses_at_once),
        real::test("nothing_is_left_of_a_bed_whose_runner_is_killed", || nothing_is_left_of(Victim::Runner)),
        real::test("nothing_is_left_of_a_bed_whose_unshare_is_killed", || {
            nothing_is_left_of(Victim::Unshare)
        }),
        real::test(
            "a_bed_ends_with_the_exit_code_of_its_program",
            a_bed_ends_with_the_exit_code_of_its_program,
        ),
    ])
}

/// Which process of a bed is killed.
#[derive(Clone, Copy)]
enum Victim {
    /// The process that was started first and waits for the bed.
    Runner,
    /// The process that made the namespaces.
    Unshare,
}

/// Runs inside the inner bed.
fn hold(marker: &str) -> ExitCode {
    enter().expect("a bed inside a bed");
    if marker == "end" {
        return ExitCode::from(7);
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (cluster, node) = furnish().await.expect("a cluster");
        println!("{READY} at {} with {}", cluster.server.url(), loop_device(&node));
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

/// A cluster with a pod on a full node of each runtime, and a node with a disk.
async fn furnish() -> anyhow::Result<(Cluster, Node)> {
    let cluster = Cluster::start(&Runtime::ALL).await?;
    cluster.registry.push("held", &["1"], &workload::image("held")?.build()).await?;
    let namespace = cluster.namespace().await?;
    for node in &cluster.nodes {
        let pod = Pod::new(node.name(), "registry.example/held:1").on(node);
        pod.make(cluster.server.client()?, &namespace).await?.ready().await?;
    }
    let node = Node::configure().disk(Disk::of_mebibytes(50)).start(&cluster.registry).await?;
    node.pull("registry.example/held:1").await?;
    Ok((cluster, node))
}

/// The name of the device that holds the node's disk.
fn loop_device(node: &Node) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("the mounts");
    let place = node.image_directory().parent().expect("a place").display().to_string();
    let mut lines = mounts.lines().map(|line| line.split(' '));
    let device =
        lines.find_map(|mut words| Some((words.next()?, words.next()?)).filter(|mount| mount.1 == place));
    let (device, _) = device.expect("a mounted disk");
    device.trim_start_matches("/dev/").to_owned()
}

/// A number that the kernel increments each time a device gets a new disk; none while it has no disk.
fn disk_of(device: &str) -> Option<String> {
    let device = Path::new("/sys/block").join(device);
    device.join("loop").exists().then(|| fs::read_to_string(device.join("diskseq")).unwrap_or_default())
}

/// A bed that a child process holds open.
struct Held {
    runner: Child,
    address: String,
    loop_device: String,
}

/// Starts this binary as a bed holder and waits until its cluster is up.
fn start_bed(marker: &str) -> anyhow::Result<Held> {
    let mut command = Command::new(env::current_exe()?);
    let mut runner = command.env(HOLD, marker).stdout(Stdio::piped()).spawn()?;
    let output = runner.stdout.take().context("its output is a pipe")?;
    let line = BufReader::new(output).lines().next().context("the bed ended early")??;
    let parts = line.strip_prefix(READY).and_then(|rest| rest.split_once(" with "));
    let (address, device) = parts.with_context(|| format!("the bed said {line}"))?;
    Ok(Held { runner, address: address.to_owned(), loop_device: device.to_owned() })
}

/// Every process that can be seen from here.
fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes with the marker in their environment. A dead one has no environment.
fn marked_processes(marker: &str) -> Vec<u32> {
    let needle = format!("{HOLD}={marker}");
    let is_marked = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes())
    };
    processes().filter(is_marked).collect()
}

/// The processes of containers, which inherit only the cgroups of the bed.
fn contained_processes(bed: &str) -> Vec<u32> {
    let needle = format!("/{bed}/");
    let is_contained = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|cgroups| cgroups.contains(&needle))
    };
    processes().filter(is_contained).collect()
}

fn is_named(pid: u32, program: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == program)
}

fn mounts() -> anyhow::Result<usize> {
    Ok(fs::read_to_string("/proc/self/mountinfo")?.lines().count())
}

async fn two_beds_use_the_same_addresses_at_once() -> anyhow::Result<()> {
    let [one, other] = ["one", "other"].map(|marker| tokio::task::spawn_blocking(move || start_bed(marker)));
    let (mut one, mut other) = (one.await??, other.await??);
    ensure!(one.address == other.address && one.loop_device != other.loop_device);
    for bed in [&mut one, &mut other] {
        bed.runner.kill()?;
        bed.runner.wait()?;
    }
    Ok(())
}

async fn nothing_is_left_of(victim: Victim) -> anyhow::Result<()> {
    let marker = match victim {
        Victim::Runner => "runner",
        Victim::Unshare => "unshare",
    };
    let mounts_before = mounts()?;
    let Held { mut runner, loop_device, .. } = start_bed(marker)?;
    let disk = disk_of(&loop_device).with_context(|| format!("{loop_device} holds no disk"))?;
    let bed = format!("{}.{}", env::var(enter::BED_VARIABLE)?, runner.id());
    let is_of_bed = |name: &str| name == bed;
    let cgroups = || cgroups::directories(Path::new("/sys/fs/cgroup"), is_of_bed);
    let alive = || marked_processes(marker).into_iter().chain(contained_processes(&bed));
    // The control plane, the registry, two kubelets and three runtimes; two containers, and one sandbox, because CRI-O
    // needs no process for it.
    ensure!(marked_processes(marker).len() >= 14, "{:?}", marked_processes(marker));
    let pods = contained_processes(&bed).into_iter().filter(|pid| is_named(*pid, "workload"));
    ensure!(pods.count() == 3, "{:?}", contained_processes(&bed));
    ensure!(!cgroups().is_empty(), "the bed made no cgroups");

    match victim {
        Victim::Runner => runner.kill()?,
        Victim::Unshare => kill_process(unshare_of(&runner)?, Signal::KILL)?,
    }
    runner.wait()?;
    wait::until("the end of all processes", async || Ok(alive().next().is_none().then_some(()))).await?;
    // Namespaces live as long as a process is in them or something is mounted.
    ensure!(mounts()? == mounts_before);
    let is_freed = || disk_of(&loop_device).is_none_or(|now| now != disk);
    wait::until("the end of the disk", async || Ok(is_freed().then_some(()))).await?;
    wait::until("the end of the cgroups", async || Ok(cgroups().is_empty().then_some(()))).await
}

/// The child of the runner that made the namespaces; the other one sweeps.
fn unshare_of(runner: &Child) -> anyhow::Result<Pid> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", runner.id()))?;
    let mut children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let child = children.find(|child| is_named(*child, "unshare")).context("the runner has no such child")?;
    Pid::from_raw(child.try_into()?).context("a process id is positive")
}

async fn a_bed_ends_with_the_exit_code_of_its_program() -> anyhow::Result<()> {
    let status = Command::new(env::current_exe()?).env(HOLD, "end").status()?;
    ensure!(status.code() == Some(7), "{status}");
    Ok(())
}
