//! How fast a BroadcastJob makes its pods, one on each of a thousand nodes of a real API server, compared with the
//! floor: the same requests sent again by a client that does nothing else.

#[path = "controller/agents.rs"]
mod agents;
#[path = "controller/cluster.rs"]
#[expect(dead_code, reason = "shared with the benchmark of the controller, which needs more of it")]
mod cluster;
#[path = "controller/floor.rs"]
mod floor;
#[path = "controller/record.rs"]
#[expect(dead_code, reason = "shared with the benchmark of cron jobs, which needs more of it")]
mod record;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use prewarm_api::kruise::BroadcastJob;
use prewarm_testkit::figure::{Bar, Figures, median};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use cluster::{Cluster, NAMESPACE, NODE};
use floor::{Fresh, Identity, replay};
use record::Write;

const NODES: usize = 1000;
/// How many pairs of a run and its floor are compared.
const PAIRS: usize = 3;
/// The number of requests that the controller sends at once.
const CONNECTIONS: usize = 32;
/// The time limit.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long the cluster is left alone before a run, and after it to count further writes.
const QUIET: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_millis(2);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    if let Err(reason) = prewarm_bed::enter() {
        bail!("cannot measure on a real API server: {reason}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> anyhow::Result<ExitCode> {
    let mut figures = Figures::new("broadcast");
    let cluster = Cluster::real(NODES).await?;
    make_account(&cluster, NAMESPACE).await?;
    let (mut ratios, mut writes, mut late) = (Vec::new(), 0, 0);
    for pair in 0..PAIRS {
        let running = cluster.start(Duration::ZERO).await?;
        tokio::time::sleep(QUIET).await;
        let job = job(&format!("sweep-{pair}"));
        let (seconds, made) = make_pods(&cluster, &job).await?;
        // The remaining status writes come within a second or two.
        tokio::time::sleep(QUIET).await;
        writes = writes.max(made.len() + cluster.recorder.take().len());
        tokio::time::sleep(QUIET).await;
        late += cluster.recorder.take().len();
        // At the floor, nobody else writes to the job.
        running.stop().await?;
        let mut fresh = fresh(&cluster, pair, &job).await?;
        let floor = replay(&cluster.client, &made, &mut fresh, CONNECTIONS).await?.as_secs_f64();
        eprintln!("{seconds:.2} s for {} writes, {floor:.2} s at the floor", made.len());
        ratios.push(seconds / floor);
        for namespace in [NAMESPACE, &fresh.namespace.1] {
            remove(&cluster, namespace, &job).await?;
        }
    }
    figures.add("1000 nodes: pods made / floor (real)", median(ratios), "×", Bar::AtMost(1.5));
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let (writes, late) = (writes as f64, late as f64);
    figures.add("writes for those 1000 pods, statuses and events included", writes, "", Bar::AtMost(1010.0));
    figures.add("writes when nothing changes any more", late, "", Bar::AtMost(0.0));
    Ok(figures.close())
}

/// From the creation of the job to the answer for its last pod. Returns the seconds, and what was written.
async fn make_pods(cluster: &Cluster, job: &Value) -> anyhow::Result<(f64, Vec<Write>)> {
    cluster.recorder.take();
    let start = Instant::now();
    cluster.make("broadcastjobs", job).await?;
    while cluster.recorder.taken("/pods") < NODES {
        ensure!(start.elapsed() < PATIENCE, "there are {} pods", cluster.recorder.taken("/pods"));
        tokio::time::sleep(INTERVAL).await;
    }
    Ok((start.elapsed().as_secs_f64(), cluster.recorder.take()))
}

/// A job whose pods do not run. New nodes have a taint until a kubelet reports.
fn job(name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "registry.example/tool:v1"}],
        }}},
    })
}

async fn make_account(cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
    let api = Api::<ServiceAccount>::namespaced(cluster.client.clone(), namespace);
    api.create(&PostParams::default(), &account).await.context("making the account of the pods")?;
    Ok(())
}

/// A namespace with a job like that of the run.
async fn fresh(cluster: &Cluster, pair: usize, job: &Value) -> anyhow::Result<Fresh> {
    let namespace = format!("floor-{pair}");
    cluster.make_namespace(&namespace).await?;
    make_account(cluster, &namespace).await?;
    let api = Api::<BroadcastJob>::namespaced(cluster.client.clone(), &namespace);
    let made = api.create(&PostParams::default(), &serde_json::from_value(job.clone())?).await?;
    let name = made.metadata.name.context("a job has a name")?;
    let path = format!("/apis/apps.kruise.io/v1beta1/namespaces/{namespace}/broadcastjobs/{name}");
    let identity =
        Identity { uid: made.metadata.uid, resource_version: made.metadata.resource_version, generation: 1 };
    let objects = HashMap::from([(path, Arc::new(Mutex::new(identity)))]);
    Ok(Fresh { nodes: (NODE, NODE.to_owned()), namespace: (NAMESPACE, namespace), objects })
}

/// There is no garbage collector here.
async fn remove(cluster: &Cluster, namespace: &str, job: &Value) -> anyhow::Result<()> {
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    let jobs = Api::<BroadcastJob>::namespaced(cluster.client.clone(), namespace);
    jobs.delete(name, &DeleteParams::background()).await?;
    let pods = Api::<Pod>::namespaced(cluster.client.clone(), namespace);
    pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
    Ok(())
}
