//! What a test may expect of nodes with CRI-O, and how they differ from those with containerd.

use anyhow::ensure;
use prewarm_testkit::image::{Artifact, Image, Layer};
use prewarm_testkit::{Node, Registry, Runtime, real_tests};
use tonic::Code;

const MIB: usize = 1024 * 1024;

real_tests! {
    a_node_pulls_through_cri_and_its_bytes_are_counted,
    names_of_any_usual_host_lead_to_the_registry_by_default,
    tags_are_removed_one_by_one,
    several_nodes_of_both_kinds_run_at_once,
}

fn small_image(seed: &str) -> Artifact {
    Image::new(seed).layer(Layer::of(MIB / 4)).build()
}

async fn a_node_pulls_through_cri_and_its_bytes_are_counted() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image = Image::new("shop").layers(3, Layer::of(2 * MIB)).build();
    registry.push("shop/web", &["v1"], &image).await?;
    let node = Node::start_crio(&registry).await?;
    ensure!(node.kind() == Runtime::Crio && node.ctr(["version"]).await.is_err());
    let cri = node.cri()?;
    ensure!(cri.version().await? == ("cri-o".to_owned(), "1.34.0".to_owned()), "{:?}", cri.version().await?);
    let reference = registry.reference("shop/web", "v1");
    let pulled = cri.pull(&reference, None).await?;
    ensure!(pulled == format!("{}/shop/web@{}", registry.host(), image.digest()), "{pulled}");
    let received = node.bytes_received()?;
    ensure!((image.size()..image.size() * 108 / 100 + 50_000).contains(&received), "{received}");
    ensure!(node.images().await? == [reference]);
    let missing = cri.pull("registry.example/nothing:1", None).await;
    ensure!(missing.as_ref().is_err_and(|status| status.code() == Code::Unknown), "{missing:?}");
    Ok(())
}

async fn names_of_any_usual_host_lead_to_the_registry_by_default() -> anyhow::Result<()> {
    let (usual, other) = tokio::try_join!(Registry::start(), Registry::start())?;
    usual.push("library/a", &["1"], &small_image("a")).await?;
    other.push("library/b", &["1"], &small_image("b")).await?;
    let node = Node::start_crio(&usual).await?;
    for name in ["registry.example/library/a:1", "a:1", "quay.io/library/a:1"] {
        node.pull(name).await?;
    }
    ensure!(node.pull("other.example/library/b:1").await.is_err());
    node.lead("other.example", &other)?;
    node.pull("other.example/library/b:1").await?;
    let images = node.images().await?;
    ensure!(images.contains(&"docker.io/library/a:1".to_owned()) && images.len() == 4, "{images:?}");
    Ok(())
}

async fn tags_are_removed_one_by_one() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image = small_image("tags");
    registry.push("shop/web", &["v1", "stable"], &image).await?;
    let node = Node::start_crio(&registry).await?;
    for tag in ["v1", "stable"] {
        node.pull(&registry.reference("shop/web", tag)).await?;
    }
    node.remove(&registry.reference("shop/web", "v1")).await?;
    ensure!(node.images().await? == [registry.reference("shop/web", "stable")]);
    node.remove(&registry.reference("shop/web", "stable")).await?;
    ensure!(node.images().await?.is_empty());
    let by_digest = format!("{}/shop/web@{}", registry.host(), image.digest());
    node.pull(&by_digest).await?;
    ensure!(node.images().await? == [by_digest]);
    Ok(())
}

async fn several_nodes_of_both_kinds_run_at_once() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &small_image("several")).await?;
    let (one, two) = tokio::try_join!(Node::start_crio(&registry), Node::start_crio(&registry))?;
    let three = Node::start(&registry).await?;
    let reference = registry.reference("shop/web", "v1");
    one.pull(&reference).await?;
    ensure!(two.images().await?.is_empty(), "two nodes share their images");
    two.pull(&reference).await?;
    three.cri()?.pull(&reference, None).await?;
    for node in [&one, &two, &three] {
        ensure!(node.images().await? == [reference.as_str()], "{:?}", node.images().await?);
    }
    Ok(())
}
