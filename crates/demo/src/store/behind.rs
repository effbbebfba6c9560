//! The store as a backend of the runtime's serving half.

use std::path::PathBuf;
use std::sync::Arc;

use prewarm_runtime::serve::{Backend, Content, Ingest, PullCall, Status, async_trait};
use prewarm_runtime::{Image, Kind};
use tokio::sync::broadcast;

use super::{Shared, pull};

pub(super) struct Behind(pub Arc<Shared>);

#[async_trait]
impl Backend for Behind {
    fn kind(&self) -> Kind {
        Kind::Containerd
    }

    fn images(&self) -> Vec<Image> {
        self.0.state().inventory.images().cloned().collect()
    }

    fn image(&self, name: &str) -> Option<Image> {
        self.0.state().inventory.find(name).cloned()
    }

    fn image_filesystem(&self) -> PathBuf {
        self.0.layout.directory().to_owned()
    }

    async fn pull(&self, call: PullCall) -> Result<String, Status> {
        pull::pull(&self.0, &call).await.map_err(|refusal| refusal.status(&call.name))
    }

    fn content(&self) -> Vec<Content> {
        self.0.state().content()
    }

    fn manifest(&self, digest: &str) -> Option<Vec<u8>> {
        self.0.state().manifest(digest)
    }

    fn ingests(&self) -> Vec<Ingest> {
        self.0.state().ingests()
    }

    fn removals(&self) -> broadcast::Receiver<String> {
        self.0.removals.subscribe()
    }
}
