//! What our rules cost the API server: the CPU time of writing a NodeImage of 50 images, compared with the same
//! definition without any rule, on one server in alternating rounds. Machines write NodeImages thousands of times an
//! hour, so the rules of this kind must be cheap.

use std::process::ExitCode;

use anyhow::Context as _;
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use prewarm_testkit::figure::{Bar, Figures, median};
use prewarm_testkit::measure::cpu_seconds;
use prewarm_testkit::{ApiServer, install};
use serde_json::{Map, Value, json};

#[path = "../tests/real_admission/loosen.rs"]
mod loosen;

use loosen::without_rules;

const IMAGES: usize = 50;
const ROUNDS: usize = 15;
const WRITES_PER_ROUND: usize = 30;
const MOST: f64 = 1.3;
/// The group of the definition without rules.
const PLAIN_GROUP: &str = "plain.kruise.io";
fn main() -> ExitCode {
    // `cargo test` and `cargo bench` pass arguments for their own harness, which do not apply here.
    if let Err(reason) = prewarm_bed::enter() {
        eprintln!("cannot measure: {reason}");
        return ExitCode::from(2);
    }
    match tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(measure()))
    {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn measure() -> anyhow::Result<ExitCode> {
    let server = ApiServer::start().await?;
    let client = server.client()?;
    let ours =
        prewarm_api::crd::all().iter().find(|crd| crd.spec.names.kind == "NodeImage").context("NodeImage")?;
    install::definitions(&client, &[ours.clone(), plain(ours)]).await?;
    let with = Target::create(&client, "apps.kruise.io").await?;
    let without = Target::create(&client, PLAIN_GROUP).await?;
    let pid = server.apiserver.id().context("the API server runs")?;
    let (mut spec, mut status) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let mut ratio = Vec::new();
        for part in [Part::Spec, Part::Status] {
            // The order changes from round to round, so that neither side always pays for the other's garbage.
            let (first, second) = if round % 2 == 0 { (&with, &without) } else { (&without, &with) };
            let (one, two) = (first.cost(pid, part, round).await?, second.cost(pid, part, round).await?);
            ratio.push(if round % 2 == 0 { one / two } else { two / one });
        }
        // The first round warms both up.
        if round > 0 {
            spec.push(ratio[0]);
            status.push(ratio[1]);
        }
    }
    let mut figures = Figures::new("admission");
    figures.add(
        "CPU of a spec write of 50 images, with rules / without",
        median(spec),
        "×",
        Bar::AtMost(MOST),
    );
    figures.add(
        "CPU of a status write of 50 images, with rules / without",
        median(status),
        "×",
        Bar::AtMost(MOST),
    );
    Ok(figures.close())
}

/// The definition in another group, without anything that refuses.
fn plain(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = without_rules(crd);
    PLAIN_GROUP.clone_into(&mut crd.spec.group);
    crd.metadata.name = Some(format!("{}.{PLAIN_GROUP}", crd.spec.names.plural));
    crd
}

#[derive(Clone, Copy)]
enum Part {
    Spec,
    Status,
}

struct Target {
    client: Client,
    path: String,
}

impl Target {
    async fn create(client: &Client, group: &str) -> anyhow::Result<Self> {
        let collection = format!("/apis/{group}/v1beta1/nodeimages");
        let object = json!({
            "apiVersion": format!("{group}/v1beta1"), "kind": "NodeImage", "metadata": { "name": "node-1" },
            "spec": { "images": images(0) },
        });
        send(client, "POST", &collection, &object).await?;
        Ok(Self { client: client.clone(), path: format!("{collection}/node-1") })
    }

    /// CPU seconds of the API server for one round of writes.
    async fn cost(&self, pid: u32, part: Part, round: usize) -> anyhow::Result<f64> {
        let before = cpu_seconds(pid)?;
        for write in 0..WRITES_PER_ROUND {
            let version = round * WRITES_PER_ROUND + write + 1;
            match part {
                Part::Spec => {
                    let patch = json!({ "spec": { "images": images(version) } });
                    send(&self.client, "PATCH", &self.path, &patch).await?;
                }
                Part::Status => {
                    let patch = json!({ "status": statuses(version) });
                    send(&self.client, "PATCH", &format!("{}/status", self.path), &patch).await?;
                }
            }
        }
        Ok(cpu_seconds(pid)? - before)
    }
}

fn name(index: usize) -> String {
    format!("registry.example:5000/team-{}/application-{index}", index % 7)
}

/// What the controller writes for jobs: every tag with its owner.
fn images(version: usize) -> Map<String, Value> {
    (0..IMAGES)
        .map(|index| {
            let tag = json!({
                "tag": "v1.2.3", "createdAt": "2026-11-15T08:30:00Z", "version": version, "imagePullPolicy": "IfNotPresent",
                "pullPolicy": { "timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 600 },
                "ownerReferences": [{
                    "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "team",
                    "name": format!("job-{index}"), "uid": "0b7e3a52-8f0c-4d2b-9c55-3f1f6f2f9a10",
                }],
            });
            (name(index), json!({ "tags": [tag] }))
        })
        .collect()
}

/// What the agent writes when everything is done.
fn statuses(version: usize) -> Value {
    let statuses: Map<String, Value> = (0..IMAGES)
        .map(|index| {
            let tag = json!({
                "tag": "v1.2.3", "phase": "Succeeded", "progress": 100, "version": version,
                "startTime": "2026-11-15T08:30:00Z", "completionTime": "2026-11-15T08:30:09Z",
                "imageID": format!("{}@sha256:{:064x}", name(index), index),
            });
            (name(index), json!({ "tags": [tag] }))
        })
        .collect();
    json!({ "desired": IMAGES, "succeeded": IMAGES, "failed": 0, "pulling": 0, "waiting": 0, "imageStatuses": statuses })
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> anyhow::Result<()> {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let answer: Result<Value, kube::Error> = client.request(request.body(serde_json::to_vec(body)?)?).await;
    answer.map(drop).with_context(|| format!("{method} {path}"))
}
