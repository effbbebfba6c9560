//! Very many jobs in a large cluster: the controller as a process of its own reads and grants all of them, and keeps its Lease meanwhile.
//!
//! No agent answers, so that nothing but the controller and the API has the machine.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use prewarm_api::kruise::NodeImage;
use prewarm_api::permission::LEASE;
use prewarm_embedded::{Limits, serve};
use prewarm_plan::lease::RENEW_DEADLINE;
use prewarm_testkit::figure::{Bar, Figures};
use prewarm_testkit::measure::{peak_resident_mib, resident_mib};
use prewarm_testkit::process::Process;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::cluster::{Cluster, NAMESPACE, Place, node};
use super::jobs;
use super::large::start_controller;

const NODES: usize = 10_000;
/// Jobs that name one node each.
const NARROW: usize = 4096;
/// Jobs of all nodes.
const WIDE: usize = 64;
/// How many nodes of each of those pull at once.
const AT_ONCE: usize = 100;
/// How many jobs are made at once.
const MADE_AT_ONCE: usize = 16;
/// The time limit for granting all of it.
const PATIENCE: Duration = Duration::from_mins(20);
/// How often the Lease is looked at.
const LOOK: Duration = Duration::from_millis(50);

pub async fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let cluster = Cluster::embedded(NODES).await?;
    let Place::Embedded(server) = &cluster.place else { unreachable!("it was made embedded") };
    let serving = serve(server.clone(), TcpListener::bind("127.0.0.1:0").await?, Limits::default())?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig)?;

    // A job counts the nodes that have a NodeImage.
    let first = start_controller(&kubeconfig, directory.path(), &["--leader-elect=false"])?;
    all_served(&first, &cluster).await?;
    first.stop()?;
    make_jobs(&cluster).await?;

    let leases = Api::<Lease>::namespaced(server.client(), NAMESPACE);
    // Nobody holds it, as after an installation: the first to ask gets it at once.
    leases.create(&PostParams::default(), &free_lease()).await?;
    let (stop, stopped) = watch::channel(());
    let renewals = tokio::spawn(observe_lease(leases, stopped));
    let start = Instant::now();
    let controller = start_controller(&kubeconfig, directory.path(), &[])?;
    let granted = granted(&controller, &cluster).await?;
    let took = start.elapsed();
    drop(stop);
    let Renewals { longest, holders } = renewals.await??;
    let pid = controller.id().context("the controller runs")?;
    let what = format!("{NARROW} jobs of one node and {WIDE} of all, {NODES} nodes");
    println!("{what}: {granted} grants within {:.1} s", took.as_secs_f64());
    let deadline = Bar::AtMost(RENEW_DEADLINE.as_secs_f64());
    figures.add(&format!("{what}: longest time between two renewals"), longest.as_secs_f64(), "s", deadline);
    figures.add(&format!("{what}: leaders"), f64::from(holders), "", Bar::AtMost(1.0));
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

/// Waits until every node has its NodeImage.
async fn all_served(controller: &Process, cluster: &Cluster) -> anyhow::Result<()> {
    let start = Instant::now();
    while cluster.node_images().await? < NODES {
        anyhow::ensure!(start.elapsed() < PATIENCE, "nodes without a NodeImage:\n{}", controller.log_tail());
        tokio::time::sleep(Duration::from_secs(1)).await;
        controller.check()?;
    }
    Ok(())
}

async fn make_jobs(cluster: &Cluster) -> anyhow::Result<()> {
    let narrow = (0..NARROW).map(|number| {
        let mut job = job(&format!("narrow-{number}"), number, 1);
        job["spec"]["selector"] = json!({ "names": [node(number)] });
        job
    });
    let wide = (0..WIDE).map(|number| job(&format!("wide-{number}"), number, AT_ONCE));
    let made = narrow.chain(wide).map(async |job| cluster.make("imagepulljobs", &job).await);
    stream::iter(made).buffer_unordered(MADE_AT_ONCE).try_collect::<()>().await
}

fn job(name: &str, number: usize, parallelism: usize) -> Value {
    let image = format!("registry.example:5000/{name}/application-{number}:v1.2.3");
    jobs::job(name, &image, parallelism)
}

/// Waits until everything that may be granted was: the narrow jobs' nodes, and as many nodes of each wide job as may pull at once.
async fn granted(controller: &Process, cluster: &Cluster) -> anyhow::Result<usize> {
    let wanted = NARROW + WIDE * AT_ONCE;
    let api = Api::<NodeImage>::all(cluster.client.clone());
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_secs(1)).await;
        controller.check()?;
        let images = api.list(&kube::api::ListParams::default()).await?.items;
        let tags = images.iter().flat_map(|object| object.spec.images.values()).map(|image| image.tags.len());
        let granted = tags.sum();
        // A node that does not answer gives its place to another after a while.
        if granted >= wanted {
            return Ok(granted);
        }
    }
    anyhow::bail!("not everything is granted:\n{}", controller.log_tail())
}

fn free_lease() -> Lease {
    Lease {
        metadata: ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec::default()),
    }
}

/// What became of the Lease.
struct Renewals {
    longest: Duration,
    holders: u32,
}

/// Looks at the Lease from the first leader on, until it has to stop.
async fn observe_lease(api: Api<Lease>, mut stop: watch::Receiver<()>) -> anyhow::Result<Renewals> {
    let mut last: Option<(LeaseSpec, Instant)> = None;
    let mut renewals = Renewals { longest: Duration::ZERO, holders: 0 };
    loop {
        let leases = api.list(&kube::api::ListParams::default()).await?.items;
        let spec =
            leases.into_iter().find_map(|lease| lease.spec.filter(|spec| spec.holder_identity.is_some()));
        if let Some(spec) = spec {
            let is_other = |last: &LeaseSpec| last.holder_identity != spec.holder_identity;
            let (known, since) = last.get_or_insert_with(|| (LeaseSpec::default(), Instant::now()));
            renewals.holders += u32::from(is_other(known));
            renewals.longest = renewals.longest.max(since.elapsed());
            if known.renew_time != spec.renew_time {
                (*known, *since) = (spec, Instant::now());
            }
        }
        tokio::select! {
            _ = stop.changed() => return Ok(renewals),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
