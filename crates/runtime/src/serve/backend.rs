//! What a runtime has to provide to be served.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use prewarm_api::reference::ImageRef;
use prewarm_credentials::{Credential, SecretText};
use tokio::sync::broadcast;
use tonic::{Status, async_trait};

use crate::image::Image;
use crate::proto::cri::{AuthConfig, PullImageRequest};
use crate::runtime::Kind;

/// A runtime without its wire.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The program that it behaves like.
    fn kind(&self) -> Kind;

    /// The version that it says, if it is a certain one.
    fn version(&self) -> Option<String> {
        None
    }

    /// Called before each call is answered, except pulls. It may delay the call.
    async fn enter(&self, _method: &'static str) {}

    /// All images on the node.
    fn images(&self) -> Vec<Image>;

    /// The image with this name.
    fn image(&self, name: &str) -> Option<Image>;

    /// The directory in which images are kept.
    fn image_filesystem(&self) -> PathBuf;

    /// Pulls an image and returns its name in the runtime. When the caller leaves, the future is dropped.
    async fn pull(&self, call: PullCall) -> Result<String, Status>;

    /// The content that has arrived completely.
    fn content(&self) -> Vec<Content>;

    /// The bytes of a manifest.
    fn manifest(&self, digest: &str) -> Option<Vec<u8>>;

    /// The content that is being downloaded.
    fn ingests(&self) -> Vec<Ingest>;

    /// The names of images as they are removed, from this call on.
    fn removals(&self) -> broadcast::Receiver<String>;
}

/// A requested pull.
#[derive(Clone, Debug)]
pub struct PullCall {
    /// The name of the image, not yet parsed.
    pub name: String,
    /// The credential for the registry, with the address that it is for.
    pub credential: Option<Credential>,
    /// The labels of the sandbox.
    pub labels: BTreeMap<String, String>,
    /// The annotations of the sandbox.
    pub annotations: BTreeMap<String, String>,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The digest of the bytes.
    pub digest: String,
    /// The size in bytes.
    pub size: u64,
    /// When a pull last used it.
    pub touched: SystemTime,
    /// For the manifest of one platform, the images that it was pulled for.
    pub manifest_of: Vec<ImageRef>,
}

/// A piece of content that has not arrived completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingest {
    /// The digest of the complete content.
    pub digest: String,
    /// How many bytes have arrived.
    pub offset: u64,
    /// How many bytes there will be.
    pub total: u64,
}

impl From<PullImageRequest> for PullCall {
    fn from(request: PullImageRequest) -> Self {
        let sandbox = request.sandbox_config.unwrap_or_default();
        Self {
            name: request.image.map(|spec| spec.image).unwrap_or_default(),
            credential: request.auth.map(credential),
            labels: sandbox.labels,
            annotations: sandbox.annotations,
        }
    }
}

fn credential(auth: AuthConfig) -> Credential {
    Credential {
        username: auth.username,
        password: SecretText::new(auth.password),
        identity_token: SecretText::new(auth.identity_token),
        registry_token: SecretText::new(auth.registry_token),
        server_address: auth.server_address,
    }
}
