//! The configuration files of containerd's releases: version 3 since 2.0, version 2 before.

use std::path::PathBuf;

use prewarm_bed::programs;

use crate::node::Places;
use crate::node::pods::{self, SANDBOX};

/// NRI has one socket path for all instances. The others would only look for devices that no test has.
const DISABLED: &[&str] = &[
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.differ.v1.erofs",
    "io.containerd.internal.v1.tracing",
    "io.containerd.tracing.processor.v1.otlp",
];

/// Which containerd a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Containerd {
    /// That of all tests that name none.
    #[default]
    Newest,
    V2_2,
    V1_7,
}

/// Which plugins of containerd differ from the usual ones.
#[derive(Clone, Copy)]
pub struct Plugins {
    /// Those that are switched off besides the usual ones.
    pub disabled: &'static [&'static str],
    /// The snapshotter that CRI unpacks with.
    pub snapshotter: &'static str,
}

/// The paths and names that every release's file has.
struct Values {
    root: PathBuf,
    directory: PathBuf,
    socket: PathBuf,
    /// The directory of the CNI plugins.
    networks: PathBuf,
    runc: PathBuf,
    disabled: Vec<&'static str>,
    snapshotter: &'static str,
}

impl Containerd {
    /// All of them, for tests of what each has to do alike.
    pub const ALL: [Self; 3] = [Self::Newest, Self::V2_2, Self::V1_7];

    /// The name of its program among those of the real cluster.
    pub fn program(self) -> &'static str {
        match self {
            Self::Newest => "containerd",
            Self::V2_2 => "containerd-2.2",
            Self::V1_7 => "containerd-1.7",
        }
    }
}

impl Default for Plugins {
    fn default() -> Self {
        Self { disabled: &[], snapshotter: "overlayfs" }
    }
}

/// The configuration file of a release.
pub fn text(places: &Places, release: Containerd, plugins: &Plugins) -> anyhow::Result<String> {
    let values = Values {
        root: places.root.clone(),
        directory: places.directory.clone(),
        socket: places.socket(),
        networks: pods::plugins()?,
        runc: programs::locate("runc")?,
        disabled: DISABLED.iter().chain(plugins.disabled).copied().collect(),
        snapshotter: plugins.snapshotter,
    };
    match release {
        Containerd::Newest | Containerd::V2_2 => {
            let shim = programs::locate("containerd-shim-runc-v2")?;
            Ok(values.third_version(&shim.display().to_string()))
        }
        // It finds its shim in the PATH alone, and no test runs pods on it.
        Containerd::V1_7 => Ok(values.second_version()),
    }
}

impl Values {
    /// What has not changed between the versions.
    fn head(&self, version: u8) -> String {
        let Self { root, directory, socket, disabled, .. } = self;
        let (root, directory, socket) = (root.display(), directory.display(), socket.display());
        format!(
            r#"version = {version}
root = "{root}"
state = "{directory}/state"
disabled_plugins = {disabled:?}

[grpc]
address = "{socket}"

[ttrpc]
address = "{socket}.ttrpc"

[plugins."io.containerd.internal.v1.opt"]
path = "{directory}/opt"

[plugins."io.containerd.transfer.v1.local"]
config_path = "{directory}/hosts"
"#
        )
    }

    fn third_version(&self, shim: &str) -> String {
        let Self { directory, networks, runc, snapshotter, .. } = self;
        let (head, directory) = (self.head(3), directory.display());
        let (networks, runc) = (networks.display(), runc.display());
        format!(
            r#"{head}
[plugins."io.containerd.cri.v1.images"]
snapshotter = "{snapshotter}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{SANDBOX}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "{directory}/hosts"

[plugins."io.containerd.cri.v1.runtime"]
# Root may lack the right to make a process less likely to be killed, and then no pod would start.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{networks}"]
conf_dir = "{directory}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "{shim}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "{runc}"

[plugins."io.containerd.grpc.v1.cri"]
disable_tcp_service = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
"#
        )
    }

    fn second_version(&self) -> String {
        let Self { directory, networks, runc, snapshotter, .. } = self;
        let (head, directory) = (self.head(2), directory.display());
        let (networks, runc) = (networks.display(), runc.display());
        format!(
            r#"{head}
[plugins."io.containerd.grpc.v1.cri"]
disable_tcp_service = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
sandbox_image = "{SANDBOX}"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{networks}"
conf_dir = "{directory}/cni"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{directory}/hosts"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
BinaryName = "{runc}"
"#
        )
    }
}
