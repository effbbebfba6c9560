//! The kubelet of a node.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use prewarm_bed::programs;
use serde_json::{Value, json};

use super::Node;
use super::cgroup::Cgroup;
use super::shadow;
use crate::api_server::ApiServer;
use crate::process::Process;
use crate::wait;

/// Starts the kubelet of a node, which joins the cluster, and waits until it is ready for pods.
pub async fn start(node: &Node, cgroup: &Cgroup, server: &ApiServer) -> anyhow::Result<Process> {
    let directory = node.directory().join("kubelet");
    for part in ["root", "keys", "logs", "plugins"] {
        fs::create_dir_all(directory.join(part)).context("creating kubelet's directories")?;
    }
    let config = directory.join("config.json");
    fs::write(&config, text(node, cgroup, server).to_string()).context("writing kubelet's config")?;
    let process = Process::start("kubelet", command(node, server, &directory)?, node.directory())?;
    let nodes = Api::<core::Node>::all(server.client()?);
    until_ready(node.name(), &process, &nodes, None).await?;
    Ok(process)
}

/// Waits until the kubelet reports again that the node is ready for pods: the API server still has its report from
/// before a restart.
pub async fn ready(name: &str, kubelet: &Process, server: &ApiServer) -> anyhow::Result<()> {
    let nodes = Api::<core::Node>::all(server.client()?);
    let before = said_ready(&nodes.get(name).await.with_context(|| format!("reading {name}"))?);
    until_ready(name, kubelet, &nodes, before).await
}

async fn until_ready(
    name: &str,
    kubelet: &Process,
    nodes: &Api<core::Node>,
    before: Option<Time>,
) -> anyhow::Result<()> {
    let what = format!("{name} to be ready");
    let ready = wait::until(&what, async || {
        kubelet.check()?;
        let node = nodes.get_opt(name).await?;
        Ok((node.as_ref().and_then(said_ready) > before).then_some(()))
    });
    ready.await.with_context(|| format!("kubelet logged\n{}", kubelet.log_tail()))
}

/// When the kubelet last reported that the node is ready, if that is its last report.
fn said_ready(node: &core::Node) -> Option<Time> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready" && one.status == "True")?;
    ready.last_heartbeat_time.clone()
}

fn command(node: &Node, server: &ApiServer, directory: &Path) -> anyhow::Result<Command> {
    let unshare = node.command(Path::new("unshare"));
    let mut command =
        shadow::apart(unshare, directory, &node.places.sockets(), &programs::locate("kubelet")?)?;
    let user = format!("system:node:{}", node.name());
    command.arg("--kubeconfig").arg(server.kubeconfig_as(&user, Some("system:nodes"))?);
    command.arg("--config").arg(directory.join("config.json"));
    command.arg("--root-dir").arg(directory.join("root"));
    command.arg("--cert-dir").arg(directory.join("keys"));
    command.arg(format!("--hostname-override={}", node.name()));
    command.arg(format!("--node-ip={}", node.address()));
    Ok(command)
}

/// JSON, which every YAML reader accepts.
fn text(node: &Node, cgroup: &Cgroup, server: &ApiServer) -> Value {
    let directory = node.directory().join("kubelet");
    // The machine's disk does not concern a test, so nothing is evicted and no image is removed because of it.
    let room = json!({
        "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
        "imagefs.available": "0%", "imagefs.inodesFree": "0%",
    });
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "healthzBindAddress": "127.0.0.1",
        "readOnlyPort": 0,
        "containerRuntimeEndpoint": format!("unix://{}", node.socket().display()),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": false},
            "x509": {"clientCAFile": server.authority_file()},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup.path(),
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": false,
        "makeIPTablesUtilChains": false,
        "resolvConf": "",
        "podLogsDir": directory.join("logs"),
        "volumePluginDir": directory.join("plugins"),
        "imageGCHighThresholdPercent": 100,
        "evictionHard": room,
        "serializeImagePulls": false,
        "registryPullQPS": 0,
        "nodeStatusUpdateFrequency": "4s",
        // A failed container is restarted after one second instead of ten.
        "featureGates": {"KubeletCrashLoopBackOffMax": true},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    })
}
