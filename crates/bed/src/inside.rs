//! The inside of a bed: a file system that vanishes with it and a network of its own.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use rustix::mount::{MountFlags, mount, mount_bind};

/// The directory, in memory, of everything that is written in a bed.
pub const DIRECTORY: &str = "/run/bed";

/// The directory for temporary files of the tests themselves.
pub const TEMPORARY: &str = "/run/tmp";

/// The bridge that connects the test and its nodes, and its address.
pub const BRIDGE: &str = "br0";
pub const BRIDGE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// How many bits of an address name the bed's network.
pub const PREFIX_LENGTH: u8 = 16;

/// Furnishes the bed around this process. It must run before anything else does.
///
/// # Panics
/// If the kernel refuses, because no test would mean anything.
pub fn prepare() {
    furnish().unwrap_or_else(|error| panic!("cannot furnish the bed: {error:#}"));
}

fn furnish() -> anyhow::Result<()> {
    // Covers all of /run: that directory exists everywhere, so no empty mount point is left on the machine, and the
    // sockets and network namespaces of the machine's own programs are out of reach.
    mount("tmpfs", "/run", "tmpfs", MountFlags::empty(), c"mode=755").context("mounting /run")?;
    for directory in [DIRECTORY, TEMPORARY, "/run/netns"] {
        fs::create_dir_all(directory).with_context(|| format!("creating {directory}"))?;
    }
    silence_resolver()?;
    // Thousands of short connections, as in benchmarks, would otherwise use up the ports for a minute. This affects
    // only the bed's own network.
    fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "1").context("letting ports be used again")?;
    // A bridge without a fixed hardware address takes that of its newest port when it is the lowest, and nodes that
    // know the former one are cut off for half a minute.
    configure_network(&format!(
        "link set lo up\n\
         link add {BRIDGE} address 02:00:00:00:00:01 type bridge\n\
         addr add {BRIDGE_ADDRESS}/{PREFIX_LENGTH} dev {BRIDGE}\n\
         link set {BRIDGE} up\n"
    ))
}

/// Makes every name lookup fail at once. The machine's resolver cannot be reached from here, and programs would wait
/// ten seconds for each answer.
fn silence_resolver() -> anyhow::Result<()> {
    let (silent, usual) = ("/run/resolv.conf", Path::new("/etc/resolv.conf"));
    fs::write(silent, "nameserver 127.0.0.1\n").context("writing resolv.conf")?;
    // If it points into the former /run it is gone already, and without it programs ask 127.0.0.1 too.
    if usual.exists() {
        mount_bind(silent, usual).context("mounting resolv.conf")?;
    }
    Ok(())
}

/// Runs lines of `ip` commands. The first failure is the error.
pub fn configure_network(lines: &str) -> anyhow::Result<()> {
    run_batch(Command::new("ip"), lines)
}

/// The same in a named network namespace.
pub fn configure_network_in(namespace: &str, lines: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    command.args(["-netns", namespace]);
    run_batch(command, lines)
}

fn run_batch(mut command: Command, lines: &str) -> anyhow::Result<()> {
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("starting ip")?;
    child.stdin.take().expect("its input is a pipe").write_all(lines.as_bytes()).context("talking to ip")?;
    let output = child.wait_with_output().context("waiting for ip")?;
    ensure!(output.status.success(), "ip: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// A fresh directory of the bed.
pub fn directory(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(DIRECTORY).join(name);
    fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    Ok(path)
}
