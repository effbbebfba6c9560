//! A container runtime in memory, for tests.
//!
//! It answers real gRPC calls over a pipe, so the client under test is the whole one, and it works on a paused clock.
//! It behaves like containerd or like CRI-O where the two differ, and the contract suite holds it to that.
//!
//! ```text
//! let fake = Fake::new();
//! fake.image("reg.example/a:1").takes(Duration::from_secs(3)).fails(2, Code::Unknown, "connection refused");
//! let runtime = Runtime::connect(&fake.endpoint()).await?;
//! …
//! assert_eq!(fake.calls().len(), 3);
//! ```

mod behind;
mod call;
mod mirrors;
mod pulling;
mod script;
mod world;

pub use call::{Call, Outcome};
pub use script::Script;

use std::path::Path;
use std::sync::Arc;

use prewarm_api::reference::ImageRef;

use crate::endpoint::Endpoint;
use crate::runtime::Kind;
use crate::serve::Wire;
use behind::Behind;
use world::{Shared, World};

/// The fake. Clones share the same runtime. It has to be created inside a tokio runtime.
#[derive(Clone)]
pub struct Fake {
    shared: Arc<Shared>,
    wire: Wire,
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    /// An empty runtime that behaves like containerd.
    pub fn new() -> Self {
        Self::of_kind(Kind::Containerd)
    }

    /// An empty runtime that behaves like CRI-O.
    pub fn crio() -> Self {
        Self::of_kind(Kind::CriO)
    }

    fn of_kind(kind: Kind) -> Self {
        let shared = Arc::new(Shared::new(World::new(kind)));
        let wire = Wire::serve(&Arc::new(Behind(Arc::clone(&shared))));
        shared.serve_by(&wire);
        Self { shared, wire }
    }

    /// Its address: a pipe in memory.
    pub fn endpoint(&self) -> Endpoint {
        self.wire.endpoint()
    }

    /// Makes it listen on a unix socket too.
    pub fn listen(&self, socket: &Path) -> std::io::Result<Endpoint> {
        self.wire.listen(socket)
    }

    /// Adds an image to the registry behind the runtime, or changes how one behaves. All other images are not found.
    ///
    /// # Panics
    /// If the text is not a reference by tag.
    pub fn image(&self, reference: &str) -> Script {
        let reference = parse(reference);
        assert!(!reference.is_digest(), "an image is put there by tag; its digest follows");
        Script::new(Arc::clone(&self.shared), reference)
    }

    /// Every requested pull, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.world().calls.clone()
    }

    /// The pulls of one reference, in order.
    pub fn calls_of(&self, reference: &str) -> Vec<Call> {
        let full = parse(reference).full();
        self.calls().into_iter().filter(|call| call.reference == full).collect()
    }

    /// The most pulls that were under way at the same time.
    pub fn most_at_once(&self) -> usize {
        self.shared.world().most_at_once
    }

    /// How often a method, such as `ImageStatus`, was called.
    pub fn requests(&self, method: &str) -> usize {
        self.shared.world().requests.get(method).copied().unwrap_or(0)
    }

    /// Waits until a pull of this reference is under way.
    pub async fn started(&self, reference: &str) {
        let full = parse(reference).full();
        let runs = |world: &World| {
            world.calls.iter().any(|call| call.reference == full && call.outcome == Outcome::Running)
        };
        self.shared.until(runs).await;
    }

    /// Waits until this many pulls have ended, in whatever way.
    pub async fn ended(&self, count: usize) {
        let has_ended = |call: &&Call| call.outcome != Outcome::Running;
        self.shared.until(|world| world.calls.iter().filter(has_ended).count() >= count).await;
    }

    /// Whether the runtime has an image of this name.
    pub fn has(&self, reference: &str) -> bool {
        self.shared.world().stored.find(&parse(reference).full()).is_some()
    }

    /// Removes an image as the kubelet's image collection does, and notifies listeners. Returns whether it was there.
    pub fn remove(&self, reference: &str) -> bool {
        let removed = self.shared.world().stored.remove(&parse(reference).full());
        for name in &removed {
            self.shared.announce_removal(name);
        }
        !removed.is_empty()
    }

    /// Ends it as SIGKILL does: connections break and pulls are lost, but images stay.
    pub fn stop(&self) {
        self.wire.stop();
    }

    /// Starts it again after [`stop`](Self::stop).
    pub fn start(&self) {
        self.wire.start();
    }

    /// Freezes it: connections stay open, and nothing is answered.
    pub fn freeze(&self) {
        self.shared.set_frozen(true);
    }

    /// Resumes after [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.shared.set_frozen(false);
    }

    /// Sets the version that it says.
    pub fn is_version(&self, version: &str) {
        self.shared.world().version = Some(version.to_owned());
    }

    /// Sets the directory of the images.
    pub fn keeps_images_in(&self, directory: &Path) {
        directory.clone_into(&mut self.shared.world().filesystem);
    }
}

fn parse(reference: &str) -> ImageRef {
    ImageRef::parse(reference).expect("a test gives valid references")
}
