//! How one image of the registry behaves. Each call takes effect at once, even for pulls that are waiting.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use sha2::{Digest as _, Sha256};
use tonic::{Code, Status};

use super::world::Shared;
use crate::serve::Identity;

/// A handle on one image of the registry.
#[derive(Clone)]
pub struct Script {
    shared: Arc<Shared>,
    reference: ImageRef,
}

/// What a pull of the image does.
#[derive(Clone)]
pub(super) struct Plot {
    pub takes: Duration,
    pub unpacks: Duration,
    pub layers: Vec<u64>,
    pub failures: VecDeque<Status>,
    pub hangs: bool,
    /// The runtime stops when it pulls the image, and is there again after so long.
    pub stops_runtime: Option<Duration>,
    pub account: Option<(String, String)>,
    pub has_index: bool,
    /// Whether mirrors have it, and how they fail before they serve it.
    pub is_mirrored: bool,
    pub mirror_failures: VecDeque<(FailureClass, String)>,
    /// The source of the content: the same seed is the same image.
    seed: String,
}

#[expect(clippy::return_self_not_must_use, reason = "each call takes effect, whether or not another follows")]
impl Script {
    pub(super) fn new(shared: Arc<Shared>, reference: ImageRef) -> Self {
        shared.world().plots.entry(reference.clone()).or_insert_with(|| Plot::new(&reference));
        Self { shared, reference }
    }

    /// Sets how long the download takes. By default it takes no time.
    pub fn takes(self, time: Duration) -> Self {
        self.change(|plot| plot.takes = time)
    }

    /// Sets how long unpacking takes after the download.
    pub fn unpacks_for(self, time: Duration) -> Self {
        self.change(|plot| plot.unpacks = time)
    }

    /// Gives the image one layer of this many bytes.
    pub fn size(self, bytes: u64) -> Self {
        self.layers(&[bytes])
    }

    /// Gives the image layers of these sizes. They arrive one after the other.
    pub fn layers(self, sizes: &[u64]) -> Self {
        self.change(|plot| plot.layers = sizes.to_vec())
    }

    /// Makes this many more pulls fail at once, after those that are to fail already.
    pub fn fails(self, times: usize, code: Code, text: &str) -> Self {
        self.change(|plot| plot.failures.extend(std::iter::repeat_n(Status::new(code, text), times)))
    }

    /// Makes pulls hang.
    pub fn hangs(self) -> Self {
        self.change(|plot| plot.hangs = true)
    }

    /// Makes the runtime stop as SIGKILL does whenever it pulls the image, and start again after this time.
    pub fn stops_the_runtime(self, downtime: Duration) -> Self {
        self.change(|plot| plot.stops_runtime = Some(downtime))
    }

    /// Makes pulls end again. Those that hang go on from here.
    pub fn recovers(self) -> Self {
        self.change(|plot| {
            plot.hangs = false;
            plot.stops_runtime = None;
            plot.failures.clear();
        })
    }

    /// Restricts the image to this account.
    pub fn needs(self, username: &str, password: &str) -> Self {
        self.change(|plot| plot.account = Some((username.to_owned(), password.to_owned())))
    }

    /// Puts the image behind an index of several platforms, whose digest is then [`digest`](Self::digest).
    pub fn with_index(self) -> Self {
        self.change(|plot| plot.has_index = true)
    }

    /// Gives the image to the mirrors.
    pub fn on_mirrors(self) -> Self {
        self.change(|plot| plot.is_mirrored = true)
    }

    /// Makes mirrors fail this many more times when they are asked for it.
    pub fn mirrors_fail(self, times: usize, class: FailureClass, text: &str) -> Self {
        self.change(|plot| {
            plot.mirror_failures.extend(std::iter::repeat_n((class, text.to_owned()), times));
        })
    }

    /// Makes it the same image as another one, under a second name.
    ///
    /// # Panics
    /// If the other image does not exist.
    pub fn same_as(self, other: &Script) -> Self {
        let same = other.plot();
        self.change(|plot| *plot = same)
    }

    /// Pushes another image under this tag: the next pull that asks the registry finds another digest.
    pub fn moves(self) -> Self {
        self.change(|plot| plot.seed.push('+'))
    }

    /// Puts the image on the node, as if it had been pulled.
    pub fn present(self) -> Self {
        let plot = self.plot();
        self.shared.world().stored.add(&self.reference, &plot.identity());
        self.shared.changed();
        self
    }

    /// The digest in references by digest: that of the index if there is one.
    pub fn digest(&self) -> String {
        self.plot().root()
    }

    /// The reference by digest.
    pub fn by_digest(&self) -> String {
        format!("{}@{}", self.reference.name(), self.digest())
    }

    fn plot(&self) -> Plot {
        self.shared.world().plots[&self.reference].clone()
    }

    fn change(self, change: impl FnOnce(&mut Plot)) -> Self {
        if let Some(plot) = self.shared.world().plots.get_mut(&self.reference) {
            change(plot);
        }
        self.shared.changed();
        self
    }
}

impl Plot {
    fn new(reference: &ImageRef) -> Self {
        Self {
            takes: Duration::ZERO,
            unpacks: Duration::ZERO,
            layers: vec![1_000_000],
            failures: VecDeque::new(),
            hangs: false,
            stops_runtime: None,
            account: None,
            has_index: false,
            is_mirrored: false,
            mirror_failures: VecDeque::new(),
            seed: reference.full(),
        }
    }

    /// The config's digest, which names the image in the runtime.
    pub fn config(&self) -> String {
        digest(&format!("config {}", self.seed))
    }

    pub fn manifest(&self) -> String {
        digest(&format!("manifest {}", self.seed))
    }

    /// The digest that a tag points to.
    pub fn root(&self) -> String {
        if self.has_index { digest(&format!("index {}", self.seed)) } else { self.manifest() }
    }

    pub fn layer(&self, place: usize) -> String {
        digest(&format!("layer {place} {}", self.seed))
    }

    /// Whether a digest names this image.
    pub fn is_named_by(&self, digest: &str) -> bool {
        digest == self.root() || digest == self.manifest()
    }

    /// What a runtime records of it.
    pub fn identity(&self) -> Identity {
        Identity { config: self.config(), manifest: self.manifest(), root: self.root(), size: self.total() }
    }

    pub fn total(&self) -> u64 {
        self.layers.iter().sum()
    }
}

/// A digest that is the same for the same text.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::from("sha256:"), |mut digest, byte| {
        write!(digest, "{byte:02x}").expect("writing to a string cannot fail");
        digest
    })
}
