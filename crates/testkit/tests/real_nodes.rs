//! What a test may expect of nodes, the registry and generated images.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use prewarm_testkit::image::{Artifact, Image, Layer, index};
use prewarm_testkit::{Node, Registry, Runtime, real_tests};

const MIB: usize = 1024 * 1024;

real_tests! {
    two_nodes_pull_the_same_image_and_their_bytes_are_counted,
    an_index_gives_each_node_its_own_platform,
    a_node_keeps_its_connection_while_others_join,
    one_image_has_several_tags,
    every_name_leads_to_the_registry_by_default,
    a_missing_image_is_an_error,
    a_killed_node_comes_back_with_its_images,
    a_frozen_node_pulls_after_the_thaw,
    a_stopped_registry_fails_pulls_until_it_is_back,
    no_packet_leaves_the_bed,
    a_name_that_nobody_knows_fails_at_once,
}

fn small_image(seed: &str) -> Artifact {
    Image::new(seed).layer(Layer::of(MIB / 4)).build()
}

/// Whether the node received the image once: the payload, and not much more for requests and headers.
fn received_once(bytes: u64, artifact: &Artifact) -> bool {
    (artifact.size()..artifact.size() * 108 / 100 + 50_000).contains(&bytes)
}

async fn two_nodes_pull_the_same_image_and_their_bytes_are_counted() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image =
        Image::new("shop").layers(3, Layer::of(4 * MIB)).layer(Layer::of(8 * MIB).compressible(0.75)).build();
    registry.push("shop/web", &["v1"], &image).await?;
    let reference = registry.reference("shop/web", "v1");
    let (one, other) = tokio::try_join!(Node::start(&registry), Node::start(&registry))?;
    ensure!(one.bytes_received()? < 10_000, "a node that pulls nothing received {}", one.bytes_received()?);
    one.pull(&reference).await?;
    ensure!(received_once(one.bytes_received()?, &image), "{} of {}", one.bytes_received()?, image.size());
    ensure!(other.bytes_received()? < 10_000, "the other node received {}", other.bytes_received()?);
    other.pull(&reference).await?;
    ensure!(
        received_once(other.bytes_received()?, &image),
        "{} of {}",
        other.bytes_received()?,
        image.size()
    );
    for node in [&one, &other] {
        ensure!(node.images().await? == [reference.as_str()]);
    }
    Ok(())
}

async fn an_index_gives_each_node_its_own_platform() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image = |architecture| Image::new(architecture).architecture(architecture).layer(Layer::of(2 * MIB));
    let both = index(&[image("amd64"), image("arm64")]);
    registry.push("shop/both", &["v1"], &both).await?;
    let node = Node::start(&registry).await?;
    node.pull(&registry.reference("shop/both", "v1")).await?;
    let received = node.bytes_received()?;
    ensure!(
        received < both.size() * 6 / 10,
        "one of two platforms is half, but {received} of {}",
        both.size()
    );
    node.pull(&format!("{}/shop/both@{}", registry.host(), both.digest())).await?;
    ensure!(node.bytes_received()? - received < 100_000, "the second pull fetched layers again");
    Ok(())
}

async fn a_node_keeps_its_connection_while_others_join() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &small_image("first")).await?;
    registry.push("shop/web", &["v2"], &small_image("second")).await?;
    let node = Node::start(&registry).await?;
    node.pull(&registry.reference("shop/web", "v1")).await?;
    let start = || Node::start(&registry);
    let _others = tokio::try_join!(start(), start(), start(), start())?;
    let reference = registry.reference("shop/web", "v2");
    tokio::time::timeout(Duration::from_secs(15), node.pull(&reference))
        .await
        .context("the node was cut off")?
}

async fn one_image_has_several_tags() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1", "stable"], &small_image("tags")).await?;
    let node = Node::start(&registry).await?;
    for tag in ["v1", "stable"] {
        node.pull(&registry.reference("shop/web", tag)).await?;
    }
    ensure!(node.images().await?.len() == 2);
    node.remove(&registry.reference("shop/web", "v1")).await?;
    ensure!(node.images().await? == [registry.reference("shop/web", "stable")]);
    Ok(())
}

async fn every_name_leads_to_the_registry_by_default() -> anyhow::Result<()> {
    let (usual, other) = tokio::try_join!(Registry::start(), Registry::start())?;
    usual.push("library/a", &["1"], &small_image("a")).await?;
    other.push("library/b", &["1"], &small_image("b")).await?;
    let node = Node::start(&usual).await?;
    node.pull("registry.example/library/a:1").await?;
    ensure!(node.pull("other.example/library/b:1").await.is_err());
    node.lead("other.example", &other)?;
    node.pull("other.example/library/b:1").await
}

async fn a_missing_image_is_an_error() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let node = Node::start(&registry).await?;
    let error = node.pull("registry.example/nothing:1").await.expect_err("there is no such image");
    ensure!(format!("{error:#}").contains("not found"), "{error:#}");
    Ok(())
}

async fn a_killed_node_comes_back_with_its_images() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &small_image("killed")).await?;
    for runtime in Runtime::ALL {
        let node = Node::configure().runtime(runtime).start(&registry).await?;
        node.pull(&registry.reference("shop/web", "v1")).await?;
        let before = node.images().await?;
        node.runtime.kill()?;
        ensure!(node.images().await.is_err());
        node.runtime.spawn()?;
        node.ready().await?;
        ensure!(node.images().await? == before);
        node.restart().await?;
        ensure!(node.images().await? == before);
    }
    Ok(())
}

async fn a_frozen_node_pulls_after_the_thaw() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &small_image("frozen")).await?;
    let reference = registry.reference("shop/web", "v1");
    for runtime in Runtime::ALL {
        let node = Node::configure().runtime(runtime).start(&registry).await?;
        node.runtime.freeze()?;
        let pull = node.pull(&reference);
        tokio::pin!(pull);
        ensure!(
            tokio::time::timeout(Duration::from_millis(500), &mut pull).await.is_err(),
            "a frozen node pulled"
        );
        node.runtime.thaw()?;
        pull.await?;
    }
    Ok(())
}

async fn a_stopped_registry_fails_pulls_until_it_is_back() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &small_image("stopped")).await?;
    let node = Node::start(&registry).await?;
    let reference = registry.reference("shop/web", "v1");
    registry.process.stop()?;
    ensure!(node.pull(&reference).await.is_err());
    registry.process.spawn()?;
    registry.ready().await?;
    node.pull(&reference).await
}

/// The address is reserved for documentation, so that not even a broken bed would reach anybody.
async fn no_packet_leaves_the_bed() -> anyhow::Result<()> {
    let outside = SocketAddr::from(([192, 0, 2, 1], 80));
    let error =
        TcpStream::connect_timeout(&outside, Duration::from_secs(5)).expect_err("there is nobody outside");
    ensure!(error.kind() == std::io::ErrorKind::NetworkUnreachable, "{error}");
    Ok(())
}

async fn a_name_that_nobody_knows_fails_at_once() -> anyhow::Result<()> {
    let start = Instant::now();
    ensure!(("no-such-host.example", 80).to_socket_addrs().is_err());
    // A resolver gives up on an unanswered query after twice five seconds.
    ensure!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
    Ok(())
}
