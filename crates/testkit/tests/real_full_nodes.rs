//! Full nodes: kubelet, real pods, and what they must not do to the machine.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use prewarm_testkit::image::Layer;
use prewarm_testkit::pod::Made;
use prewarm_testkit::{Cluster, Node, Pod, Runtime, real_tests, wait, workload};
use serde_json::json;
use tokio::sync::OnceCell;

real_tests! {
    a_pod_runs_on_a_node_of_each_runtime,
    the_scheduler_finds_a_node_for_a_pod,
    a_pod_ends_as_its_arguments_say,
    a_pod_has_its_volumes_and_its_seccomp_profile,
    a_pod_lives_on_while_kubelet_and_runtime_restart,
    nothing_is_left_of_a_node_that_is_dropped,
}

const MIB: usize = 1024 * 1024;
const IMAGE: &str = "registry.example/shop/web:v1";

/// The cluster for tests that disturb none of its nodes: one node of each runtime, and an image to run.
async fn shared() -> anyhow::Result<&'static Cluster> {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    let start = async || {
        let (sysctls, start) = (sysctls()?, Instant::now());
        let cluster = Cluster::start(&Runtime::ALL).await?;
        println!("a cluster with two nodes is ready after {:.1?}", start.elapsed());
        ensure!(sysctls == self::sysctls()?, "a kubelet changed the machine");
        let image = workload::image("shop")?.layer(Layer::of(MIB)).build();
        cluster.registry.push("shop/web", &["v1"], &image).await?;
        Ok(cluster)
    };
    SHARED.get_or_try_init(start).await
}

/// The values of the machine that a kubelet would change.
fn sysctls() -> anyhow::Result<Vec<String>> {
    let names = ["kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory"];
    let read =
        |name| fs::read_to_string(format!("/proc/sys/{name}")).with_context(|| format!("reading {name}"));
    names.into_iter().map(read).collect()
}

async fn a_pod_runs_on_a_node_of_each_runtime() -> anyhow::Result<()> {
    let cluster = shared().await?;
    let (client, namespace) = (cluster.server.client()?, cluster.namespace().await?);
    let nodes = Api::<core::Node>::all(client.clone());
    for (node, prefix) in cluster.nodes.iter().zip(["containerd://", "cri-o://"]) {
        let pod = Pod::new(node.name(), IMAGE).on(node).make(client.clone(), &namespace).await?;
        println!("a pod on {:?} is ready after {:.1?}", node.kind(), pod.ready().await?);
        // A container is ready as soon as it has started, and its program may not have come to say anything.
        wait::until("what the program says", async || {
            Ok(pod.log().await?.contains("workload begins").then_some(()))
        })
        .await?;
        pod.delete().await?;
        let about = nodes.get(node.name()).await?.status.and_then(|status| status.node_info);
        let version = about.context("a node tells about itself")?.container_runtime_version;
        ensure!(version.starts_with(prefix), "{version}");
    }
    Ok(())
}

async fn the_scheduler_finds_a_node_for_a_pod() -> anyhow::Result<()> {
    let cluster = shared().await?;
    let namespace = cluster.namespace().await?;
    let pod = Pod::new("anywhere", IMAGE).make(cluster.server.client()?, &namespace).await?;
    pod.ready().await?;
    let node = pod.api.get("anywhere").await?.spec.and_then(|spec| spec.node_name);
    ensure!(cluster.nodes.iter().any(|one| Some(one.name()) == node.as_deref()), "{node:?}");
    pod.delete().await
}

async fn a_pod_ends_as_its_arguments_say() -> anyhow::Result<()> {
    let cluster = shared().await?;
    let (client, namespace) = (cluster.server.client()?, cluster.namespace().await?);
    for node in &cluster.nodes {
        let pod = |name: &str, arguments: &[&str]| {
            Pod::new(&format!("{name}-{}", node.name()), IMAGE).on(node).arguments(arguments)
        };
        let exits = pod("exits", &["exit", "3", "after", "0.2"]).make(client.clone(), &namespace).await?;
        let fails = pod("fails", &["fail-until", "/no/such/file"]).make(client.clone(), &namespace).await?;
        let mut recovers = pod("recovers", &["fail-times", "1", "/count/runs"]);
        recovers.spec["restartPolicy"] = "OnFailure".into();
        recovers.spec["volumes"] = json!([{"name": "count", "emptyDir": {}}]);
        recovers.spec["containers"][0]["volumeMounts"] = json!([{"name": "count", "mountPath": "/count"}]);
        let recovers = recovers.make(client.clone(), &namespace).await?;
        ensure!(exits.ended().await? == 3 && fails.ended().await? == 1);
        recovers.succeeded().await?;
    }
    Ok(())
}

/// Kubelet mounts the volume in a namespace of its own, and the runtime has to see it.
async fn a_pod_has_its_volumes_and_its_seccomp_profile() -> anyhow::Result<()> {
    let cluster = shared().await?;
    let (client, namespace) = (cluster.server.client()?, cluster.namespace().await?);
    for node in &cluster.nodes {
        let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
        let mut pod = Pod::new(&format!("token-{}", node.name()), IMAGE).on(node);
        pod = pod.arguments(&["fail-until", token]);
        pod.spec["automountServiceAccountToken"] = true.into();
        ensure!(pod.make(client.clone(), &namespace).await?.ended().await? == 0, "{token} is not there");

        let mut pod = Pod::new(&format!("confined-{}", node.name()), IMAGE).on(node);
        pod.spec["securityContext"] = json!({"seccompProfile": {"type": "RuntimeDefault"}});
        let pod = pod.make(client.clone(), &namespace).await?;
        pod.ready().await?;
        let modes = processes_of(node, "workload").into_iter().map(|pid| status_field(pid, "Seccomp:"));
        let modes: Vec<String> = modes.collect();
        // CRI-O has no process for a sandbox. Pods of other tests may run beside it, without a profile.
        ensure!(modes.iter().filter(|mode| *mode == "2").count() >= 1, "{:?}: {modes:?}", node.kind());
        pod.delete().await?;
    }
    Ok(())
}

/// One more node with a running pod.
async fn node_with_pod(cluster: &Cluster, runtime: Runtime) -> anyhow::Result<(Node, Made)> {
    let node = cluster.node(runtime).await?;
    let pod = Pod::new(node.name(), IMAGE).on(&node);
    let pod = pod.make(cluster.server.client()?, &cluster.namespace().await?).await?;
    pod.ready().await?;
    Ok((node, pod))
}

async fn a_pod_lives_on_while_kubelet_and_runtime_restart() -> anyhow::Result<()> {
    let cluster = shared().await?;
    for runtime in Runtime::ALL {
        let (node, pod) = node_with_pod(cluster, runtime).await?;
        let before = processes_of(&node, "workload");
        node.restart().await?;
        node.kubelet.as_ref().context("a full node has a kubelet")?.restart()?;
        node.ready_for_pods(&cluster.server).await?;
        pod.ready().await?;
        ensure!(!before.is_empty() && processes_of(&node, "workload") == before, "{before:?}");
    }
    Ok(())
}

async fn nothing_is_left_of_a_node_that_is_dropped() -> anyhow::Result<()> {
    let cluster = shared().await?;
    for runtime in Runtime::ALL {
        let (node, _pod) = node_with_pod(cluster, runtime).await?;
        let name = node.name().to_owned();
        ensure!(!processes_in(&name).is_empty());
        drop(node);
        ensure!(processes_in(&name).is_empty(), "{:?}", processes_in(&name));
    }
    Ok(())
}

/// The processes of a program in the cgroups of a node.
fn processes_of(node: &Node, program: &str) -> Vec<u32> {
    let is_of_program = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == program)
    };
    processes_in(node.name()).into_iter().filter(is_of_program).collect()
}

/// The processes in the cgroups of a node: its runtime, and what that has started.
fn processes_in(node: &str) -> Vec<u32> {
    let needle = format!("/{node}/");
    let is_inside = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|cgroups| cgroups.contains(&needle))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_inside)
        // A killed process counts until its parent has reaped it.
        .filter(|pid| status_field(*pid, "State:") != "Z")
        .collect();
    found.sort_unstable();
    found
}

fn status_field(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default().to_owned()
}
