//! What a test may expect of the mirrors on nodes.

use std::time::{Duration, Instant};

use anyhow::ensure;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::peers::Source;
use prewarm_testkit::registry::Upstream;
use prewarm_testkit::registry::fault::On;
use prewarm_testkit::{FaultProxy, Node, PeerMirror, Registry, real_tests};

const MIB: usize = 1024 * 1024;

real_tests! {
    what_one_node_has_the_others_take_from_its_mirror,
    what_nobody_has_is_asked_for_upstream,
    a_node_that_sends_slowly_is_a_slow_mirror,
}

/// A node that asks its mirror first and this registry afterwards.
async fn node(upstream: &FaultProxy) -> anyhow::Result<(Node, PeerMirror)> {
    let node = Node::configure().start(upstream).await?;
    let mirror = PeerMirror::start(&node).await?;
    node.mirror("_default", upstream, &format!("[host.\"{}\"]\n", mirror.url()))?;
    Ok((node, mirror))
}

async fn what_one_node_has_the_others_take_from_its_mirror() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image = Image::new("shop").layers(2, Layer::of(MIB)).build();
    registry.push("shop/web", &["v1"], &image).await?;
    let upstream = FaultProxy::start(&registry).await?;
    let ((one, first), (other, second)) = tokio::try_join!(node(&upstream), node(&upstream))?;
    PeerMirror::introduce(&[&first, &second]);
    let reference = upstream.reference("shop/web", "v1");
    one.pull(&reference).await?;
    let downloads = upstream.requests().iter().filter(|seen| seen.is_download()).count();
    ensure!(downloads == 4, "a manifest, a config and two layers: {:?}", upstream.requests());
    upstream.forget();
    second.forget();
    let sent = one.bytes_sent()?;

    other.pull(&reference).await?;
    ensure!(upstream.requests().is_empty(), "{:?}", upstream.requests());
    let asked = second.asked();
    ensure!(asked.iter().all(|asked| asked.source == Source::Peer && !asked.is_from_peer), "{asked:?}");
    let asked = first.asked();
    ensure!(asked.iter().any(|asked| asked.is_from_peer && asked.source == Source::Here), "{asked:?}");
    ensure!(one.bytes_sent()? - sent > image.size(), "the bytes did not pass over the cable");

    // What it has taken it serves itself.
    second.forget();
    other.pull(&reference).await?;
    ensure!(second.asked().iter().all(|asked| asked.source == Source::Here), "{:?}", second.asked());
    Ok(())
}

async fn what_nobody_has_is_asked_for_upstream() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image = Image::new("shop").layer(Layer::of(MIB)).build();
    registry.push("shop/web", &["v1"], &image).await?;
    let upstream = FaultProxy::start(&registry).await?;
    let (node, mirror) = node(&upstream).await?;
    node.pull(&upstream.reference("shop/web", "v1")).await?;
    ensure!(!upstream.requests_on(&On::Blobs).is_empty(), "{:?}", upstream.requests());
    let asked = mirror.asked();
    ensure!(asked.iter().all(|asked| asked.status == 404 && asked.source == Source::Nobody), "{asked:?}");
    ensure!(asked.iter().all(|asked| asked.path.contains("?ns=")), "{asked:?}");
    Ok(())
}

async fn a_node_that_sends_slowly_is_a_slow_mirror() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    registry.push("shop/web", &["v1"], &Image::new("shop").layer(Layer::of(2 * MIB)).build()).await?;
    let upstream = FaultProxy::start(&registry).await?;
    let ((one, first), (other, second)) = tokio::try_join!(node(&upstream), node(&upstream))?;
    PeerMirror::introduce(&[&first, &second]);
    let reference = upstream.reference("shop/web", "v1");
    one.pull(&reference).await?;
    // Two MiB take two seconds.
    one.slow_sending(8_000_000)?;
    let start = Instant::now();
    other.pull(&reference).await?;
    ensure!(start.elapsed() > Duration::from_millis(1500), "{:?}", start.elapsed());
    one.restore()
}
