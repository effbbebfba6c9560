//! A large cluster at rest: the controller as a process of its own, on the embedded API behind loopback HTTPS.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_embedded::{Limits, PassedBody, Server, serve};
use prewarm_testkit::binary::given_or;
use prewarm_testkit::figure::{Bar, Figures};
use prewarm_testkit::measure::{cpu_seconds, peak_resident_mib, resident_mib};
use prewarm_testkit::process::Process;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use super::cluster::{Cluster, NAMESPACE, Place, labels, node};
use super::jobs;

const NODES: usize = 10_000;
const IMAGES: usize = 50;
/// How long the idle controller is measured.
const IDLE: Duration = Duration::from_mins(2);
/// The time limit for coming to rest.
const PATIENCE: Duration = Duration::from_mins(5);
/// A process that uses less than this of a core for a second is at rest.
const REST: f64 = 0.02;

pub async fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let cluster = Cluster::embedded(0).await?;
    let Place::Embedded(server) = &cluster.place else { unreachable!("it was made embedded") };
    fill(&cluster).await?;
    let writes = Arc::new(AtomicUsize::new(0));
    let service = counting(server.clone(), writes.clone());
    let serving = serve(service, TcpListener::bind("127.0.0.1:0").await?, Limits::default())?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig)?;

    let start = Instant::now();
    let controller = start_controller(&kubeconfig, directory.path(), &[])?;
    let pid = controller.id().context("the controller runs")?;
    let steady = rest(&controller, start, &cluster).await?;
    let what = format!("{NODES} nodes × {IMAGES} finished images");
    figures.add(&format!("{what}: start to rest"), steady.as_secs_f64(), "s", Bar::AtMost(60.0));
    figures.add(&format!("{what}: writes until then, Lease apart"), count(&writes), "", Bar::AtMost(0.0));
    let (before, used) = (count(&writes), cpu_seconds(pid)?);
    tokio::time::sleep(IDLE).await;
    controller.check()?;
    let share = (cpu_seconds(pid)? - used) / IDLE.as_secs_f64() * 100.0;
    figures.add(&format!("{what}: CPU over 2 idle minutes"), share, "% of a core", Bar::AtMost(1.0));
    let idle = count(&writes) - before;
    figures.add(&format!("{what}: writes in them, Lease apart"), idle, "", Bar::AtMost(0.0));
    figures.add(&format!("{what}: resident memory"), resident_mib(pid)?, "MiB", Bar::AtMost(600.0));
    figures.add(
        &format!("{what}: resident memory, peak"),
        peak_resident_mib(pid)?,
        "MiB",
        Bar::AtMost(600.0),
    );
    controller.stop()?;
    serving.stop().await;
    Ok(())
}

pub fn start_controller(kubeconfig: &Path, directory: &Path, more: &[&str]) -> anyhow::Result<Process> {
    let mut command = Command::new(given_or(env!("CARGO_BIN_EXE_prewarm")));
    command.args(["controller", "--listen", "127.0.0.1:0", "--lease-namespace", NAMESPACE]);
    command.arg("--kubeconfig").arg(kubeconfig).args(more);
    Process::start("controller", command, directory)
}

/// Waits until the controller has held the Lease, read everything, and come to rest.
async fn rest(controller: &Process, start: Instant, cluster: &Cluster) -> anyhow::Result<Duration> {
    let pid = controller.id().context("the controller runs")?;
    let mut last = (start.elapsed(), cpu_seconds(pid)?);
    while start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_secs(1)).await;
        controller.check()?;
        let present = (start.elapsed(), cpu_seconds(pid)?);
        let share = (present.1 - last.1) / present.0.saturating_sub(last.0).as_secs_f64();
        if share < REST && has_lease(cluster).await? && present.1 > 1.0 {
            return Ok(last.0);
        }
        last = present;
    }
    anyhow::bail!("the controller does not come to rest:\n{}", controller.log_tail())
}

async fn has_lease(cluster: &Cluster) -> anyhow::Result<bool> {
    let request = Request::get("/apis/coordination.k8s.io/v1/leases").body(Vec::new())?;
    let leases: Value = cluster.client.request(request).await?;
    Ok(leases["items"].as_array().is_some_and(|leases| !leases.is_empty()))
}

/// Counts the writes to anything but Leases.
fn counting(
    server: Server,
    writes: Arc<AtomicUsize>,
) -> impl tower::Service<
    Request<PassedBody>,
    Response = http::Response<prewarm_embedded::Body>,
    Error = std::convert::Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ Sync
+ 'static {
    server.map_request(move |request: Request<PassedBody>| {
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if !is_read && !request.uri().path().contains("/leases") {
            writes.fetch_add(1, Ordering::Relaxed);
        }
        request
    })
}

fn count(writes: &AtomicUsize) -> f64 {
    u32::try_from(writes.load(Ordering::Relaxed)).map_or(f64::MAX, f64::from)
}

/// The state long after the jobs have ended.
async fn fill(cluster: &Cluster) -> anyhow::Result<()> {
    let mut owners = Vec::new();
    for number in 0..IMAGES {
        owners.push(make_job(cluster, number).await?);
    }
    for number in 0..NODES {
        make_node(cluster, &node(number), &owners).await?;
    }
    ensure!(cluster.node_images().await? == NODES, "every node has its NodeImage");
    Ok(())
}

/// A job that is over, as entries name it.
async fn make_job(cluster: &Cluster, number: usize) -> anyhow::Result<Value> {
    let api = Api::<ImagePullJob>::namespaced(cluster.client.clone(), NAMESPACE);
    let job = jobs::job(&format!("job-{number}"), &format!("{}:v1.2.3", image(number)), 10);
    let job = api.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let status = json!({ "status": {
        "desired": NODES, "succeeded": NODES, "message": "job has completed",
        "startTime": "2026-11-15T08:00:00Z", "completionTime": "2026-11-15T08:30:00Z",
    }});
    api.patch_status(&job.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": NAMESPACE,
        "name": job.name_any(), "uid": job.uid(),
    }))
}

async fn make_node(cluster: &Cluster, name: &str, owners: &[Value]) -> anyhow::Result<()> {
    let nodes = Api::<Node>::all(cluster.client.clone());
    let node = json!({ "metadata": { "name": name, "labels": labels(name) } });
    let node = nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(ready)).await?;
    let images = Api::<NodeImage>::all(cluster.client.clone());
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid() });
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
        "metadata": { "name": name, "labels": labels(name), "ownerReferences": [owner] }, "spec": { "images": specs(owners) },
    });
    images.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    images.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({ "status": status() }))).await?;
    Ok(())
}

fn specs(owners: &[Value]) -> Map<String, Value> {
    let spec = |(number, owner): (usize, &Value)| {
        // Ten years, so that nothing expires while it is looked at.
        let tag = json!({
            "tag": "v1.2.3", "createdAt": "2026-11-15T08:00:00Z", "ownerReferences": [owner],
            "pullPolicy": { "timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 315_360_000 },
        });
        (image(number), json!({ "tags": [tag] }))
    };
    owners.iter().enumerate().map(spec).collect()
}

fn status() -> Value {
    let status = |number: usize| {
        let tag = json!({
            "tag": "v1.2.3", "phase": "Succeeded", "progress": 100,
            "startTime": "2026-11-15T08:30:00Z", "completionTime": "2026-11-15T08:30:09Z",
            "imageID": format!("{}@sha256:{number:064x}", image(number)),
        });
        (image(number), json!({ "tags": [tag] }))
    };
    let statuses: Map<String, Value> = (0..IMAGES).map(status).collect();
    json!({ "desired": IMAGES, "succeeded": IMAGES, "imageStatuses": statuses })
}

fn image(number: usize) -> String {
    format!("registry.example:5000/team-{}/application-{number}", number % 7)
}
