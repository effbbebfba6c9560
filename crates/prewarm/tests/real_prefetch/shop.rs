//! A registry of a test's own, by a host's name that refers to it on all nodes of the fleet.

use std::collections::BTreeMap;

use anyhow::ensure;
use http::Method;
use prewarm_testkit::image::{Artifact, Image, Layer};
use prewarm_testkit::registry::fault::On;
use prewarm_testkit::registry::{Challenge, Upstream};
use prewarm_testkit::{FaultProxy, Node};

use crate::fleet::Fleet;

pub const LAYERS: usize = 4;
const LAYER: usize = 1_000_000;
const TAG: &str = "v1";

pub struct Shop<'a> {
    fleet: &'a Fleet,
    /// The host in the names of images.
    pub host: String,
    /// The registry of all tests tells them apart by this.
    repository: String,
    /// In front of the registry; counts what is asked of it.
    pub upstream: FaultProxy,
}

/// An image in the registry.
pub struct Published {
    pub name: String,
    pub artifact: Artifact,
}

impl<'a> Shop<'a> {
    /// Every node asks its own mirror first.
    pub async fn open(fleet: &'a Fleet, name: &str) -> anyhow::Result<Self> {
        let upstream = FaultProxy::start(&fleet.cluster.registry).await?;
        let shop =
            Self { fleet, host: format!("{name}.example"), repository: format!("{name}/web"), upstream };
        for (node, mirror) in fleet.nodes.iter().zip(&fleet.mirrors) {
            shop.mirror(node, mirror)?;
        }
        Ok(shop)
    }

    /// For this user only. Every node asks its own mirror first, but not what a tag stands for: that is asked of the registry, so
    /// that it sees who asks.
    pub async fn guarded(
        fleet: &'a Fleet,
        name: &str,
        (user, password): (&str, &str),
    ) -> anyhow::Result<Self> {
        let upstream = FaultProxy::start(&fleet.cluster.registry).await?;
        upstream.require(user, password, Challenge::Token);
        // containerd shows credentials to nobody but the host in the image's name.
        let host = upstream.host().to_owned();
        let shop = Self { fleet, host, repository: format!("{name}/web"), upstream };
        for (node, mirror) in fleet.nodes.iter().zip(&fleet.mirrors) {
            let table = format!("[host.\"{}\"]\n  capabilities = [\"pull\"]\n", mirror.url());
            node.mirror(&shop.host, &shop.upstream, &table)?;
        }
        Ok(shop)
    }

    /// Makes this a node's only mirror for the host.
    pub fn mirror(&self, node: &Node, mirror: &impl Upstream) -> anyhow::Result<()> {
        node.mirror(&self.host, &self.upstream, &format!("[host.\"{}\"]\n", mirror.url()))
    }

    /// Pushes an image of these bytes, which no other image shares.
    pub async fn publish(&self, seed: &str) -> anyhow::Result<Published> {
        let seed = format!("{}: {seed}", self.repository);
        self.store(Image::new(&seed).layers(LAYERS, Layer::of(LAYER)).build()).await
    }

    /// Pushes an image.
    pub async fn store(&self, artifact: Artifact) -> anyhow::Result<Published> {
        self.fleet.cluster.registry.push(&self.repository, &[TAG], &artifact).await?;
        Ok(Published { name: format!("{}:{TAG}", self.name()), artifact })
    }

    /// The name of images in specs and statuses, without their tag.
    pub fn name(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }

    /// Fails unless the registry was asked for the manifest once and for each blob once, and sent little else.
    pub fn was_asked_once(&self, image: &Published) -> anyhow::Result<()> {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for seen in self.upstream.requests() {
            if seen.method == Method::GET && (On::Blobs.has(&seen.path) || On::Manifests.has(&seen.path)) {
                *times.entry(seen.path).or_default() += 1;
            }
        }
        let parts = image.artifact.blobs.len() + image.artifact.manifests.len();
        ensure!(times.len() == parts && times.values().all(|times| *times == 1), "{times:?}");
        let sent: u64 = self.upstream.requests().iter().map(|seen| seen.bytes).sum();
        let size = image.artifact.size();
        ensure!(sent <= size + size / 50, "{sent} bytes of an image of {size}");
        Ok(())
    }

    /// Fails unless every node of the fleet has it, and nothing else in its place.
    pub async fn is_everywhere(&self, image: &Published) -> anyhow::Result<()> {
        for node in &self.fleet.nodes {
            let listed = node.cri()?.images().await?;
            let digest = format!("{}@{}", self.name(), image.artifact.digest());
            let has = listed.iter().any(|one| one.digests.contains(&digest));
            ensure!(has, "{} lacks it: {listed:?}", node.name());
        }
        Ok(())
    }
}
