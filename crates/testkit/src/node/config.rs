//! The configuration of one containerd among several: every path that it would otherwise share is its own.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// NRI has one socket path for all instances; the others would only probe for what no test has.
const DISABLED: &[&str] = &[
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.differ.v1.erofs",
    "io.containerd.internal.v1.tracing",
    "io.containerd.tracing.processor.v1.otlp",
];

/// Writes `config.toml` and creates what it refers to.
pub fn write(directory: &Path) -> anyhow::Result<()> {
    for part in ["root", "state", "opt", "cni", "hosts"] {
        fs::create_dir_all(directory.join(part)).context("creating the node's directories")?;
    }
    fs::write(directory.join("config.toml"), text(directory)).context("writing containerd's config")
}

fn text(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        r#"version = 3
root = "{directory}/root"
state = "{directory}/state"
disabled_plugins = {DISABLED:?}

[grpc]
address = "{directory}/containerd.sock"

[ttrpc]
address = "{directory}/containerd.ttrpc.sock"

[plugins."io.containerd.internal.v1.opt"]
path = "{directory}/opt"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "{directory}/hosts"

[plugins."io.containerd.transfer.v1.local"]
config_path = "{directory}/hosts"

[plugins."io.containerd.cri.v1.runtime".cni]
conf_dir = "{directory}/cni"

[plugins."io.containerd.grpc.v1.cri"]
disable_tcp_service = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
"#
    )
}
