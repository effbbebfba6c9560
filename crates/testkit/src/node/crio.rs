//! CRI-O beside other instances: every path that they would share is its own.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use prewarm_bed::{commands, programs};

use super::Places;
use super::pods::{self, SANDBOX};
use crate::process::Process;

/// CRI-O has no rule for all hosts, so these stand for them: names for examples, and the usual domains.
const ANY_HOST: &[&str] = &["*.example", "*.test", "*.io", "*.com"];

/// CRI-O's log line after it has read its registries again.
const APPLIED: &str = "Applied new registry configuration";

/// How long it may take to read its registries again.
const PATIENCE: Duration = Duration::from_secs(10);

const POLICY: &str = r#"{"default": [{"type": "insecureAcceptAnything"}]}"#;

/// Writes the files of the configuration. Returns the arguments of CRI-O.
pub fn prepare(places: &Places, registry: &str) -> anyhow::Result<Vec<PathBuf>> {
    let directory = &places.directory;
    for part in ["policies", "registries.d", "cni", "log", "run"] {
        fs::create_dir_all(directory.join(part)).context("creating the node's directories")?;
    }
    fs::create_dir_all(temporary(places)).context("creating the directory of downloads")?;
    let storage = format!(
        "[storage]\ndriver = \"overlay\"\nrunroot = \"{}\"\ngraphroot = \"{}\"\n",
        directory.join("run/storage").display(),
        places.root.display()
    );
    let unqualified = "unqualified-search-registries = [\"docker.io\"]\n";
    for (file, content) in [
        ("policy.json", POLICY),
        ("storage.conf", &storage),
        ("registries.conf", unqualified),
        ("crio.conf", &text(places)?),
        ("runc", &runc()?),
    ] {
        fs::write(directory.join(file), content).with_context(|| format!("writing CRI-O's {file}"))?;
    }
    fs::set_permissions(directory.join("runc"), Permissions::from_mode(0o755)).context("allowing runc")?;
    let own = registry.split_once("://").map_or(registry, |(_, host)| host);
    for host in ANY_HOST.iter().copied().chain([own]) {
        write_lead(directory, host, registry)?;
    }
    let path = |file: &str| directory.join(file);
    // The options for registries are hidden, but they are the only ones that exclude the machine's own files.
    Ok(vec![
        "--config".into(),
        path("crio.conf"),
        "--config-dir".into(),
        PathBuf::new(),
        "--registries-conf".into(),
        path("registries.conf"),
        "--registries-conf-dir".into(),
        path("registries.d"),
    ])
}

/// Downloads are stored beside the images, as they usually are, so that they fill the same disk.
fn temporary(places: &Places) -> PathBuf {
    places.root.with_file_name("temporary")
}

/// The environment variable by which the storage library finds its configuration.
pub fn environment(places: &Places) -> (&'static str, PathBuf) {
    ("CONTAINERS_STORAGE_CONF", places.directory.join("storage.conf"))
}

/// Makes the names of a host refer to a registry, and waits until CRI-O has read it.
pub fn lead(directory: &Path, host: &str, registry: &str, crio: &Process) -> anyhow::Result<()> {
    write_lead(directory, host, registry)?;
    if crio.id().is_none() {
        return Ok(());
    }
    let applied = || crio.log().matches(APPLIED).count();
    let before = applied();
    crio.reload()?;
    let deadline = Instant::now() + PATIENCE;
    while applied() == before {
        ensure!(Instant::now() < deadline, "CRI-O did not read its registries again:\n{}", crio.log_tail());
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// One file per host, so that a later one replaces it.
fn write_lead(directory: &Path, host: &str, registry: &str) -> anyhow::Result<()> {
    let (scheme, location) = registry.split_once("://").context("a registry's address has a scheme")?;
    let is_insecure = scheme == "http";
    let mut rule = format!("[[registry]]\nprefix = {host:?}\nlocation = {location:?}\n");
    writeln!(rule, "insecure = {is_insecure}")?;
    let file = format!("{}.conf", host.replace(['*', ':', '/'], "_"));
    fs::write(directory.join("registries.d").join(file), rule).context("writing a rule for registries")
}

/// A program that removes two settings from a container's description before it passes it to runc: root may lack the
/// right to make a process less likely to be killed, and a kernel may know of huge pages that nothing mounts. Either
/// would keep pods from starting, and CRI-O has no option to avoid it.
fn runc() -> anyhow::Result<String> {
    let runc = programs::locate("runc")?;
    Ok(format!(
        r#"#!/bin/sh
bundle= previous=
for word in "$@"; do
    case $previous in --bundle | -b) bundle=$word ;; esac
    previous=$word
done
if [ -n "$bundle" ]; then
    sed -i -z -E 's/"oomScoreAdj": *-[0-9]+/"oomScoreAdj": 0/; s/"hugepageLimits": *\[[^]]*\]/"hugepageLimits": []/' \
        "$bundle/config.json"
fi
exec {} "$@"
"#,
        runc.display()
    ))
}

/// The configuration file. The function is long because the file is a template.
fn text(places: &Places) -> anyhow::Result<String> {
    let conmon = commands::find("conmon").context("conmon is missing: run `cargo xtask tools`")?;
    let (pinns, plugins) = (programs::locate("pinns")?, pods::plugins()?);
    let (conmon, pinns, plugins) = (conmon.display(), pinns.display(), plugins.display());
    let (directory, root) = (places.directory.display(), places.root.display());
    let (temporary, socket) = (temporary(places), places.socket());
    let (temporary, socket) = (temporary.display(), socket.display());
    Ok(format!(
        r#"[crio]
root = "{root}"
runroot = "{directory}/run/storage"
storage_driver = "overlay"
log_dir = "{directory}/log"
version_file = "{directory}/run/version"
clean_shutdown_file = "{directory}/run/clean.shutdown"
internal_wipe = false
internal_repair = false

[crio.api]
listen = "{socket}"

[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
apparmor_profile = "unconfined"
decryption_keys_path = "{directory}/keys"
hooks_dir = []
cdi_spec_dirs = []
irqbalance_config_file = "{directory}/irqbalance"
irqbalance_config_restore_file = "disable"
container_exits_dir = "{directory}/run/exits"
container_attach_socket_dir = "{directory}/run/attach"
namespaces_dir = "{directory}/run/namespaces"
pinns_path = "{pinns}"
enable_criu_support = false
disable_hostport_mapping = true
enable_pod_events = true
default_runtime = "runc"

[crio.runtime.runtimes.runc]
runtime_path = "{directory}/runc"
runtime_type = "oci"
runtime_root = "{directory}/run/runc"
monitor_path = "{conmon}"
monitor_cgroup = "pod"

[crio.image]
pause_image = "{SANDBOX}"
pause_command = ""
signature_policy = "{directory}/policy.json"
signature_policy_dir = "{directory}/policies"
big_files_temporary_dir = "{temporary}"

[crio.network]
network_dir = "{directory}/cni"
plugin_dirs = ["{plugins}"]

[crio.nri]
enable_nri = false
"#
    ))
}
