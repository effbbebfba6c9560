//! Jobs on a whole cluster: how long they take, how many writes they need, and how near that is to the floor.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, NodeImage};
use prewarm_api::names::FAKE_NODE_IMAGE_LABEL;
use prewarm_testkit::figure::{Bar, Figures, median};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::agents::WRITERS;
use super::cluster::{Cluster, Counts, NAMESPACE, NODE, Running, labels};
use super::floor::{Fresh, Identity, replay};
use super::jobs::{self, finished};
use super::record::Write;

/// The number of requests that the controller and the agents send at once.
const CONNECTIONS: usize = 32 + WRITERS;
/// How many pairs of a run and its floor are compared.
const PAIRS: usize = 3;
/// The images of a list.
const IMAGES: usize = 50;
/// How long the cluster is left alone before a run, so that a status counts as the first after a quiet second.
const QUIET: Duration = Duration::from_secs(2);

/// A rolling job: 200 nodes, 10 at a time, pulls of one second.
pub async fn rolling(cluster: &Cluster, figures: &mut Figures) -> anyhow::Result<()> {
    let (nodes, parallelism, pull) = (cluster.nodes, 10, Duration::from_secs(1));
    let running = cluster.start(pull).await?;
    let run = run_job(cluster, "rolling", "registry.example/rolling:v1", parallelism).await?;
    let ideal = f64_of(nodes / parallelism) * pull.as_secs_f64();
    let word = cluster.word();
    let figure = format!("{nodes} nodes, 10 at a time, 1 s pulls / {ideal} s ({word})");
    figures.add(&figure, run.seconds / ideal, "×", Bar::AtMost(1.1));
    let statuses = f64_of_count(&run.counts, "imagepulljobs/status");
    let figure = format!("status writes of that job, which took {:.1} s ({word})", run.seconds);
    figures.add(&figure, statuses, "", Bar::AtMost(run.seconds.floor() + 2.0));
    running.stop().await
}

/// Everything at once: 1000 nodes, instant pulls; then the job is deleted.
pub async fn wide(cluster: &Cluster, figures: &mut Figures) -> anyhow::Result<()> {
    let (mut made, mut deleted) = (Vec::new(), Vec::new());
    let mut most = [0.0; 2];
    let pairs = if cluster.is_real() { PAIRS } else { 1 };
    for pair in 0..pairs {
        let (name, image) = (format!("wide-{pair}"), format!("registry.example/wide:v{pair}"));
        let running = cluster.start(Duration::ZERO).await?;
        let run = run_job(cluster, &name, &image, cluster.nodes).await?;
        running.agents.wait("every report", |totals| totals.reported == cluster.nodes).await?;
        let gone = delete_job(cluster, &running, &name).await?;
        running.stop().await?;
        for (most, run) in most.iter_mut().zip([&run, &gone]) {
            *most = f64::max(*most, per_node(cluster, &run.counts));
        }
        if cluster.is_real() {
            let mut fresh =
                Floor::make(cluster, pair, "imagepulljobs", &jobs::job(&name, &image, cluster.nodes)).await?;
            made.push(run.seconds / fresh.replay(cluster, &run.writes).await?);
            deleted.push(gone.seconds / fresh.replay(cluster, &gone.writes).await?);
            fresh.remove(cluster).await?;
        }
    }
    let (nodes, word) = (cluster.nodes, cluster.word());
    figures.add(&format!("{nodes} nodes at once: writes per node ({word})"), most[0], "", Bar::AtMost(2.01));
    figures.add(&format!("the same, job deleted: writes per node ({word})"), most[1], "", Bar::AtMost(2.01));
    if cluster.is_real() {
        let bar = Bar::AtMost(1.5);
        figures.add(
            &format!("{nodes} nodes at once, instant pulls / floor ({word})"),
            median(made),
            "×",
            bar,
        );
        figures.add(&format!("the same, job deleted: tags gone / floor ({word})"), median(deleted), "×", bar);
    }
    Ok(())
}

/// 50 images on 200 nodes, as one list; then the list is deleted.
pub async fn list(cluster: &Cluster, figures: &mut Figures) -> anyhow::Result<()> {
    let (mut made, mut deleted) = (Vec::new(), Vec::new());
    let (mut most, mut most_patches) = (0.0, 0.0);
    let pairs = if cluster.is_real() { PAIRS } else { 1 };
    for pair in 0..pairs {
        let name = format!("list-{pair}");
        let object = jobs::list(&name, &images(pair), cluster.nodes);
        let running = cluster.start(Duration::ZERO).await?;
        let run = run(cluster, "imagelistpulljobs", &object, async || {
            finished::<ImageListPullJob>(&cluster.client, &name, IMAGES).await
        })
        .await?;
        most = f64::max(most, per_node(cluster, &run.counts));
        let gone = delete_list(cluster, &running, &name).await?;
        most_patches =
            f64::max(most_patches, f64_of_count(&gone.counts, "nodeimages") / f64_of(cluster.nodes));
        running.stop().await?;
        if cluster.is_real() {
            let mut fresh = Floor::make(cluster, 10 + pair, "imagelistpulljobs", &object).await?;
            made.push(run.seconds / fresh.replay(cluster, &run.writes).await?);
            deleted.push(gone.seconds / fresh.replay(cluster, &gone.writes).await?);
            fresh.remove(cluster).await?;
        }
    }
    let (nodes, word) = (cluster.nodes, cluster.word());
    figures.add(
        &format!("{IMAGES} images on {nodes} nodes: writes per node ({word})"),
        most,
        "",
        Bar::AtMost(8.0),
    );
    let figure = format!("the same, list deleted: NodeImage patches per node ({word})");
    figures.add(&figure, most_patches, "", Bar::AtMost(1.05));
    if cluster.is_real() {
        let figure = format!("{IMAGES} images on {nodes} nodes, one list / floor ({word})");
        figures.add(&figure, median(made), "×", Bar::AtMost(1.5));
        let figure = format!("the same, list deleted: tags gone / floor ({word})");
        figures.add(&figure, median(deleted), "×", Bar::AtMost(1.5));
    }
    Ok(())
}

/// What the controller writes for a list of 50 images on one node: little more than two writes for each child.
pub async fn small_list(cluster: &Cluster, figures: &mut Figures) -> anyhow::Result<()> {
    let object = jobs::list("small", &images(0), cluster.nodes);
    let running = cluster.start(Duration::ZERO).await?;
    let run = run(cluster, "imagelistpulljobs", &object, async || {
        finished::<ImageListPullJob>(&cluster.client, "small", IMAGES).await?;
        // The list may be over before the last of its children has said so.
        tokio::time::sleep(QUIET).await;
        anyhow::Ok(())
    })
    .await?;
    running.stop().await?;
    // The agent's reports are not the controller's, and the list itself is the user's.
    let all = run.writes.iter().filter(|write| write.is_taken());
    let own =
        all.filter(|write| !write.place().ends_with("/status") || !write.place().contains("/nodeimages/"));
    let figure = format!("{IMAGES} images on one node: the controller's writes ({})", cluster.word());
    figures.add(&figure, f64_of(own.count()), "", Bar::AtMost(110.0));
    Ok(())
}

/// The images of a list.
fn images(version: usize) -> Vec<String> {
    (0..IMAGES).map(|number| format!("registry.example/team/application-{number}:v{version}")).collect()
}

/// What a run took.
struct Run {
    seconds: f64,
    writes: Vec<Write>,
    counts: Counts,
}

async fn run_job(cluster: &Cluster, name: &str, image: &str, parallelism: usize) -> anyhow::Result<Run> {
    let object = jobs::job(name, image, parallelism);
    run(cluster, "imagepulljobs", &object, async || {
        finished::<ImagePullJob>(&cluster.client, name, cluster.nodes).await
    })
    .await
}

/// From the creation of the job to its end.
async fn run(
    cluster: &Cluster,
    plural: &str,
    object: &Value,
    end: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Run> {
    tokio::time::sleep(QUIET).await;
    let before = cluster.counts().await?;
    cluster.recorder.take();
    let start = Instant::now();
    cluster.make(plural, object).await?;
    end().await?;
    conclude(cluster, start, before).await
}

async fn delete_job(cluster: &Cluster, running: &Running, name: &str) -> anyhow::Result<Run> {
    let api = Api::<ImagePullJob>::namespaced(cluster.client.clone(), NAMESPACE);
    let delete = async {
        api.delete(name, &DeleteParams::background()).await.context("deleting the job")?;
        Ok(())
    };
    run_deletion(cluster, running, delete).await
}

/// There is no garbage collector here, so its part is done beside.
async fn delete_list(cluster: &Cluster, running: &Running, name: &str) -> anyhow::Result<Run> {
    let api = Api::<ImageListPullJob>::namespaced(cluster.client.clone(), NAMESPACE);
    let delete = async {
        api.delete(name, &DeleteParams::background()).await.context("deleting the list")?;
        delete_children(&cluster.client).await
    };
    run_deletion(cluster, running, delete).await
}

/// From the deletion of a job or a list until specs and statuses no longer mention it.
async fn run_deletion(
    cluster: &Cluster,
    running: &Running,
    delete: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Run> {
    tokio::time::sleep(QUIET).await;
    let before = cluster.counts().await?;
    cluster.recorder.take();
    let start = Instant::now();
    let end = running.agents.wait("the end of all tags", |totals| totals.tags + totals.reported == 0);
    tokio::try_join!(delete, end)?;
    conclude(cluster, start, before).await
}

async fn conclude(cluster: &Cluster, start: Instant, before: Option<Counts>) -> anyhow::Result<Run> {
    let seconds = start.elapsed().as_secs_f64();
    let writes = cluster.recorder.take();
    let counts = cluster.written(before, &writes).await?;
    eprintln!("{seconds:.2} s, {counts:?}");
    Ok(Run { seconds, writes, counts })
}

/// What the garbage collector does when a list is gone.
async fn delete_children(client: &Client) -> anyhow::Result<()> {
    let api = Api::<ImagePullJob>::namespaced(client.clone(), NAMESPACE);
    for child in api.list_metadata(&ListParams::default()).await?.items {
        let gone = api.delete(&child.name_any(), &DeleteParams::background()).await;
        gone.map(drop).or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })?;
    }
    Ok(())
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Writes to NodeImages, spec and status, for each node.
fn per_node(cluster: &Cluster, counts: &Counts) -> f64 {
    (f64_of_count(counts, "nodeimages") + f64_of_count(counts, "nodeimages/status")) / f64_of(cluster.nodes)
}

/// Fresh objects that look like those of the run.
struct Floor(Fresh);

impl Floor {
    async fn make(cluster: &Cluster, number: usize, plural: &str, job: &Value) -> anyhow::Result<Self> {
        let namespace = format!("floor-{number}");
        cluster.make_namespace(&namespace).await?;
        let stem = format!("floor-{number}-");
        let api = Api::<NodeImage>::all(cluster.client.clone());
        let made = (0..cluster.nodes).map(|node| make_node_image(&api, format!("{stem}{node:05}")));
        let mut objects: HashMap<String, Arc<Mutex<Identity>>> =
            stream::iter(made).buffer_unordered(CONNECTIONS).try_collect().await?;
        let path = format!("/apis/apps.kruise.io/v1beta1/namespaces/{namespace}/{plural}");
        let request = http::Request::post(&path).header("content-type", "application/json");
        let made: Value = cluster.client.request(request.body(serde_json::to_vec(job)?)?).await?;
        let text = |field: &str| made["metadata"][field].as_str().map(str::to_owned);
        let name = text("name").context("a job has a name")?;
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        let identity = Identity { uid, resource_version, generation: 1 };
        objects.insert(format!("{path}/{name}"), Arc::new(Mutex::new(identity)));
        Ok(Self(Fresh { nodes: (NODE, stem), namespace: (NAMESPACE, namespace), objects }))
    }

    async fn replay(&mut self, cluster: &Cluster, writes: &[Write]) -> anyhow::Result<f64> {
        // Creating the new objects has opened as many connections as are needed, so none is opened while the time is
        // measured.
        let took = replay(&cluster.client, writes, &mut self.0, CONNECTIONS).await?;
        eprintln!("{:.2} s for {} writes at the floor", took.as_secs_f64(), writes.len());
        Ok(took.as_secs_f64())
    }

    async fn remove(self, cluster: &Cluster) -> anyhow::Result<()> {
        let api = Api::<NodeImage>::all(cluster.client.clone());
        let fakes = ListParams::default().labels(FAKE_NODE_IMAGE_LABEL);
        api.delete_collection(&DeleteParams::default(), &fakes).await?;
        Ok(())
    }
}

async fn make_node_image(
    api: &Api<NodeImage>,
    name: String,
) -> anyhow::Result<(String, Arc<Mutex<Identity>>)> {
    let mut labels = labels(&name);
    labels[FAKE_NODE_IMAGE_LABEL] = json!("true");
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": { "name": name, "labels": labels,
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid() }] }, "spec": {},
    });
    let made = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let path = format!("/apis/apps.kruise.io/v1beta1/nodeimages/{name}");
    let identity = Identity { uid: made.metadata.uid, resource_version: None, generation: 1 };
    Ok((path, Arc::new(Mutex::new(identity))))
}

/// A UID of the usual length; there is no garbage collector here.
fn uid() -> &'static str {
    "0b7e3a52-8f0c-4d2b-9c55-3f1f6f2f9a10"
}

fn f64_of_count(counts: &Counts, what: &str) -> f64 {
    counts.get(what).map_or(0.0, |count| f64_of(usize::try_from(*count).unwrap_or(usize::MAX)))
}

fn f64_of(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
