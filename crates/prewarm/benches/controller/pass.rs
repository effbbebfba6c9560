//! What a pass over a job costs after one node has changed: the same with a hundred nodes and with ten thousand.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_api::names::DELETION_PROTECTION_FINALIZER;
use prewarm_plan::cluster::{Input, Kernel, Kind, Settings, Subject};
use prewarm_plan::object::ObjectKey;
use prewarm_testkit::figure::{Bar, Figures, median};
use serde_json::{Value, json};

const FEW: usize = 100;
const MANY: usize = 10_000;
/// How many nodes change, one after the other.
const CHANGES: usize = 90;
const JOB_UID: &str = "7d1f35a4-54f8-4b2f-93c4-0c6f3c3a6f11";
const IMAGE: &str = "registry.example/pass";

pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let (few_visits, few_time) = passes(FEW)?;
    let (many_visits, many_time) = passes(MANY)?;
    let figure = format!("nodes visited after one has changed, {MANY} nodes / {FEW}");
    figures.add(&figure, many_visits / few_visits, "×", Bar::AtMost(1.2));
    figures.add(&figure, many_visits / few_visits, "×", Bar::AtLeast(0.8));
    // Maps are a little deeper and caches colder, but whatever looks at all nodes would take a hundred times as long.
    let figure = format!("time of such a cycle, {MANY} nodes / {FEW}, median");
    figures.add(&figure, many_time / few_time, "×", Bar::AtMost(4.0));
    Ok(())
}

/// Nodes visited in all, and the median time of a cycle after one node has finished.
fn passes(nodes: usize) -> anyhow::Result<(f64, f64)> {
    let mut now: Timestamp = "2026-11-15T08:00:00Z".parse()?;
    let mut kernel = Kernel::new(Settings::default());
    for kind in Kind::needed() {
        kernel.observe(Input::Listed { kind, namespace: None, names: BTreeSet::new() }, now);
    }
    for number in 0..nodes {
        let node: Node = serde_json::from_value(node(number))?;
        kernel.observe(Input::seen(node), now);
        let image: NodeImage = serde_json::from_value(node_image(number, false))?;
        kernel.observe(Input::seen(image), now);
    }
    let job: ImagePullJob = serde_json::from_value(job(nodes))?;
    kernel.observe(Input::seen(job), now);
    kernel.cycle(now);
    let key = ObjectKey { namespace: "default".to_owned(), name: "pass".to_owned() };
    let before = kernel.visits(Kind::ImagePullJob, &key).context("the job is at work")?;
    let mut times = Vec::new();
    for number in 0..CHANGES {
        now += Duration::from_millis(100);
        let changed: NodeImage = serde_json::from_value(node_image(number, true))?;
        drop(kernel.take_measures());
        let start = Instant::now();
        kernel.observe(Input::seen(changed), now);
        kernel.cycle(now);
        times.push(start.elapsed().as_secs_f64());
        ensure!(kernel.take_measures().passes.of(Subject::Job) > 0, "the change of a node woke no job");
    }
    let visits = kernel.visits(Kind::ImagePullJob, &key).context("the job is at work")? - before;
    Ok((f64::from(u32::try_from(visits)?), median(times)))
}

fn node(number: usize) -> Value {
    json!({
        "metadata": { "name": name(number), "uid": format!("node-{number}") },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn node_image(number: usize, is_done: bool) -> Value {
    let owner = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "default", "name": "pass",
        "uid": JOB_UID,
    });
    let tag = json!({ "tag": "v1", "createdAt": "2026-11-15T08:00:00Z", "pullPolicy": { "ttlSecondsAfterFinished": 600 },
                      "ownerReferences": [owner] });
    let status = json!({ "tag": "v1", "phase": "Succeeded", "completionTime": "2026-11-15T08:00:00Z" });
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
        "metadata": {
            "name": name(number), "uid": format!("image-{number}"), "resourceVersion": "1", "generation": 2,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": name(number), "uid": format!("node-{number}") }],
        },
        "spec": { "images": { IMAGE: { "tags": [tag] } } },
    });
    if is_done {
        object["metadata"]["resourceVersion"] = json!("2");
        object["status"] =
            json!({ "desired": 1, "succeeded": 1, "imageStatuses": { IMAGE: { "tags": [status] } } });
    }
    object
}

fn job(nodes: usize) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": { "name": "pass", "namespace": "default", "uid": JOB_UID, "resourceVersion": "1", "generation": 1,
                      "finalizers": [DELETION_PROTECTION_FINALIZER] },
        "spec": { "image": format!("{IMAGE}:v1"), "parallelism": nodes, "completionPolicy": {} },
    })
}

fn name(number: usize) -> String {
    format!("node-{number:05}")
}
