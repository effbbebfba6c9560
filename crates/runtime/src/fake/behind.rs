//! The fake's world as a backend of the serving half.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::time::Instant;
use tonic::{Status, async_trait};

use super::pulling::Pulling;
use super::world::{Download, Shared};
use crate::image::Image;
use crate::runtime::Kind;
use crate::serve::{Backend, Content, Ingest, PullCall};

/// The size of every config.
const CONFIG_SIZE: u64 = 100;

pub(super) struct Behind(pub Arc<Shared>);

#[async_trait]
impl Backend for Behind {
    fn kind(&self) -> Kind {
        self.0.world().kind
    }

    fn version(&self) -> Option<String> {
        self.0.world().version.clone()
    }

    async fn enter(&self, method: &'static str) {
        self.0.enter(method).await;
        self.0.changed();
    }

    fn images(&self) -> Vec<Image> {
        self.0.world().stored.images().cloned().collect()
    }

    fn image(&self, name: &str) -> Option<Image> {
        self.0.world().stored.find(name).cloned()
    }

    fn image_filesystem(&self) -> PathBuf {
        self.0.world().filesystem.clone()
    }

    async fn pull(&self, call: PullCall) -> Result<String, Status> {
        // Recorded before it can be frozen: the request has arrived.
        let pulling = Pulling::begin(&self.0, call);
        self.0.enter("PullImage").await;
        pulling.run().await
    }

    fn content(&self) -> Vec<Content> {
        self.0.world().downloads.values().flat_map(arrived).collect()
    }

    fn manifest(&self, digest: &str) -> Option<Vec<u8>> {
        let world = self.0.world();
        let mut downloads = world.downloads.values();
        downloads.find(|download| download.plot.manifest() == digest).map(manifest)
    }

    fn ingests(&self) -> Vec<Ingest> {
        let world = self.0.world();
        let parts = world.downloads.values().flat_map(parts);
        parts.filter(|part| part.offset > 0 && part.offset < part.total).collect()
    }

    fn removals(&self) -> broadcast::Receiver<String> {
        self.0.removals()
    }
}

/// The manifest of a download, and its complete parts.
fn arrived(download: &Download) -> Vec<Content> {
    let touched = download.touched;
    let mut arrived = vec![Content {
        digest: download.plot.manifest(),
        size: manifest(download).len() as u64,
        touched,
        manifest_of: vec![download.reference.clone()],
    }];
    let whole = parts(download).into_iter().filter(|part| part.offset == part.total);
    arrived.extend(whole.map(|part| Content {
        digest: part.digest,
        size: part.total,
        touched,
        manifest_of: Vec::new(),
    }));
    arrived
}

/// The config, which is there at once, and the layers, which arrive one after the other and evenly over time.
fn parts(download: &Download) -> Vec<Ingest> {
    let plot = &download.plot;
    let mut left = received(download);
    let config = Ingest { digest: plot.config(), offset: CONFIG_SIZE, total: CONFIG_SIZE };
    let layers = plot.layers.iter().enumerate().map(|(place, size)| {
        let offset = left.min(*size);
        left -= offset;
        Ingest { digest: plot.layer(place), offset, total: *size }
    });
    std::iter::once(config).chain(layers).collect()
}

fn received(download: &Download) -> u64 {
    let (takes, passed) = (download.plot.takes, Instant::now() - download.began);
    if passed >= takes {
        return download.plot.total();
    }
    let bytes = u128::from(download.plot.total()) * passed.as_micros() / takes.as_micros().max(1);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn manifest(download: &Download) -> Vec<u8> {
    let parts = parts(download);
    let descriptor = |part: &Ingest| format!(r#"{{"digest":"{}","size":{}}}"#, part.digest, part.total);
    let layers: Vec<String> = parts[1..].iter().map(descriptor).collect();
    format!(r#"{{"config":{},"layers":[{}]}}"#, descriptor(&parts[0]), layers.join(",")).into_bytes()
}
