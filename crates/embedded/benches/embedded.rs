//! The load that the embedded API carries: patches with many watchers, many large objects, and idleness.
//!
//! One thread does everything, client and server alike, so a CPU second is a second of one core, whatever else the
//! machine is doing.

use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use prewarm_api::kruise::NodeImage;
use prewarm_embedded::{Options, Server, TokioClock};
use prewarm_testkit::figure::{Bar, Figures};
use prewarm_testkit::measure::{cpu_seconds, resident_mib, wake_ups};
use serde_json::{Map, Value, json};
use tower::Service as _;

const WATCHERS: usize = 1000;
const PATCHES: usize = 20_000;
const LARGE_OBJECTS: usize = 10_000;
const IMAGES: usize = 50;
const PAGE: u32 = 500;
const IDLE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(measure())) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn measure() -> anyhow::Result<ExitCode> {
    let mut figures = Figures::new("embedded");
    patches(&mut figures).await?;
    large_objects(&mut figures).await?;
    Ok(figures.close())
}

fn server() -> Server {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    server
}

async fn patches(figures: &mut Figures) -> anyhow::Result<()> {
    let server = server();
    let client = server.client();
    let api = Api::<NodeImage>::all(client.clone());
    let seen = Arc::new(AtomicUsize::new(0));
    for index in 0..WATCHERS {
        create(&api, &node(index), 5).await?;
        tokio::spawn(follow(server.clone(), node(index), seen.clone()));
    }
    wait_for(&seen, WATCHERS).await;
    idle(figures).await?;
    // The work of an agent is not measured, so every round's patch is made beforehand.
    let changes: Vec<String> =
        (1..=PATCHES / WATCHERS).map(|round| json!({ "status": status(5, round) }).to_string()).collect();
    let before = server.serialised_objects();
    let start = cpu_seconds(process::id())?;
    for index in 0..PATCHES {
        let change = changes[index / WATCHERS].clone().into_bytes();
        let path = format!("/apis/apps.kruise.io/v1beta1/nodeimages/{}/status", node(index % WATCHERS));
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        client.request_text(request.body(change)?).await?;
    }
    wait_for(&seen, WATCHERS + PATCHES).await;
    let rate = f64_of(PATCHES) / (cpu_seconds(process::id())? - start);
    figures.add("merge patches per CPU second, 1000 watchers by name", rate, "/s", Bar::AtLeast(5000.0));
    let written = f64_of(usize::try_from(server.serialised_objects() - before)?);
    figures.add("objects serialised per patch", written / f64_of(PATCHES), "", Bar::AtMost(1.0));
    Ok(())
}

/// Reads a watch of one object and counts its events without parsing them, which would be the clients' work.
async fn follow(mut server: Server, name: String, seen: Arc<AtomicUsize>) {
    let path = format!(
        "/apis/apps.kruise.io/v1beta1/nodeimages?watch=1&allowWatchBookmarks=1&fieldSelector=metadata.name%3D{name}"
    );
    let request =
        Request::get(path).body(Empty::<bytes::Bytes>::new()).expect("a fixed path is a valid request");
    let Ok(response) = server.call(request).await;
    let mut body = response.into_body();
    while let Some(Ok(_)) = body.frame().await {
        seen.fetch_add(1, Ordering::Relaxed);
    }
}

async fn wait_for(seen: &AtomicUsize, wanted: usize) {
    while seen.load(Ordering::Relaxed) < wanted {
        tokio::task::yield_now().await;
    }
}

/// With a thousand watches open and nothing to do, the process sleeps.
async fn idle(figures: &mut Figures) -> anyhow::Result<()> {
    let before = wake_ups(process::id())?;
    tokio::time::sleep(IDLE).await;
    let count = wake_ups(process::id())? - before;
    figures.add("wake-ups in 5 idle seconds with 1000 watches", count, "", Bar::AtMost(10.0));
    Ok(())
}

async fn large_objects(figures: &mut Figures) -> anyhow::Result<()> {
    let before = resident_mib(process::id())?;
    let server = server();
    let api = Api::<NodeImage>::all(server.client());
    for index in 0..LARGE_OBJECTS {
        create(&api, &node(index), IMAGES).await?;
        let patch = json!({ "status": status(IMAGES, 0) });
        api.patch_status(&node(index), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let held = resident_mib(process::id())? - before;
    figures.add("memory of 10 000 NodeImages × 50 finished images", held, "MiB", Bar::AtMost(1024.0));
    let (mut token, mut slowest, mut listed) = (None::<String>, Duration::ZERO, 0);
    let client = server.client();
    loop {
        let mut params = ListParams::default().limit(PAGE);
        params.continue_token = token.take();
        let request = kube::core::Request::new("/apis/apps.kruise.io/v1beta1/nodeimages").list(&params)?;
        let start = Instant::now();
        let text = client.request_text(request).await?;
        slowest = slowest.max(start.elapsed());
        let page: Value = serde_json::from_str(&text)?;
        listed += page["items"].as_array().map_or(0, Vec::len);
        token = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        if token.is_none() {
            break;
        }
    }
    anyhow::ensure!(listed == LARGE_OBJECTS, "{listed} objects were listed");
    figures.add("slowest page of 500", slowest.as_secs_f64() * 1000.0, "ms", Bar::AtMost(250.0));
    Ok(())
}

async fn create(api: &Api<NodeImage>, name: &str, images: usize) -> anyhow::Result<()> {
    let specs: Map<String, Value> = (0..images)
        .map(|index| {
            let tag = json!({
                "tag": "v1.2.3", "createdAt": "2026-11-15T08:30:00Z",
                "pullPolicy": { "ttlSecondsAfterFinished": 600 },
                "ownerReferences": [{
                    "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "team",
                    "name": format!("job-{index}"), "uid": "0b7e3a52-8f0c-4d2b-9c55-3f1f6f2f9a10",
                }],
            });
            (image(index), json!({ "tags": [tag] }))
        })
        .collect();
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": name },
        "spec": { "images": specs },
    });
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

fn node(index: usize) -> String {
    format!("node-{index:05}")
}

fn image(index: usize) -> String {
    format!("registry.example:5000/team-{}/application-{index}", index % 7)
}

fn status(images: usize, version: usize) -> Value {
    let statuses: Map<String, Value> = (0..images)
        .map(|index| {
            let tag = json!({
                "tag": "v1.2.3", "phase": "Succeeded", "progress": 100, "version": version,
                "startTime": "2026-11-15T08:30:00Z", "completionTime": "2026-11-15T08:30:09Z",
                "imageID": format!("{}@sha256:{index:064x}", image(index)),
            });
            (image(index), json!({ "tags": [tag] }))
        })
        .collect();
    json!({ "desired": images, "succeeded": images, "imageStatuses": statuses })
}

fn f64_of(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
