//! A node: a container runtime in a network namespace of its own, connected to the bed's bridge.
//!
//! Most tests need no more. A *full* node also has a kubelet and runs pods.

mod cgroup;
mod configure;
mod containerd;
pub mod cri;
mod crio;
mod disk;
mod kubelet;
mod link;
mod pods;
mod shadow;

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

pub use configure::Configure;
pub use containerd::Containerd;
pub use disk::Disk;
pub use pods::SANDBOX;
pub use shadow::RUNTIME as RUNTIME_DIRECTORY;

use crate::api_server::ApiServer;
use crate::process::Process;
use crate::registry::{Registry, Upstream};
use crate::wait;
use cgroup::Cgroup;
pub use cri::Cri;
use disk::Mounted;
use link::Link;

/// The user of programs without privileges. No other program has its number.
const STRANGER: u32 = 65_532;

/// The flags of `setpriv` that drop everything else.
const STRIPPED: [&str; 4] = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"];

/// Which program runs the node's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runtime {
    #[default]
    Containerd,
    Crio,
}

impl Runtime {
    /// Every runtime, for tests that apply to each.
    pub const ALL: [Self; 2] = [Self::Containerd, Self::Crio];

    /// The name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Crio => "crio",
        }
    }
}

/// A running node. Dropping it ends its programs and pods.
pub struct Node {
    /// Runs on full nodes only. It ends first, because fields are dropped in order, and must not restart anything.
    pub kubelet: Option<Process>,
    /// containerd or CRI-O.
    pub runtime: Process,
    kind: Runtime,
    name: String,
    link: Link,
    places: Places,
    /// Ends the pods of a full node, which outlive kubelet and runtime.
    cgroup: Option<Cgroup>,
    /// Unmounted after the runtime has ended.
    _disk: Option<Mounted>,
}

/// The directories of a runtime.
struct Places {
    runtime: Runtime,
    /// Configuration, sockets, logs.
    directory: PathBuf,
    /// Downloaded and unpacked images: the image filesystem.
    root: PathBuf,
}

impl Places {
    /// The directory of the runtime's sockets, with nothing else in it.
    fn sockets(&self) -> PathBuf {
        self.directory.join("sockets")
    }

    /// The socket has the name that programs look for.
    fn socket(&self) -> PathBuf {
        self.sockets().join(format!("{}.sock", self.runtime.program()))
    }
}

impl Node {
    /// Starts a node with containerd on which every image name refers to this registry.
    pub async fn start(registry: &Registry) -> anyhow::Result<Self> {
        Self::configure().start(registry).await
    }

    /// Starts a node with CRI-O.
    pub async fn start_crio(registry: &Registry) -> anyhow::Result<Self> {
        Self::configure().runtime(Runtime::Crio).start(registry).await
    }

    /// Configures a node that differs from the usual one, for example by its runtime or its disk.
    pub fn configure<'a>() -> Configure<'a> {
        Configure::default()
    }

    /// Waits until the runtime answers, after a start, a restart or a thaw.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let (socket, program) = (self.socket(), self.kind.program());
        let answers = wait::until(program, async || {
            self.runtime.check()?;
            let listens = UnixStream::connect(&socket).is_ok();
            Ok((listens && self.cri()?.version().await.is_ok()).then_some(()))
        });
        answers.await.with_context(|| format!("{program} logged\n{}", self.runtime.log_tail()))
    }

    /// Waits until a full node accepts pods again, after its kubelet or its runtime was restarted.
    pub async fn ready_for_pods(&self, server: &ApiServer) -> anyhow::Result<()> {
        let kubelet = self.kubelet.as_ref().with_context(|| format!("{} has no kubelet", self.name))?;
        kubelet::ready(&self.name, kubelet, server).await
    }

    /// Stops the runtime and starts it again on the same data.
    pub async fn restart(&self) -> anyhow::Result<()> {
        self.runtime.restart()?;
        self.ready().await
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address on the bed's network.
    pub fn address(&self) -> Ipv4Addr {
        self.link.address()
    }

    pub fn kind(&self) -> Runtime {
        self.kind
    }

    /// The socket on which the runtime serves CRI, and containerd its own API too.
    pub fn socket(&self) -> PathBuf {
        self.places.socket()
    }

    /// A directory for the node's files. Logs of programs on the node may be there too.
    pub fn directory(&self) -> &Path {
        &self.places.directory
    }

    /// The directory in which the runtime keeps its images.
    pub fn image_directory(&self) -> &Path {
        &self.places.root
    }

    /// A client of the runtime.
    pub fn cri(&self) -> anyhow::Result<Cri> {
        Cri::new(&self.socket())
    }

    /// Makes image names of this host refer to another registry, from the next pull on.
    pub fn lead(&self, host: &str, to: &(impl Upstream + ?Sized)) -> anyhow::Result<()> {
        match self.kind {
            Runtime::Containerd => containerd::lead(&self.places.directory, host, &to.url()),
            Runtime::Crio => crio::lead(&self.places.directory, host, &to.url(), &self.runtime),
        }
    }

    /// Gives image names of this host mirrors, which are asked before the registry: lines of `hosts.toml`, such as
    /// `[host."http://…"]` and what follows. Only containerd has such a file.
    pub fn mirror(
        &self,
        host: &str,
        registry: &(impl Upstream + ?Sized),
        tables: &str,
    ) -> anyhow::Result<()> {
        ensure!(self.kind == Runtime::Containerd, "{} has no containerd", self.name);
        containerd::mirror(&self.places.directory, host, &registry.url(), tables)
    }

    /// The directory of `hosts.toml` files, one for each host.
    pub fn hosts_directory(&self) -> PathBuf {
        containerd::hosts(&self.places.directory)
    }

    /// The file by which the node's network namespace can be entered.
    pub fn network_namespace(&self) -> PathBuf {
        self.link.namespace_file()
    }

    /// Pulls an image for this machine's platform and unpacks it.
    pub async fn pull(&self, reference: &str) -> anyhow::Result<()> {
        let pulled = match self.kind {
            Runtime::Containerd => containerd::pull(self, reference).await,
            Runtime::Crio => Ok(self.cri()?.pull(reference, None).await.map(drop)?),
        };
        pulled.with_context(|| format!("pulling {reference} on {}", self.name))
    }

    /// The references of all images on the node, sorted: tags, and the digests of images without a tag.
    pub async fn images(&self) -> anyhow::Result<Vec<String>> {
        let mut images = match self.kind {
            Runtime::Containerd => containerd::images(self).await?,
            Runtime::Crio => {
                self.cri()?.images().await?.into_iter().flat_map(cri::ListedImage::references).collect()
            }
        };
        images.sort();
        Ok(images)
    }

    /// Removes one name of an image and, with the last name, the image.
    pub async fn remove(&self, reference: &str) -> anyhow::Result<()> {
        match self.kind {
            Runtime::Containerd => containerd::remove(self, reference).await,
            Runtime::Crio => Ok(self.cri()?.remove(reference).await?),
        }
    }

    /// Runs containerd's own client and returns its output.
    pub async fn ctr<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> anyhow::Result<String> {
        ensure!(self.kind == Runtime::Containerd, "{} has no containerd", self.name);
        containerd::ctr(self, arguments).await
    }

    /// A command that runs on the node's network.
    pub fn command(&self, program: &Path) -> Command {
        self.link.inside(program)
    }

    /// The same without any privilege: not root, no capabilities and no way to gain any, but in the group of the
    /// runtime's socket, as agents are deployed. It runs a copy, because the program may be where only root can read
    /// it.
    pub fn command_without_privilege(&self, program: &Path) -> anyhow::Result<Command> {
        let name = program.file_name().context("a program has a name")?;
        let copy = self.places.directory.join(name);
        if !copy.exists() {
            fs::copy(program, &copy).with_context(|| format!("copying {}", program.display()))?;
        }
        let group = fs::metadata(self.socket()).context("looking at the runtime's socket")?.gid();
        let mut command = self.link.inside(Path::new("setpriv"));
        command.arg(format!("--reuid={STRANGER}")).arg(format!("--regid={group}")).args(STRIPPED).arg(copy);
        Ok(command)
    }

    /// Starts a program on the node. Its log is among the node's files.
    pub fn run(&self, name: &str, command: Command) -> anyhow::Result<Process> {
        Process::start(name, command, &self.places.directory)
    }

    /// How many bytes the node has received since its start, including all protocols and headers.
    pub fn bytes_received(&self) -> anyhow::Result<u64> {
        Ok(self.link.counters()?.to_node)
    }

    /// How many bytes the node has sent since its start.
    pub fn bytes_sent(&self) -> anyhow::Result<u64> {
        Ok(self.link.counters()?.from_node)
    }

    /// Unplugs the node's cable: packets are lost, and connections stay open until one side gives up.
    pub fn cut(&self) -> anyhow::Result<()> {
        self.link.cut()
    }

    /// Limits what the node receives to this many bits a second.
    pub fn slow(&self, bits_per_second: u64) -> anyhow::Result<()> {
        self.link.slow(bits_per_second)
    }

    /// Limits what the node sends to this many bits a second.
    pub fn slow_sending(&self, bits_per_second: u64) -> anyhow::Result<()> {
        self.link.slow_sending(bits_per_second)
    }

    /// Undoes [`cut`](Self::cut), [`slow`](Self::slow) and [`slow_sending`](Self::slow_sending).
    pub fn restore(&self) -> anyhow::Result<()> {
        self.link.restore()
    }
}
