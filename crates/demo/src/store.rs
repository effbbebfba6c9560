//! A node's image store: downloads over HTTP, verifies digests, keeps an OCI image layout, and is served to the agent as
//! containerd would be.
//!
//! `pull` is one pull from its name to the image, `download` one piece of content, `source` the registry's side of both.
//! `state` says what is there; `layout` has the files. Two things are simulated: the speed of the node's link, and the
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

use prewarm_agent::config::RuntimeChoice;
use prewarm_agent::disk::Room;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::serve::Wire;
use prewarm_runtime::{Endpoint, Image};
use tokio::sync::{Semaphore, broadcast};

use crate::pace::Pace;
use behind::Behind;
use flight::Flights;
use layout::Layout;
use source::Client;
use state::State;

/// How many removals a listener may be late by.
const REMOVALS_KEPT: usize = 64;

/// How many downloads of a node run at once. Each is a file and both ends of a connection in one process, of which a
/// large demo has not many.
const DOWNLOADS_AT_ONCE: usize = 3;

/// What a store is made from.
#[derive(Clone)]
pub struct Config {
    /// Where the layout is made. Nobody else writes there.
    pub directory: PathBuf,
    /// Registries by the host in the names of their images. All other names are unknown, except addresses on loopback.
    pub hosts: BTreeMap<String, SocketAddr>,
    /// The node's link, which all its downloads share.
    pub link: Pace,
    /// The node's disk.
    pub disk: Disk,
}

/// A disk of a simulated size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// What it has in all.
    pub capacity: u64,
    /// What others than this store take of it.
    pub taken: u64,
}

/// A pull under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulling {
    /// The image.
    pub reference: ImageRef,
    /// The bytes of its config and layers that are on the node.
    pub done: u64,
    /// The bytes that they have in all; 0 before the manifest has arrived.
    pub total: u64,
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[error("the image store in {} cannot be made", directory.display())]
pub struct CreateError {
    directory: PathBuf,
    source: io::Error,
}

/// The image store of one node. Clones are the same one. Its directory stays when it is dropped.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    wire: Wire,
}

struct Shared {
    config: Config,
    client: Client,
    layout: Layout,
    state: Mutex<State>,
    pulls: Flights<pull::Key, String>,
    downloads: Flights<String, ()>,
    /// Places for downloads of blobs.
    places: Semaphore,
    removals: broadcast::Sender<String>,
}

impl Store {
    /// Makes an empty store and serves it. It has to be called where tokio runs.
    pub fn create(config: Config) -> Result<Self, CreateError> {
        let layout = Layout::create(&config.directory)
            .map_err(|source| CreateError { directory: config.directory.clone(), source })?;
        let shared = Arc::new(Shared {
            client: source::client(),
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

    /// Where it answers as containerd does.
    pub fn endpoint(&self) -> Endpoint {
        self.wire.endpoint()
    }

    /// How an agent is told to use it, with its disk.
    pub fn runtime_choice(&self) -> RuntimeChoice {
        let shared = Arc::clone(&self.shared);
        RuntimeChoice::Simulated(self.endpoint(), Arc::new(move || shared.state().room()))
    }

    /// Where its layout is.
    pub fn directory(&self) -> &Path {
        self.shared.layout.directory()
    }

    /// All images.
    pub fn images(&self) -> Vec<Image> {
        self.shared.state().inventory.images().cloned().collect()
    }

    /// The pulls under way, and how far they are.
    pub fn pulls(&self) -> Vec<Pulling> {
        self.shared.state().pulls()
    }

    /// The bytes that have arrived over the link since the store was made.
    pub fn received(&self) -> u64 {
        self.shared.state().received
    }

    /// How much room its disk has.
    pub fn room(&self) -> Room {
        self.shared.state().room()
    }

    /// Says how many bytes of the disk others take.
    pub fn set_taken(&self, bytes: u64) {
        self.shared.state().set_taken(bytes);
    }

    /// The node's link.
    pub fn link(&self) -> &Pace {
        &self.shared.config.link
    }

    /// Breaks one download off, as a lost connection does: the one that is under way when so many more bytes have arrived.
    pub fn break_off(&self, after: u64) {
        let mut state = self.shared.state();
        state.breaks_at = Some(state.received + after);
    }

    /// Whether a download is still to break off.
    pub fn is_to_break(&self) -> bool {
        self.shared.state().breaks_at.is_some()
    }

    /// Removes an image as the kubelet's collection does, with all its names, and tells who listens. Returns whether it
    /// was there.
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

    /// Ends it as SIGKILL does: connections break, pulls are lost, images stay.
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
            // With the lock held, so that nobody has begun to download it again. What cannot be removed takes no simulated
            // room and goes away with the directory.
            let _removed = fs::remove_file(self.layout.blob(&digest));
        }
    }

    fn write_index(&self) -> io::Result<()> {
        self.layout.write_index(|| self.state().index())
    }
}
