//! A node: containerd in a network namespace of its own, joined to the bed's bridge.

mod config;
mod link;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context as _, ensure};
use prewarm_bed::inside;
use prewarm_bed::programs;

use crate::process::Process;
use crate::registry::Registry;
use crate::wait;
use link::Link;

/// The namespace in which Kubernetes keeps its images.
const NAMESPACE: &str = "k8s.io";

/// A running node. Dropping it ends containerd.
pub struct Node {
    pub containerd: Process,
    name: String,
    link: Link,
    directory: PathBuf,
}

impl Node {
    /// Starts a node for which every image name leads to this registry.
    pub async fn start(registry: &Registry) -> anyhow::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("node-{number}");
        let directory = inside::directory(&name)?;
        let link = Link::create(number)?;
        config::write(&directory)?;
        let mut command = link.inside(&programs::locate("containerd")?);
        command.arg("--config").arg(directory.join("config.toml"));
        let containerd = Process::start("containerd", command, &directory)?;
        let node = Self { containerd, name, link, directory };
        // Without it containerd would ask the machine's resolver for names that only exist in tests.
        node.lead("_default", registry)?;
        node.ready().await?;
        Ok(node)
    }

    /// Waits until containerd answers, after a start, a restart or a thaw.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let socket = self.socket();
        let answers = wait::until("containerd", async || {
            self.containerd.check()?;
            let listens = UnixStream::connect(&socket).is_ok();
            Ok((listens && self.ctr(["version"]).await.is_ok()).then_some(()))
        });
        answers.await.with_context(|| format!("containerd logged\n{}", self.containerd.log_tail()))
    }

    /// Stops containerd and starts it again on the same data.
    pub async fn restart(&self) -> anyhow::Result<()> {
        self.containerd.restart()?;
        self.ready().await
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The socket on which containerd serves CRI and its own API.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("containerd.sock")
    }

    /// Lets image names of this host lead to another registry. It holds from the next pull on.
    pub fn lead(&self, host: &str, registry: &Registry) -> anyhow::Result<()> {
        let directory = self.hosts().join(host);
        fs::create_dir_all(&directory).context("creating the host's directory")?;
        fs::write(directory.join("hosts.toml"), format!("server = \"http://{}\"\n", registry.host()))
            .context("writing hosts.toml")
    }

    /// Pulls an image for this machine's platform and unpacks it.
    pub async fn pull(&self, reference: &str) -> anyhow::Result<()> {
        let hosts = self.hosts();
        let hosts = hosts.to_str().context("a bed's paths are text")?;
        self.ctr(["images", "pull", "--hosts-dir", hosts, reference])
            .await
            .with_context(|| format!("pulling {reference} on {}", self.name))?;
        Ok(())
    }

    /// The references of all images on the node, sorted. The names that CRI gives to image ids are left out.
    pub async fn images(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.ctr(["images", "list", "--quiet"]).await?;
        let references = listed.lines().filter(|name| !name.starts_with("sha256:"));
        let mut images: Vec<String> = references.map(ToOwned::to_owned).collect();
        images.sort();
        Ok(images)
    }

    /// Removes an image and, before it returns, what only that image used.
    pub async fn remove(&self, reference: &str) -> anyhow::Result<()> {
        self.ctr(["images", "remove", "--sync", reference]).await?;
        Ok(())
    }

    /// Runs containerd's own client and returns what it prints.
    pub async fn ctr<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> anyhow::Result<String> {
        let mut command = self.command(&programs::locate("ctr")?);
        command.arg("--address").arg(self.socket()).args(["--namespace", NAMESPACE]).args(arguments);
        let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
        ensure!(output.status.success(), "ctr: {}", String::from_utf8_lossy(&output.stderr).trim());
        String::from_utf8(output.stdout).context("ctr printed no text")
    }

    /// A command that runs on the node's network.
    pub fn command(&self, program: &Path) -> Command {
        self.link.inside(program)
    }

    /// How many bytes the node received since it was started, all protocols and headers included.
    pub fn bytes_received(&self) -> anyhow::Result<u64> {
        Ok(self.link.counters()?.to_node)
    }

    /// How many bytes the node sent since it was started.
    pub fn bytes_sent(&self) -> anyhow::Result<u64> {
        Ok(self.link.counters()?.from_node)
    }

    fn hosts(&self) -> PathBuf {
        self.directory.join("hosts")
    }
}
