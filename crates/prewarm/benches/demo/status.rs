//! `prewarm status` on a large cluster: 200 jobs, each on 1000 nodes, on the embedded API behind loopback HTTPS.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_embedded::{Limits, Options, Server, TokioClock};
use prewarm_testkit::binary::given_or;
use prewarm_testkit::figure::{Bar, Figures, median};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const JOBS: usize = 200;
const NODES: usize = 1000;
const RUNS: usize = 11;
/// How many requests fill the cluster at once.
const AT_ONCE: usize = 16;

/// Fills the cluster, and asks it.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(asked(figures))
}

async fn asked(figures: &mut Figures) -> anyhow::Result<()> {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    fill(&server.client()).await?;
    let requests = Arc::new(AtomicU32::new(0));
    let counted = requests.clone();
    let service = tower::ServiceBuilder::new()
        .map_request(move |request: http::Request<_>| {
            counted.fetch_add(1, Ordering::Relaxed);
            request
        })
        .service(server);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let serving = prewarm_embedded::serve(service, listener, Limits::default())?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig)?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut status = Command::new(given_or(env!("CARGO_BIN_EXE_prewarm")));
        status.args(["status", "--kubeconfig"]).arg(&kubeconfig).stdout(Stdio::piped());
        let start = Instant::now();
        let output = tokio::task::spawn_blocking(move || status.output()).await??;
        times.push(start.elapsed().as_secs_f64());
        let lines = output.stdout.split(|byte| *byte == b'\n').count();
        ensure!(output.status.success() && lines > JOBS, "status has shown {lines} lines");
    }
    let per_run = f64::from(requests.load(Ordering::Relaxed)) / f64::from(u32::try_from(RUNS)?);
    let what = format!("status of {JOBS} jobs × {NODES} nodes");
    figures.add(&what, median(times), "s", Bar::AtMost(1.0));
    // One list for each kind that is shown: ImagePullJobs, ImageListPullJobs, AdvancedCronJobs.
    figures.add(&format!("{what}: requests"), per_run, "", Bar::AtMost(3.0));
    Ok(())
}

async fn fill(client: &Client) -> anyhow::Result<()> {
    let jobs: Api<ImagePullJob> = Api::namespaced(client.clone(), "default");
    let made = (0..JOBS).map(|number| make(&jobs, job(number), job_status()));
    stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let nodes: Api<NodeImage> = Api::all(client.clone());
    let made = (0..NODES).map(|number| make(&nodes, node_image(number), node_image_status()));
    stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

async fn make<K>(api: &Api<K>, object: Value, status: Value) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object)?;
    let made = api.create(&PostParams::default(), &object).await?;
    let name = made.meta().name.clone().context("an object has a name")?;
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await?;
    Ok(())
}

fn job(number: usize) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": format!("job-{number}")},
        "spec": {"image": format!("registry.example/team/app-{number}:1.0"), "parallelism": 10},
    })
}

fn job_status() -> Value {
    let failed: Vec<String> = (0..100).map(|number| format!("node-{number}")).collect();
    json!({
        "startTime": "2026-01-01T00:00:00Z", "desired": NODES, "active": 10, "succeeded": 500, "failed": 100,
        "failedNodes": failed, "bytesDone": 1_000_000_000, "bytesTotal": 2_000_000_000,
        "message": "job is running, progress 60.0%",
    })
}

fn node_image(number: usize) -> Value {
    let tag = json!({"tag": "1.0", "createdAt": "2026-01-01T00:00:00Z", "version": 1,
                     "pullPolicy": {"ttlSecondsAfterFinished": 3600}});
    let images: serde_json::Map<String, Value> =
        (0..JOBS).map(|job| (format!("registry.example/team/app-{job}"), json!({"tags": [tag]}))).collect();
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": format!("node-{number}")},
        "spec": {"images": images},
    })
}

fn node_image_status() -> Value {
    let tag = json!({"tag": "1.0", "phase": "Succeeded", "progress": 100, "version": 1,
                     "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:20Z"});
    let statuses: serde_json::Map<String, Value> =
        (0..JOBS).map(|job| (format!("registry.example/team/app-{job}"), json!({"tags": [tag]}))).collect();
    json!({"desired": JOBS, "succeeded": JOBS, "imageStatuses": statuses})
}
