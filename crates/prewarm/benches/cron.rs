//! A thousand AdvancedCronJobs are due at the same moment, on the embedded API: how soon all runs exist, and how
//! much is written for them. A third makes Jobs, a third BroadcastJobs, a third image lists. The runs do not
//! progress, so that all writes belong to their creation.

#[path = "controller/record.rs"]
#[expect(dead_code, reason = "shared with the benchmark of the controller, which needs more of it")]
mod record;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::{Clock as _, TokioClock};
use prewarm_controller::config::Config;
use prewarm_controller::lease::Term;
use prewarm_controller::{Controller, lead};
use prewarm_embedded::{Options, Server};
use prewarm_testkit::figure::{Bar, Figures};
use serde_json::{Value, json};
use tower::Layer as _;

use record::{Recorder, Write};

const CRONS: usize = 1000;
/// How many of them are created at once.
const AT_ONCE: usize = 16;
/// The start of this benchmark's clocks, a while before the full hour at which all are due.
const BEGINNING: &str = "2026-11-17T07:59:30Z";
const DUE: &str = "2026-11-17T08:00:00Z";
/// The time limit.
const PATIENCE: Duration = Duration::from_mins(5);
/// The runs count as complete after this time without a write.
const QUIET: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(5);
/// The resources of runs.
const RUNS: [&str; 3] = ["/jobs", "/broadcastjobs", "/imagelistpulljobs"];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    runtime.block_on(measure()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

async fn measure() -> anyhow::Result<ExitCode> {
    let clock = Arc::new(TokioClock::starting_at(BEGINNING.parse()?));
    let server = Server::new(clock.clone(), Options::default());
    server.install_definitions();
    server.install_namespace(DEFAULT_CONFIG_NAMESPACE);
    make_objects(server.client()).await?;
    let recorder = Recorder::default();
    let client = Client::new(recorder.layer(server.clone()), "default");
    let (parts, writer) = Controller::new("controller", Config::default(), client, clock.clone());
    tokio::spawn(lead(parts, Term::endless(), std::future::pending()));
    tokio::spawn(writer.run());
    rest(&recorder).await?;
    let due: Timestamp = DUE.parse()?;
    let left = due.duration_since(clock.now());
    ensure!(left.is_positive(), "making the cron jobs took too long for the clock of this benchmark");
    recorder.take();
    tokio::time::sleep(left.try_into()?).await;
    let seconds = runs_made(&recorder).await?;
    rest(&recorder).await?;
    let written = recorder.take();
    let crons: Vec<AdvancedCronJob> =
        Api::default_namespaced(server.client()).list(&<_>::default()).await?.items;
    let is_begun = |cron: &&AdvancedCronJob| {
        cron.status.as_ref().is_some_and(|status| status.last_schedule_time.is_some())
    };
    ensure!(crons.iter().filter(is_begun).count() == CRONS, "some cron jobs do not know of their run");
    let mut figures = Figures::new("cron");
    figures.add("1000 cron jobs due at once: all runs made (embedded)", seconds, "s", Bar::AtMost(5.0));
    figures.add("writes for a run, besides the run itself", besides(&written), "", Bar::AtMost(2.0));
    Ok(figures.close())
}

/// A node, so that image lists do not end at once, and the cron jobs.
async fn make_objects(client: Client) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": "node-1"}}))?;
    nodes.create(&PostParams::default(), &node).await.context("making the Node")?;
    let ready = Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    nodes.patch_status("node-1", &PatchParams::default(), &ready).await.context("the Node's status")?;
    let api: Api<AdvancedCronJob> = Api::default_namespaced(client);
    let made = (0..CRONS).map(async |number| {
        let cron: AdvancedCronJob = serde_json::from_value(cron(number))?;
        api.create(&PostParams::default(), &cron)
            .await
            .with_context(|| format!("making {}", cron.name_any()))?;
        anyhow::Ok(())
    });
    stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

fn cron(number: usize) -> Value {
    let pod =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "tool:1"}]}});
    let template = match number % 3 {
        0 => json!({"jobTemplate": {"spec": {"template": pod}}}),
        1 => json!({"broadcastJobTemplate": {"spec": {"template": pod, "paused": true}}}),
        _ => {
            json!({"imageListPullJobTemplate": {"spec": {"images": ["registry.example/base:1"], "parallelism": 0}}})
        }
    };
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
        "metadata": {"name": format!("cron-{number:04}")},
        "spec": {"schedule": "0 * * * *", "template": template},
    })
}

/// Waits until every cron job has made its run, and returns how many seconds that took.
async fn runs_made(recorder: &Recorder) -> anyhow::Result<f64> {
    let start = Instant::now();
    loop {
        let made: usize = RUNS.iter().map(|resource| recorder.taken(resource)).sum();
        if made >= CRONS {
            return Ok(start.elapsed().as_secs_f64());
        }
        ensure!(start.elapsed() < PATIENCE, "there are {made} runs");
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits until nothing is written any more.
async fn rest(recorder: &Recorder) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut count = recorder.count();
    loop {
        tokio::time::sleep(QUIET).await;
        let now = recorder.count();
        if now == count && now > 0 {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE, "somebody still writes");
        count = now;
    }
}

/// How many writes to cron jobs, and events about them, there were for each run.
fn besides(writes: &[Write]) -> f64 {
    let is_about_cron = |write: &&Write| {
        let is_event = write.place().ends_with("/events")
            && String::from_utf8_lossy(&write.body).contains("\"kind\":\"AdvancedCronJob\"");
        write.place().contains("/advancedcronjobs/") || is_event
    };
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let (count, crons) = (writes.iter().filter(is_about_cron).count() as f64, CRONS as f64);
    count / crons
}
