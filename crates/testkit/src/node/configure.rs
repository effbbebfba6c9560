//! How a node is put together.

use std::fs;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use prewarm_bed::{inside, programs};
use rustix::mount::{MountFlags, mount};

use super::disk::Disk;
use super::link::Link;
use super::{Node, Places, Runtime, containerd, crio};
use crate::process::Process;
use crate::registry::Upstream;

/// What differs from the usual node.
#[derive(Debug, Default)]
pub struct Configure {
    runtime: Runtime,
    disk: Option<Disk>,
}

impl Configure {
    #[must_use]
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = runtime;
        self
    }

    /// Keeps the node's images on a filesystem of their own, which can be filled.
    #[must_use]
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Starts the node and waits until its runtime answers. Every image name leads to this registry.
    pub async fn start(self, registry: &impl Upstream) -> anyhow::Result<Node> {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("node-{number}");
        let directory = inside::directory(&name)?;
        let data = inside::directory(&format!("{name}/data"))?;
        let disk = self.disk.map(|disk| disk.mount(&directory.join("disk.img"), &data)).transpose()?;
        let root = inside::directory(&format!("{name}/data/root"))?;
        let (link, places) = (Link::create(number)?, Places { directory, root });
        let mut command = link.inside(&programs::locate(self.runtime.program())?);
        match self.runtime {
            Runtime::Containerd => command.args(containerd::prepare(&places, &registry.url())?),
            Runtime::Crio => {
                shield()?;
                let (variable, value) = crio::environment(&places);
                command.args(crio::prepare(&places, &registry.url())?).env(variable, value)
            }
        };
        let runtime = Process::start(self.runtime.program(), command, &places.directory)?;
        let node = Node { runtime, kind: self.runtime, name, link, places, _disk: disk };
        node.ready().await?;
        Ok(node)
    }
}

/// Puts memory over the one path outside the bed that CRI-O writes to whatever it is told: its cache of blobs.
fn shield() -> anyhow::Result<()> {
    const PATH: &str = "/var/lib/containers";
    static IS_SHIELDED: Mutex<bool> = Mutex::new(false);
    let mut is_shielded = IS_SHIELDED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_shielded {
        fs::create_dir_all(PATH).with_context(|| format!("creating {PATH}"))?;
        mount("tmpfs", PATH, "tmpfs", MountFlags::empty(), c"mode=755")
            .with_context(|| format!("mounting {PATH}"))?;
        *is_shielded = true;
    }
    Ok(())
}
