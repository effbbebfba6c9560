//! An ImagePrefetch on a thousand nodes, of which one asks the registry and the others follow in waves: writes, and how near it is to
//! the floor, which is the same requests sent again by a client that does nothing else. Agents are simulated in one task.

#[path = "../controller/agents.rs"]
mod agents;
#[path = "../controller/cluster.rs"]
#[expect(dead_code, reason = "shared with the benchmark of the controller, which needs more of it")]
pub mod cluster;
#[path = "../controller/floor.rs"]
mod floor;
#[path = "../controller/jobs.rs"]
#[expect(dead_code, reason = "shared with the benchmark of the controller, which needs more of it")]
mod jobs;
#[path = "../controller/record.rs"]
#[expect(dead_code, reason = "shared with the benchmark of cron jobs, which needs more of it")]
mod record;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use prewarm_api::kruise::NodeImage;
use prewarm_api::names::FAKE_NODE_IMAGE_LABEL;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_testkit::figure::{Bar, Figures, median};
use serde_json::json;
use tokio::sync::Mutex;

use agents::WRITERS;
use cluster::{Cluster, NAMESPACE, NODE, Running, labels};
use floor::{Fresh, Identity, replay};
use jobs::finished;
use record::Write;

const NODES: usize = 1000;
/// How many pairs of a run and its floor are compared.
const PAIRS: usize = 3;
/// The number of requests that the controller and the agents send at once.
const CONNECTIONS: usize = 32 + WRITERS;
/// How long the cluster is left alone before a run, and how long nothing is written when it is over.
const QUIET: Duration = Duration::from_secs(3);
/// The time limit for what has to go.
const PATIENCE: Duration = Duration::from_mins(2);
const INTERVAL: Duration = Duration::from_millis(50);

pub async fn measure(is_embedded: bool, figures: &mut Figures) -> anyhow::Result<()> {
    let cluster = if is_embedded { Cluster::embedded(NODES).await? } else { Cluster::real(NODES).await? };
    let pairs = if is_embedded { 1 } else { PAIRS };
    let (mut ratios, mut most, mut latest, mut idle) = (Vec::new(), 0.0, 0.0, 0);
    for pair in 0..pairs {
        let running = cluster.start(Duration::ZERO).await?;
        let run = prefetch(&cluster, &running, pair).await?;
        most = f64::max(most, f64_of(run.all) / f64_of(NODES));
        latest = f64::max(latest, run.after_the_last_report);
        idle += run.idle;
        remove(&cluster, pair).await?;
        running.stop().await?;
        if !is_embedded {
            let mut fresh = fresh(&cluster, pair).await?;
            let floor = replay(&cluster.client, &run.writes, &mut fresh, CONNECTIONS).await?.as_secs_f64();
            eprintln!("{:.2} s for {} writes, {floor:.2} s at the floor", run.seconds, run.writes.len());
            ratios.push(run.seconds / floor);
            clear(&cluster, pair).await?;
        }
    }
    let word = cluster.word();
    figures.add(
        &format!("{NODES} nodes in waves: writes for each node, of all objects, events apart ({word})"),
        most,
        "",
        Bar::AtMost(5.0),
    );
    figures.add(
        &format!("the same: last report to the condition Ready ({word})"),
        latest,
        "s",
        Bar::AtMost(1.0),
    );
    figures.add(
        &format!("the same: writes when nothing changes any more ({word})"),
        f64_of(idle),
        "",
        Bar::AtMost(0.0),
    );
    if !is_embedded {
        figures.add(&format!("the same: time / floor ({word})"), median(ratios), "×", Bar::AtMost(1.5));
    }
    Ok(())
}

/// What a run took.
struct Run {
    seconds: f64,
    /// What was written until it was ready.
    writes: Vec<Write>,
    /// How many writes there were, late ones included, events apart.
    all: usize,
    after_the_last_report: f64,
    /// How many there were when all was over.
    idle: usize,
}

/// From the creation of an ImagePrefetch until it is ready, and a while longer.
async fn prefetch(cluster: &Cluster, running: &Running, pair: usize) -> anyhow::Result<Run> {
    tokio::time::sleep(QUIET).await;
    cluster.recorder.take();
    let start = Instant::now();
    make(cluster, NAMESPACE, pair).await?;
    let (name, client) = (name(pair), &cluster.client);
    let reported = async {
        running.agents.wait("every report", |totals| totals.reported == NODES).await?;
        anyhow::Ok(Instant::now())
    };
    let ready = async {
        finished::<ImagePrefetch>(client, &name, NODES).await?;
        anyhow::Ok(Instant::now())
    };
    let (reported, ready) = tokio::try_join!(reported, ready)?;
    let seconds = (ready - start).as_secs_f64();
    let writes = cluster.recorder.take();
    let late = until_quiet(cluster).await?;
    tokio::time::sleep(QUIET).await;
    let idle = count(&cluster.recorder.take());
    let all = count(&writes) + count(&late);
    tally(writes.iter().chain(&late));
    Ok(Run { seconds, writes, all, after_the_last_report: (ready - reported).as_secs_f64(), idle })
}

/// The writes that come late, until none is left. Events are not waited for: a few are sent each second, for minutes.
async fn until_quiet(cluster: &Cluster) -> anyhow::Result<Vec<Write>> {
    let (mut late, start) = (Vec::new(), Instant::now());
    loop {
        tokio::time::sleep(QUIET).await;
        let more = cluster.recorder.take();
        let is_quiet = count(&more) == 0;
        late.extend(more);
        if is_quiet {
            return Ok(late);
        }
        ensure!(start.elapsed() < PATIENCE, "writes go on");
    }
}

/// How many there are, events apart.
fn count(writes: &[Write]) -> usize {
    writes.iter().filter(|write| !write.place().ends_with("/events")).count()
}

/// Says what the writes were about.
fn tally<'a>(writes: impl Iterator<Item = &'a Write>) {
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for write in writes {
        let mut parts: Vec<&str> = write
            .place()
            .split('/')
            .filter(|part| !part.contains(|one: char| one.is_ascii_digit()))
            .collect();
        parts.retain(|part| {
            !part.is_empty() && *part != "apis" && *part != "namespaces" && *part != NAMESPACE
        });
        *counts.entry(format!("{} {}", write.method, parts.join("/"))).or_default() += 1;
    }
    eprintln!("{counts:?}");
}

async fn make(cluster: &Cluster, namespace: &str, pair: usize) -> anyhow::Result<ImagePrefetch> {
    let object = json!({
        "metadata": {"name": name(pair)},
        "spec": {"images": [format!("registry.example/prefetch:v{pair}")], "allNodes": true},
    });
    let api = Api::<ImagePrefetch>::namespaced(cluster.client.clone(), namespace);
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await
        .context("making an ImagePrefetch")
}

fn name(pair: usize) -> String {
    format!("wide-{pair}")
}

/// The namespace of the floor of a run.
fn floor(pair: usize) -> String {
    format!("floor-{pair}")
}

/// It goes, and with it all that there is of it.
async fn remove(cluster: &Cluster, pair: usize) -> anyhow::Result<()> {
    let api = Api::<ImagePrefetch>::namespaced(cluster.client.clone(), NAMESPACE);
    api.delete(&name(pair), &DeleteParams::background()).await?;
    let events = Api::<Event>::namespaced(cluster.client.clone(), NAMESPACE);
    events.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let sets = Api::<NodeImageSet>::all(cluster.client.clone());
    let start = Instant::now();
    while !sets.list_metadata(&ListParams::default()).await?.items.is_empty() {
        ensure!(start.elapsed() < PATIENCE, "NodeImageSets stay");
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

/// Objects like those of the run. NodeImageSets are made anew under the same names.
async fn fresh(cluster: &Cluster, pair: usize) -> anyhow::Result<Fresh> {
    let namespace = floor(pair);
    cluster.make_namespace(&namespace).await?;
    let stem = format!("floor-{pair}-");
    let api = Api::<NodeImage>::all(cluster.client.clone());
    let made = (0..NODES).map(|node| make_node_image(&api, format!("{stem}{node:05}")));
    let mut objects: HashMap<String, Arc<Mutex<Identity>>> =
        stream::iter(made).buffer_unordered(CONNECTIONS).try_collect().await?;
    let object = make(cluster, &namespace, pair).await?.metadata;
    let identity = Identity { uid: object.uid, resource_version: object.resource_version, generation: 1 };
    let path = format!("/apis/ofen.cybozu.io/v1/namespaces/{namespace}/imageprefetches/{}", name(pair));
    objects.insert(path, Arc::new(Mutex::new(identity)));
    Ok(Fresh { nodes: (NODE, stem), namespace: (NAMESPACE, namespace), objects })
}

async fn make_node_image(
    api: &Api<NodeImage>,
    name: String,
) -> anyhow::Result<(String, Arc<Mutex<Identity>>)> {
    let mut labels = labels(&name);
    labels[FAKE_NODE_IMAGE_LABEL] = json!("true");
    let object = json!({"metadata": {"name": name, "labels": labels}, "spec": {}});
    let made = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let path = format!("/apis/apps.kruise.io/v1beta1/nodeimages/{name}");
    let identity = Identity { uid: made.metadata.uid, resource_version: None, generation: 1 };
    Ok((path, Arc::new(Mutex::new(identity))))
}

/// What the floor has made goes, first of all what the controller of the next run would act on.
async fn clear(cluster: &Cluster, pair: usize) -> anyhow::Result<()> {
    let (params, all) = (DeleteParams::default(), ListParams::default());
    let prefetches = Api::<ImagePrefetch>::namespaced(cluster.client.clone(), &floor(pair));
    prefetches.delete(&name(pair), &params).await?;
    Api::<NodeImageSet>::all(cluster.client.clone()).delete_collection(&params, &all).await?;
    let fakes = ListParams::default().labels(FAKE_NODE_IMAGE_LABEL);
    Api::<NodeImage>::all(cluster.client.clone()).delete_collection(&params, &fakes).await?;
    Ok(())
}

fn f64_of(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
