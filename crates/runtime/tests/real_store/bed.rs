//! A node with one of the containerds, a registry whose requests are counted, and the content store.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::{
    Blob, ContentStore, Endpoint, Ingest, Lease, Opened, Platform, PullRequest, Runtime, Target,
};
use prewarm_testkit::image::{self, Artifact, Image, Layer, native_architecture};
use prewarm_testkit::node::Configure;
use prewarm_testkit::{Containerd, FaultProxy, Node, Registry, wait};

/// Large enough to be sent in several pieces.
pub const LAYER: usize = 3_000_000;
pub const PIECE: usize = 256 * 1024;
pub const LEASE: &str = "prewarm-test";
pub const NAME: &str = "registry.example/shop/web";

pub struct Bed {
    pub registry: Registry,
    /// Counts what is asked of the registry.
    pub proxy: FaultProxy,
    pub node: Node,
    pub runtime: Runtime,
    pub store: ContentStore,
}

impl Bed {
    pub async fn start(release: Containerd) -> anyhow::Result<Self> {
        Self::on(Node::configure().containerd(release)).await
    }

    pub async fn on(node: Configure<'_>) -> anyhow::Result<Self> {
        let registry = Registry::start().await?;
        let proxy = FaultProxy::start(&registry).await?;
        let node = node.start(&proxy).await?;
        let runtime = Runtime::connect(&Endpoint::unix(node.socket())).await?;
        let store = runtime.content_store().context("a containerd has a content store")?;
        Ok(Self { registry, proxy, node, runtime, store })
    }

    pub async fn lease(&self) -> anyhow::Result<Lease> {
        Ok(self.store.lease(LEASE, SystemTime::now() + Duration::from_hours(1)).await?)
    }

    /// Writes everything that the native platform needs.
    pub async fn write(
        &self,
        lease: &Lease,
        artifact: &Artifact,
        parts: &Artifact,
        labels: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let manifests = parts.manifests.iter().chain([artifact.root()]).map(|manifest| &manifest.blob);
        for blob in parts.blobs.iter().chain(manifests) {
            if let Opened::Ingest(mut ingest) = self.store.ingest(lease, &described(blob)).await? {
                append(&mut ingest, &blob.bytes).await?;
                ingest.commit(labels.clone()).await?;
            }
        }
        Ok(())
    }

    /// Makes an image of what was written.
    pub async fn finish(&self, lease: &Lease, artifact: &Artifact, config: &str) -> anyhow::Result<()> {
        let root = target(artifact);
        self.store.unpack(lease, &root, &platform(), &self.runtime.snapshotter().await?).await?;
        let by_digest = format!("{NAME}@{}", root.digest);
        for name in [config, by_digest.as_str(), &format!("{NAME}:v1")] {
            self.store.name(name, &root).await?;
        }
        Ok(())
    }

    pub async fn is_there(&self, reference: &str) -> anyhow::Result<()> {
        let reference = ImageRef::parse(reference)?;
        wait::until("the image in CRI", async || Ok(self.runtime.image(&reference).await?.map(drop))).await
    }

    pub async fn pull(&self, reference: &str) -> anyhow::Result<()> {
        let request = PullRequest {
            reference: ImageRef::parse(reference)?,
            credential: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        };
        Ok(self.runtime.pull(&request).await?)
    }

    pub async fn rows(&self, command: &[&str]) -> anyhow::Result<usize> {
        Ok(self.node.ctr(command.iter().copied()).await?.lines().filter(|line| !line.is_empty()).count())
    }

    /// The garbage collector runs once by itself soon after a start. Afterwards it does only when somebody gives it a reason.
    pub async fn collect_garbage(&self) -> anyhow::Result<()> {
        let until = SystemTime::now() + Duration::from_mins(1);
        self.store.lease("prewarm-garbage", until).await?;
        Ok(self.store.release("prewarm-garbage", true).await?)
    }

    /// How many pieces of content and how many snapshots the node has.
    pub async fn holds(&self) -> anyhow::Result<(usize, usize)> {
        Ok((self.rows(&["content", "ls", "-q"]).await?, self.rows(&["snapshots", "ls"]).await?))
    }
}

pub fn image(seed: &str) -> Image {
    Image::new(seed).layers(2, Layer::of(LAYER))
}

pub fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("containerd.io/distribution.source.registry.example".into(), "shop/web".into())])
}

pub fn platform() -> Platform {
    Platform { os: "linux".into(), architecture: native_architecture().into(), variant: String::new() }
}

pub fn described(blob: &image::Blob) -> Blob {
    Blob { digest: blob.digest.clone(), size: blob.bytes.len() as u64 }
}

pub fn target(artifact: &Artifact) -> Target {
    let root = artifact.root();
    Target {
        media_type: root.media_type.to_owned(),
        digest: root.blob.digest.clone(),
        size: root.blob.bytes.len() as u64,
    }
}

/// The digest of the config, which is the image's id.
pub fn config(artifact: &Artifact) -> anyhow::Result<String> {
    let manifest: serde_json::Value = serde_json::from_slice(&artifact.manifests[0].blob.bytes)?;
    Ok(manifest["config"]["digest"].as_str().context("a manifest has a config")?.to_owned())
}

/// One of an image's layers.
pub fn layer(artifact: &Artifact) -> anyhow::Result<&image::Blob> {
    artifact.blobs.iter().max_by_key(|blob| blob.bytes.len()).context("it has layers")
}

pub async fn append(ingest: &mut Ingest, bytes: &[u8]) -> anyhow::Result<()> {
    let from = usize::try_from(ingest.offset())?;
    for piece in bytes[from..].chunks(PIECE) {
        ingest.append(piece.to_vec()).await?;
    }
    Ok(())
}

pub async fn opened(bed: &Bed, lease: &Lease, blob: &Blob) -> anyhow::Result<Ingest> {
    wait::until("the writer", async || match bed.store.ingest(lease, blob).await? {
        Opened::Ingest(ingest) => Ok(Some(*ingest)),
        Opened::Busy => Ok(None),
        Opened::Present => anyhow::bail!("{} is there already", blob.digest),
    })
    .await
}
