//! A node's image store: it downloads over HTTP, verifies digests, keeps an OCI image layout, and is served to the
//! agent as containerd would be.
//!
//! `pull` is one pull from a name to the image, `download` one piece of content, `source` the other side of both: a
//! registry, or mirrors.
//! `state` knows what is there; `layout` has the files. Two things are simulated: the speed of the node's link, and the
//! size of its disk.

mod behind;
mod download;
mod flight;
mod layout;
mod manifest;
mod pull;
mod source;
mod state;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use prewarm_agent::config::{Mirrors, RuntimeChoice};
use prewarm_agent::disk::Room;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::serve::{Refusal, Wire};
use prewarm_runtime::{Endpoint, Image};
use tokio::sync::{Semaphore, broadcast};

use crate::pace::Pace;
use behind::Behind;
use flight::Flights;
use layout::Layout;
use state::State;

/// How many removals a listener may lag behind.
const REMOVALS_KEPT: usize = 64;

/// How many downloads a node runs at a time. Each needs a file and both ends of a connection, and a large demo is short
/// of file descriptors.
const DOWNLOADS_AT_ONCE: usize = 3;

/// What a store is made from.
#[derive(Clone)]
pub struct Config {
    /// The node's name, as registries see it.
    pub name: String,
    /// The directory of the layout. Nobody else writes there.
    pub directory: PathBuf,
    /// Registries by the host in the names of their images. All other hosts are unknown, except loopback addresses.
    pub hosts: BTreeMap<String, SocketAddr>,
    /// The node's link, which all its downloads share.
    pub link: Pace,
    pub disk: Disk,
}

/// A disk of a simulated size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    pub capacity: u64,
    /// What others take of it.
    pub taken: u64,
}

/// A pull under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulling {
    pub reference: ImageRef,
    /// How many bytes of its config and layers are on the node.
    pub done: u64,
    /// How many bytes they have in total; 0 before the manifest has arrived.
    pub total: u64,
}

/// A file with content that belongs to an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub path: PathBuf,
    pub size: u64,
    /// Only manifests and indexes that have a name have one.
    pub media_type: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot create the image store in {}", directory.display())]
pub struct CreateError {
    directory: PathBuf,
    source: io::Error,
}

/// The image store of one node. Clones share it. Its directory stays when it is dropped.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    wire: Wire,
}

struct Shared {
    config: Config,
    node: source::Node,
    layout: Layout,
    state: Mutex<State>,
    pulls: Flights<pull::Key, String>,
    downloads: Flights<String, ()>,
    /// Permits for downloads of blobs.
    places: Semaphore,
    removals: broadcast::Sender<String>,
}

impl Store {
    /// Creates an empty store and serves it. It has to be called inside a tokio runtime.
    pub fn create(config: Config) -> Result<Self, CreateError> {
        let layout = Layout::create(&config.directory)
            .map_err(|source| CreateError { directory: config.directory.clone(), source })?;
        let shared = Arc::new(Shared {
            node: source::Node::new(config.name.clone()),
            layout,
            state: Mutex::new(State::new(config.disk)),
            pulls: Flights::new(),
            downloads: Flights::new(),
            places: Semaphore::new(DOWNLOADS_AT_ONCE),
            removals: broadcast::Sender::new(REMOVALS_KEPT),
            config,
        });
        let wire = Wire::serve(&Arc::new(Behind(Arc::clone(&shared))));
        Ok(Self { shared, wire })
    }

    /// The socket on which it answers as containerd does.
    pub fn endpoint(&self) -> Endpoint {
        self.wire.endpoint()
    }

    /// The agent's configuration for this store and its disk.
    pub fn runtime_choice(&self) -> RuntimeChoice {
        let shared = Arc::clone(&self.shared);
        RuntimeChoice::Simulated(self.endpoint(), Arc::new(move || shared.state().room()))
    }

    /// The agent's configuration for the mirrors at this address.
    pub fn mirror_choice(&self, mirrors: SocketAddr) -> Mirrors {
        let shared = Arc::clone(&self.shared);
        Mirrors::Simulated(Arc::new(move |reference, digest| {
            let name = reference.full();
            let brought = pull::bring(Arc::clone(&shared), mirrors, reference, digest);
            let explain = move |refusal: Refusal| {
                (refusal.class(), format!("from mirrors: {}", refusal.status(&name).message()))
            };
            brought.map(|brought| brought.map_err(explain)).boxed()
        }))
    }

    /// What an image's name refers to, if the image is on the node: the digest of its manifest or index.
    pub fn digest_of(&self, name: &str) -> Option<String> {
        self.shared.state().root(name).map(|root| root.descriptor.digest.clone())
    }

    /// A piece of content that belongs to an image on the node.
    pub fn piece(&self, digest: &str) -> Option<Piece> {
        let (size, media_type) = self.shared.state().piece_of_image(digest)?;
        Some(Piece { path: self.shared.layout.blob(digest), size, media_type })
    }

    /// The directory of its layout.
    pub fn directory(&self) -> &Path {
        self.shared.layout.directory()
    }

    pub fn images(&self) -> Vec<Image> {
        self.shared.state().inventory.images().cloned().collect()
    }

    /// The pulls under way and their progress.
    pub fn pulls(&self) -> Vec<Pulling> {
        self.shared.state().pulls()
    }

    /// How many bytes have arrived over the link in total.
    pub fn received(&self) -> u64 {
        self.shared.state().received
    }

    pub fn room(&self) -> Room {
        self.shared.state().room()
    }

    /// Sets how many bytes of the disk others take.
    pub fn set_taken(&self, bytes: u64) {
        self.shared.state().set_taken(bytes);
    }

    pub fn link(&self) -> &Pace {
        &self.shared.config.link
    }

    /// Breaks one download off, as a lost connection does: the one that is under way when this many more bytes have
    /// arrived.
    pub fn break_off(&self, after: u64) {
        let mut state = self.shared.state();
        state.breaks_at = Some(state.received + after);
    }

    /// Whether a download has yet to break off.
    pub fn is_to_break(&self) -> bool {
        self.shared.state().breaks_at.is_some()
    }

    /// Removes an image with all its names, as the kubelet's image collection does, and notifies listeners. Returns
    /// whether it was there.
    pub fn remove(&self, reference: &ImageRef) -> io::Result<bool> {
        let removed = self.shared.state().inventory.remove(&reference.full());
        self.shared.collect();
        self.shared.write_index()?;
        for name in &removed {
            // Nobody may be listening.
            let _listeners = self.shared.removals.send(name.clone());
        }
        Ok(!removed.is_empty())
    }

    /// Ends it as SIGKILL does: connections break and pulls are lost, but images stay.
    pub fn stop(&self) {
        self.wire.stop();
    }

    /// Starts it again after [`stop`](Self::stop).
    pub fn start(&self) {
        self.wire.start();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the content that nothing needs.
    fn collect(&self) {
        let mut state = self.state();
        for digest in state.collect() {
            // Under the lock, so that nobody has started to download it again. A file that cannot be removed takes no
            // simulated room and is deleted with the directory.
            let _removed = fs::remove_file(self.layout.blob(&digest));
        }
    }

    fn write_index(&self) -> io::Result<()> {
        self.layout.write_index(|| self.state().index())
    }
}
