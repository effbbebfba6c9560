//! A small filesystem of its own for a node's images.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use prewarm_bed::commands;
use rustix::mount::{UnmountFlags, unmount};

const MIB: u64 = 1024 * 1024;

/// The size of a disk.
#[derive(Debug, Clone, Copy)]
pub struct Disk {
    bytes: u64,
}

/// A mounted disk. Dropping it unmounts it; the kernel does the same when the bed ends.
pub struct Mounted {
    place: PathBuf,
}

impl Disk {
    pub fn of_mebibytes(mebibytes: u64) -> Self {
        Self { bytes: mebibytes * MIB }
    }

    /// Makes a filesystem in a file and mounts it. `mount` marks the loop device so that the kernel frees it with the
    /// last mount, however that ends.
    pub(super) fn mount(self, file: &Path, place: &Path) -> anyhow::Result<Mounted> {
        File::create(file).and_then(|image| image.set_len(self.bytes)).context("creating the disk's file")?;
        // Without blocks reserved for root, so that all free space can be filled.
        run("mkfs.ext4", ["-q".as_ref(), "-m".as_ref(), "0".as_ref(), file.as_os_str()])?;
        run("mount", ["-o".as_ref(), "loop".as_ref(), file.as_os_str(), place.as_os_str()])?;
        Ok(Mounted { place: place.to_owned() })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Detached, because a runtime leaves mounts of its own below. The end of the bed would do it too.
        let _left_to_the_bed = unmount(&self.place, UnmountFlags::DETACH);
    }
}

fn run<const N: usize>(program: &str, arguments: [&OsStr; N]) -> anyhow::Result<()> {
    let path =
        commands::find(program).with_context(|| format!("{program} is missing: run `cargo xtask tools`"))?;
    let output = Command::new(path).args(arguments).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
