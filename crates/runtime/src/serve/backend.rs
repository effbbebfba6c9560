//! What has to stand behind the calls.

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
    /// Which program it behaves like.
    fn kind(&self) -> Kind;

    /// Hears of each call before it is answered, pulls apart, and may let it wait.
    async fn enter(&self, _method: &'static str) {}

    /// All images.
    fn images(&self) -> Vec<Image>;

    /// The image of this name.
    fn image(&self, name: &str) -> Option<Image>;

    /// Where images are kept.
    fn image_filesystem(&self) -> PathBuf;

    /// Pulls, and gives the image's name in the runtime. When the caller goes away, the future is dropped.
    async fn pull(&self, call: PullCall) -> Result<String, Status>;

    /// The content that is there in full.
    fn content(&self) -> Vec<Content>;

    /// The bytes of a manifest.
    fn manifest(&self, digest: &str) -> Option<Vec<u8>>;

    /// The content that is under way.
    fn ingests(&self) -> Vec<Ingest>;

    /// The names of images that are removed from here on.
    fn removals(&self) -> broadcast::Receiver<String>;
}

/// A pull as it was asked for.
#[derive(Clone, Debug)]
pub struct PullCall {
    /// The image. Nobody has read it yet.
    pub name: String,
    /// What the registry is to be shown, with the address that it is for.
    pub credential: Option<Credential>,
    /// Labels of the sandbox.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the sandbox.
    pub annotations: BTreeMap<String, String>,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its digest.
    pub digest: String,
    /// Its bytes.
    pub size: u64,
    /// When a pull last came by.
    pub touched: SystemTime,
    /// For the manifest of one platform, the images that it was pulled for.
    pub manifest_of: Vec<ImageRef>,
}

/// A piece of content that has not arrived in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingest {
    /// Its digest.
    pub digest: String,
    /// The bytes that have arrived.
    pub offset: u64,
    /// The bytes that it will have.
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
