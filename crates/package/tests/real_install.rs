//! An installation on real nodes, from the directory of a release: pods under kubelets with the shipped security
//! settings, and what a cluster does to them.

#[path = "real_install/installation.rs"]
mod installation;
#[path = "shared/release.rs"]
mod release;

use anyhow::{Context as _, ensure};
use prewarm_testkit::image::Layer;
use prewarm_testkit::{Pod, Runtime, real_tests, wait, workload};

use installation::Installation;

real_tests! {
    an_installation_warms_nodes_and_goes_on_through_what_happens_to_it,
    an_installation_without_helm_is_upgraded_says_what_it_lacks_and_goes_in_any_order,
}

/// The size of an image, far from what all else on the cable amounts to.
const IMAGE_BYTES: usize = 20_000_000;
const ALL_ELSE: u64 = 2_000_000;
/// Bits a second, with which such an image takes twenty seconds.
const SLOW: u64 = 8_000_000;

async fn an_installation_warms_nodes_and_goes_on_through_what_happens_to_it() -> anyhow::Result<()> {
    let runtimes = [Runtime::Containerd, Runtime::Containerd, Runtime::Crio];
    let mut installation = Installation::of_chart(&runtimes).await?;
    pods_start_without_a_byte_fetched(&installation).await?;
    the_next_leader_goes_on(&installation).await?;
    agents_are_exchanged_while_they_pull(&installation).await?;
    a_node_that_joins_is_served(&mut installation).await?;
    installation.prefetch("fifth").await?;
    the_jobs_go_before_the_controller(&installation, "fourth").await
}

async fn an_installation_without_helm_is_upgraded_says_what_it_lacks_and_goes_in_any_order()
-> anyhow::Result<()> {
    let installation = Installation::of_last_release(&[Runtime::Containerd, Runtime::Crio]).await?;
    installation.warm("first").await?;
    installation.bring_up_to_date().await?;
    installation.check_at_last().await?;
    installation.warm("second").await?;
    installation.private("private", "first").await?;
    closed_sockets_are_reported(&installation).await?;
    the_controller_goes_before_the_jobs(&installation, "second").await
}

async fn closed_sockets_are_reported(installation: &Installation) -> anyhow::Result<()> {
    installation.close_sockets().await?;
    // At first the new pods are only being created, which is the reason then.
    let mut last = String::new();
    let waited = wait::until("the reason why no agent is ready", async || {
        let complaint = installation.check().await.err().context("nothing is wrong, says prewarm check")?;
        last = format!("{complaint:#}");
        let is_said = last.contains("no agent is ready on") && last.contains("ermission denied");
        Ok(is_said.then_some(()))
    });
    waited.await.with_context(|| format!("prewarm check says\n{last}"))
}

/// Whoever deletes everything at once leaves a job whose Secret nobody cleans up. Every node has an image.
async fn the_controller_goes_before_the_jobs(installation: &Installation, image: &str) -> anyhow::Result<()> {
    let endless = serde_json::json!({"completionPolicy": {"type": "Never"}});
    installation.pull("endless", "shop/first", endless).await?;
    installation.begin_to_uninstall().await?;
    installation.controllers_gone().await?;
    installation.finish().await?;
    only_images_are_left(installation, image).await
}

async fn pods_start_without_a_byte_fetched(installation: &Installation) -> anyhow::Result<()> {
    let report = installation.check_at_last().await?;
    ensure!(report.contains("3 of 3"), "prewarm check says\n{report}");
    installation.warm("first").await?;
    let (cluster, namespace) = (&installation.cluster, installation.cluster.namespace().await?);
    for (number, node) in cluster.nodes.iter().enumerate() {
        let before = node.bytes_received()?;
        let pod = Pod::new(&format!("web-{number}"), "registry.example/shop/first:v1").on(node);
        pod.make(cluster.server.client()?, &namespace).await?.ready().await?;
        let fetched = node.bytes_received()? - before;
        ensure!(fetched < ALL_ELSE, "{} received {fetched} bytes for a warm image", node.name());
    }
    Ok(())
}

async fn the_next_leader_goes_on(installation: &Installation) -> anyhow::Result<()> {
    let leader = installation.leader().await?;
    installation
        .kubectl(&["delete", "pod", &leader, "-n", "prewarm-system", "--grace-period=0", "--force"])
        .await?;
    installation.warm("second").await?;
    ensure!(installation.leader().await? != leader, "{leader} is gone and still leads");
    Ok(())
}

async fn agents_are_exchanged_while_they_pull(installation: &Installation) -> anyhow::Result<()> {
    for node in &installation.cluster.nodes {
        node.slow(SLOW)?;
    }
    installation.begin("third").await?;
    installation.pulls_everywhere("third").await?;
    installation.replace_agents().await?;
    for node in &installation.cluster.nodes {
        node.restore()?;
    }
    installation.ends_well("third").await
}

async fn a_node_that_joins_is_served(installation: &mut Installation) -> anyhow::Result<()> {
    let node = installation.cluster.node(Runtime::Containerd).await?;
    installation.cluster.nodes.push(node);
    installation.agents_ready().await?;
    installation.warm("fourth").await
}

/// The order that `docs/install.md` describes, while one job has no end and another with a Secret is at work. Every node has an image.
async fn the_jobs_go_before_the_controller(installation: &Installation, image: &str) -> anyhow::Result<()> {
    let endless = serde_json::json!({"completionPolicy": {"type": "Never"}});
    installation.pull("endless", &format!("shop/{image}"), endless).await?;
    for node in &installation.cluster.nodes {
        node.slow(SLOW)?;
    }
    push(installation, "sixth").await?;
    installation.begin_private("private", "sixth").await?;
    installation.pulls_everywhere("sixth").await?;
    ensure!(installation.has_copies().await?, "the job's Secret was not copied");
    installation.delete_jobs().await?;
    ensure!(!installation.has_copies().await?, "a copy of a Secret outlived its job");
    for node in &installation.cluster.nodes {
        node.restore()?;
    }
    installation.uninstall().await?;
    only_images_are_left(installation, image).await
}

/// Neither namespaces nor definitions are left, and every node still has an image.
async fn only_images_are_left(installation: &Installation, image: &str) -> anyhow::Result<()> {
    let mut last = String::new();
    let waited = wait::until("nothing to be left", async || {
        last = installation.kubectl(&["get", "namespaces,crds", "-o", "name"]).await?;
        let is_ours = |line: &str| ["prewarm-", "kruise", "ofen"].iter().any(|part| line.contains(part));
        Ok((!last.lines().any(is_ours)).then_some(()))
    });
    waited.await.with_context(|| format!("there is\n{last}"))?;
    let name = format!("shop/{image}");
    for node in &installation.cluster.nodes {
        let images = node.images().await?;
        ensure!(images.iter().any(|one| one.contains(&name)), "{} has only {images:?}", node.name());
    }
    Ok(())
}

/// An image that runs, of this name.
async fn push(installation: &Installation, name: &str) -> anyhow::Result<()> {
    let image = workload::image(name)?.layer(Layer::of(IMAGE_BYTES)).build();
    installation.cluster.registry.push(&format!("shop/{name}"), &["v1"], &image).await
}
