//! Whole images from real mirrors: a mirror on each node, and a registry that pulls through.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail, ensure};
use prewarm_mirror::{Descriptor, Digest, Document, Hosts, Mirrors, Patience, Platform, Settings, Wanted};
use prewarm_testkit::image::{Artifact, Image, Layer, index};
use prewarm_testkit::registry::Upstream as _;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Node, PeerMirror, Registry, real_tests};

const MIB: usize = 1024 * 1024;

real_tests! {
    an_image_comes_from_the_mirrors_of_other_nodes_and_the_registry_is_not_asked,
    a_mirror_that_pulls_through_gives_all_of_an_image_and_its_parts,
    what_no_node_has_is_not_there_yet,
    a_mirror_that_is_cut_short_is_followed_by_the_next,
}

/// A registry behind something that counts, with an image for several platforms.
struct Shop {
    upstream: FaultProxy,
    image: Artifact,
    _registry: Registry,
}

async fn shop() -> anyhow::Result<Shop> {
    let registry = Registry::start().await?;
    let platform = |name| Image::new(name).architecture(name).layers(2, Layer::of(2 * MIB));
    let image = index(&[platform("arm64"), platform("amd64")]);
    registry.push("shop/web", &["v1"], &image).await?;
    let upstream = FaultProxy::start(&registry).await?;
    Ok(Shop { upstream, image, _registry: registry })
}

impl Shop {
    /// What an agent on the node reads and asks.
    fn mirrors(&self, node: &Node, tables: &str) -> anyhow::Result<Mirrors> {
        node.mirror("_default", &self.upstream, tables)?;
        let settings = Settings { roots: vec![node.hosts_directory()], shares_network: false };
        let hosts = Hosts::read(&settings, self.upstream.host());
        ensure!(hosts.problems.is_empty(), "{}", hosts.why_none());
        Ok(Mirrors::new(hosts, Patience::default()))
    }
}

fn table(url: &str) -> String {
    format!("[host.\"{url}\"]\n")
}

/// Brings everything that a node of this platform needs, and says how much that was.
async fn bring(mirrors: &Mirrors, tag: &str) -> anyhow::Result<(Digest, u64)> {
    let platform = Platform::new("linux", "amd64", "");
    let root = mirrors.manifest("shop/web", Wanted::Tag(tag)).await?;
    let Document::Index(index) = Document::read(&root.bytes, root.media_type.as_deref())? else {
        bail!("{root:?} is no index");
    };
    let chosen = index.choose(&platform)?;
    let manifest = mirrors.manifest("shop/web", Wanted::Digest(&chosen.digest)).await?;
    let Document::Image(image) = Document::read(&manifest.bytes, Some(&chosen.media_type))? else {
        bail!("{manifest:?} is no image");
    };
    let config = read(mirrors, &image.config, 0).await?;
    platform.accept(&Platform::of_config(&config)?)?;
    let mut bytes = config.len() as u64;
    for layer in &image.layers {
        let offset = layer.size / 3;
        let (whole, rest) = (read(mirrors, layer, 0).await?, read(mirrors, layer, offset).await?);
        ensure!(whole[usize::try_from(offset)?..] == rest, "a part is not what it is a part of");
        bytes += layer.size;
    }
    Ok((root.digest, bytes))
}

async fn read(mirrors: &Mirrors, part: &Descriptor, offset: u64) -> anyhow::Result<Vec<u8>> {
    let mut blob = mirrors.blob("shop/web", part, offset, &BTreeSet::new());
    let mut bytes = Vec::new();
    while let Some(piece) = blob.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

async fn an_image_comes_from_the_mirrors_of_other_nodes_and_the_registry_is_not_asked() -> anyhow::Result<()>
{
    let shop = shop().await?;
    let start = || Node::configure().start(&shop.upstream);
    let (seed, other) = tokio::try_join!(start(), start())?;
    let (first, second) = (PeerMirror::start(&seed).await?, PeerMirror::start(&other).await?);
    PeerMirror::introduce(&[&first, &second]);
    seed.cri()?.pull(&shop.upstream.reference("shop/web", "v1"), None).await?;
    shop.upstream.forget();
    let mirrors = shop.mirrors(&other, &table(&second.url()))?;
    let (digest, bytes) = bring(&mirrors, "v1").await?;
    ensure!(digest.as_str() == shop.image.digest() && bytes > 4 * MIB as u64, "{digest}: {bytes}");
    ensure!(shop.upstream.requests().is_empty(), "{:?}", shop.upstream.requests());
    ensure!(second.asked().iter().any(|asked| asked.range.is_some()), "{:?}", second.asked());
    Ok(())
}

async fn a_mirror_that_pulls_through_gives_all_of_an_image_and_its_parts() -> anyhow::Result<()> {
    let shop = shop().await?;
    let node = Node::configure().start(&shop.upstream).await?;
    let proxy = Registry::pull_through(&shop.upstream).await?;
    let mirrors = shop.mirrors(&node, &table(&proxy.url()))?;
    let (digest, _) = bring(&mirrors, "v1").await?;
    ensure!(digest.as_str() == shop.image.digest());
    ensure!(!shop.upstream.requests().is_empty(), "the mirror has it from somewhere");
    Ok(())
}

async fn what_no_node_has_is_not_there_yet() -> anyhow::Result<()> {
    let shop = shop().await?;
    let node = Node::configure().start(&shop.upstream).await?;
    let mirror = PeerMirror::start(&node).await?;
    let mirrors = shop.mirrors(&node, &table(&mirror.url()))?;
    let error = mirrors.manifest("shop/web", Wanted::Tag("v1")).await.err().context("nobody has it")?;
    ensure!(error.is_not_there_yet(), "{error}");
    ensure!(shop.upstream.requests().is_empty(), "{:?}", shop.upstream.requests());
    Ok(())
}

async fn a_mirror_that_is_cut_short_is_followed_by_the_next() -> anyhow::Result<()> {
    let shop = shop().await?;
    let node = Node::configure().start(&shop.upstream).await?;
    let cache = Registry::pull_through(&shop.upstream).await?;
    let (bad, good) = (FaultProxy::start(&cache).await?, FaultProxy::start(&cache).await?);
    let tables = table(&bad.url()) + &table(&good.url());
    let mirrors = shop.mirrors(&node, &tables)?;
    bad.fail(On::Blobs, Fault::Truncate(MIB as u64 / 2));
    bring(&mirrors, "v1").await?;
    let ranges: Vec<_> = good.requests().into_iter().filter_map(|seen| seen.range).collect();
    ensure!(ranges.contains(&format!("bytes={}-", MIB / 2)), "{ranges:?}");

    bad.heal();
    bad.fail(On::Blobs, Fault::WrongBytes);
    // Otherwise it would be asked last, because of what it did.
    let mirrors = shop.mirrors(&node, &tables)?;
    let error = bring(&mirrors, "v1").await.err().context("wrong bytes are no content")?;
    ensure!(format!("{error:#}").contains(&bad.url()), "{error:#}");
    Ok(())
}
