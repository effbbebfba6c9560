//! The configuration of a node.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::Context as _;
use prewarm_bed::{inside, programs};

use super::cgroup::Cgroup;
use super::disk::Disk;
use super::link::Link;
use super::pods::{self, SANDBOX};
use super::{Containerd, Node, Places, Runtime, containerd, crio, kubelet, shadow};
use crate::api_server::ApiServer;
use crate::process::Process;
use crate::registry::Upstream;

/// How a node differs from the usual one.
#[derive(Default)]
pub struct Configure<'a> {
    runtime: Runtime,
    containerd: Containerd,
    plugins: containerd::Plugins,
    disk: Option<Disk>,
    server: Option<&'a ApiServer>,
}

impl<'a> Configure<'a> {
    #[must_use]
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = runtime;
        self
    }

    /// A node with an older containerd than all other tests have. Its nodes run no pods.
    #[must_use]
    pub fn containerd(mut self, release: Containerd) -> Self {
        self.containerd = release;
        self
    }

    /// Switches plugins of containerd off, such as `io.containerd.grpc.v1.transfer`.
    #[must_use]
    pub fn without(mut self, plugins: &'static [&'static str]) -> Self {
        self.plugins.disabled = plugins;
        self
    }

    /// The snapshotter that containerd's CRI unpacks with, instead of overlayfs.
    #[must_use]
    pub fn snapshotter(mut self, name: &'static str) -> Self {
        self.plugins.snapshotter = name;
        self
    }

    /// Keeps the node's images on a filesystem of their own, which can be filled.
    #[must_use]
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Makes it a full node: a kubelet joins this API server, and pods run. Its registry must have the image of
    /// sandboxes, which [`workload::push_sandbox`](crate::workload::push_sandbox) stores.
    #[must_use]
    pub fn join(mut self, server: &'a ApiServer) -> Self {
        self.server = Some(server);
        self
    }

    /// Starts the node and waits until its runtime answers and, for a full node, until it is ready for pods. Every
    /// image name refers to this registry.
    pub async fn start(self, registry: &impl Upstream) -> anyhow::Result<Node> {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("node-{number}");
        let directory = inside::directory(&name)?;
        let data = inside::directory(&format!("{name}/data"))?;
        let disk = self.disk.map(|disk| disk.mount(&directory.join("disk.img"), &data)).transpose()?;
        let root = inside::directory(&format!("{name}/data/root"))?;
        let (link, places) = (Link::create(number)?, Places { runtime: self.runtime, directory, root });
        fs::create_dir_all(places.sockets()).context("creating the directory of sockets")?;
        let cgroup = self.server.map(|_| Cgroup::create(&name)).transpose()?;
        if cgroup.is_some() {
            shadow::cover()?;
            pods::write_network(&places.directory, number)?;
            pods::route(number, link.address())?;
        }
        let command = self.command(&link, &places, cgroup.as_ref(), &registry.url())?;
        let runtime = Process::start(self.runtime.program(), command, &places.directory)?;
        let mut node =
            Node { kubelet: None, runtime, kind: self.runtime, name, link, places, cgroup, _disk: disk };
        node.ready().await?;
        if let (Some(server), Some(cgroup)) = (self.server, &node.cgroup) {
            // Pulled here, so that the start of the first pod is like that of any other.
            node.cri()?.pull(SANDBOX, None).await.with_context(|| format!("pulling {SANDBOX}"))?;
            node.kubelet = Some(kubelet::start(&node, cgroup, server).await?);
        }
        Ok(node)
    }

    /// The command of the runtime with its configuration, on the node's network and in its cgroup, if it has one.
    fn command(
        &self,
        link: &Link,
        places: &Places,
        cgroup: Option<&Cgroup>,
        registry: &str,
    ) -> anyhow::Result<Command> {
        let program = programs::locate(match self.runtime {
            Runtime::Containerd => self.containerd.program(),
            Runtime::Crio => self.runtime.program(),
        })?;
        let mut command = match cgroup {
            None => link.inside(&program),
            Some(cgroup) => {
                let mut shell = cgroup.join(link.inside(Path::new("sh")));
                shell.arg("unshare").args(shadow::with_sockets(&places.sockets())).arg(program);
                shell
            }
        };
        match self.runtime {
            Runtime::Containerd => {
                command.args(containerd::prepare(places, registry, self.containerd, &self.plugins)?)
            }
            Runtime::Crio => {
                // CRI-O's cache of blobs has a fixed path.
                shadow::cover()?;
                let (variable, value) = crio::environment(places);
                command.args(crio::prepare(places, registry)?).env(variable, value)
            }
        };
        Ok(command)
    }
}
