//! A NodeImage that comes close to what a real etcd stores: a patch that is too large is answered with a 500, and whoever
//! asks too much is found, so that everybody else's grants arrive.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use prewarm_api::crd;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_api::names::FAKE_NODE_IMAGE_LABEL;
use prewarm_clock::MachineClock;
use prewarm_controller::config::Config;
use prewarm_controller::lease::Term;
use prewarm_controller::{Controller, lead};
use prewarm_testkit::{ApiServer, install, real_tests, wait};
use serde_json::{Value, json};
use tokio::sync::oneshot;

real_tests! {
    the_grants_of_others_arrive_although_etcd_takes_no_larger_object,
}

const NODE: &str = "full";
const LARGE_JOBS: usize = 50;

/// A status of about 1.4 MiB; etcd takes 1.5 MiB.
fn large_status() -> Value {
    let tag = |number: usize| json!({"tag": format!("old-{number}"), "phase": "Failed", "message": "x".repeat(32_000)});
    let tags: Vec<Value> = (0..45).map(tag).collect();
    json!({"status": {"desired": 45, "imageStatuses": {"old": {"tags": tags}}}})
}

async fn make_node_image(client: &Client) -> anyhow::Result<Api<NodeImage>> {
    let api = Api::<NodeImage>::all(client.clone());
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "spec": {},
        "metadata": {"name": NODE, "labels": {FAKE_NODE_IMAGE_LABEL: "true"}},
    });
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    api.patch_status(NODE, &PatchParams::default(), &Patch::Merge(large_status())).await?;
    Ok(api)
}

async fn make_job(api: &Api<ImagePullJob>, name: &str, annotations: Value) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": name},
        "spec": {"image": format!("{name}:1"), "selector": {"names": [NODE]}, "completionPolicy": {"type": "Never"},
            "sandboxConfig": {"annotations": annotations}},
    });
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

async fn the_grants_of_others_arrive_although_etcd_takes_no_larger_object() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client()?;
    install::definitions(&client, crd::all()).await?;
    let node_images = make_node_image(&client).await?;
    let jobs = Api::<ImagePullJob>::namespaced(client.clone(), &server.namespace().await?);
    for number in 0..LARGE_JOBS {
        make_job(&jobs, &format!("large-{number:02}"), json!({"note": "x".repeat(4000)})).await?;
    }
    make_job(&jobs, "small", json!({})).await?;
    let (controller, writer) = Controller::new("size", Config::default(), client, Arc::new(MachineClock));
    let (stop, stopped) = oneshot::channel::<()>();
    let leading = tokio::spawn(lead(controller, Term::endless(), async move { drop(stopped.await) }));
    let writing = tokio::spawn(writer.run());
    let granted = async || {
        let images = node_images.get(NODE).await?.spec.images;
        Ok(images.contains_key("small").then_some(images.len()))
    };
    let count = wait::until("the small job's grant", granted).await?;
    let failed = async || {
        let small = jobs.get("small").await?.status.unwrap_or_default();
        let mut failed = 0;
        for job in jobs.list(&kube::api::ListParams::default()).await? {
            failed += job.status.map_or(0, |status| status.failed);
        }
        Ok((failed > 0 && small.active == 1 && small.failed == 0).then_some(failed))
    };
    let failed = wait::until("the others to learn that there is no room", failed).await?;
    println!("counted: {count} entries written, {failed} refused");
    ensure!(usize::try_from(failed)? < LARGE_JOBS, "some of the large ones fit");
    drop(stop);
    tokio::time::timeout(Duration::from_secs(30), leading).await??;
    writing.abort();
    Ok(())
}
