//! A registry and the store of a node.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use prewarm_api::reference::ImageRef;
use prewarm_credentials::{Credential, SecretText};
use prewarm_demo::store::{Config, Disk};
use prewarm_demo::{Flow, Pace, Registry, Store};
use prewarm_image::{Artifact, Image, Layer};
use prewarm_runtime::{CallError, PullRequest, Runtime};
use tempfile::TempDir;

/// The registry's name in the names of images.
pub const HOST: &str = "registry.demo";

pub const KIB: usize = 1024;

/// More than any test writes.
pub const LARGE_DISK: Disk = Disk { capacity: 1 << 40, taken: 0 };

pub struct Site {
    pub registry: Registry,
    pub store: Store,
    /// Lives as long as the store.
    _directory: TempDir,
}

impl Site {
    /// A site with unlimited links and a large disk.
    pub fn new() -> Self {
        Self::with(Flow::Free, Flow::Free, LARGE_DISK)
    }

    pub fn with(uplink: Flow, link: Flow, disk: Disk) -> Self {
        let registry = Registry::start(Pace::new(uplink)).unwrap();
        let (store, directory) = node(&registry, link, disk);
        Self { registry, store, _directory: directory }
    }

    /// Publishes an image of this many layers of this size.
    pub fn offer(&self, repository: &str, tag: &str, layers: usize, size: usize) -> Artifact {
        let artifact = Image::new(repository).layers(layers, Layer::of(size)).build();
        self.registry.push(repository, tag, artifact.clone());
        artifact
    }

    pub async fn pull(&self, name: &str) -> Result<(), CallError> {
        pull(&self.store, name).await
    }
}

/// A store that knows the registry by its name.
pub fn node(registry: &Registry, link: Flow, disk: Disk) -> (Store, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        name: "node".to_owned(),
        directory: directory.path().join("images"),
        hosts: [HOST, "docker.io", "registry.example"]
            .map(|host| (host.to_owned(), registry.address()))
            .into(),
        link: Pace::new(link),
        disk,
    };
    (Store::create(config).unwrap(), directory)
}

/// Pulls `repository:tag` of the registry anonymously, through the real client.
pub async fn pull(store: &Store, name: &str) -> Result<(), CallError> {
    let runtime = Runtime::connect(&store.endpoint()).await.unwrap();
    runtime.pull(&request(&full(name), None)).await
}

pub fn full(name: &str) -> ImageRef {
    ImageRef::parse(&format!("{HOST}/{name}")).unwrap()
}

pub fn request(reference: &ImageRef, credential: Option<Credential>) -> PullRequest {
    let reference = reference.clone();
    PullRequest { reference, credential, labels: BTreeMap::new(), annotations: BTreeMap::new() }
}

pub fn credential(username: &str, password: &str, host: &str) -> Credential {
    Credential {
        username: username.to_owned(),
        password: SecretText::new(password.to_owned()),
        server_address: host.to_owned(),
        ..Credential::default()
    }
}

/// An address that nobody listens on.
pub fn closed_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}
