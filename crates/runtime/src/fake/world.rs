//! The runtime's state: what the registry has, what the node has, and which calls there were.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use prewarm_api::reference::ImageRef;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::call::{Call, Outcome};
use super::pulling::Flights;
use super::script::Plot;
use crate::runtime::Kind;
use crate::serve::{Inventory, Wire};

/// How many removals a listener may lag behind.
const REMOVALS_KEPT: usize = 64;

pub(super) struct World {
    pub kind: Kind,
    pub version: Option<String>,
    pub plots: BTreeMap<ImageRef, Plot>,
    pub stored: Inventory,
    pub downloads: BTreeMap<usize, Download>,
    pub flights: Flights,
    pub calls: Vec<Call>,
    /// What was asked of mirrors, in order.
    pub brought: Vec<String>,
    pub most_at_once: usize,
    pub requests: BTreeMap<&'static str, usize>,
    pub filesystem: PathBuf,
}

/// A pull that downloads layers.
pub(super) struct Download {
    pub reference: ImageRef,
    pub plot: Plot,
    pub began: Instant,
    pub touched: SystemTime,
}

impl World {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            version: None,
            plots: BTreeMap::new(),
            stored: Inventory::new(kind),
            downloads: BTreeMap::new(),
            flights: Flights::new(),
            calls: Vec::new(),
            brought: Vec::new(),
            most_at_once: 0,
            requests: BTreeMap::new(),
            filesystem: "/var/lib/images".into(),
        }
    }

    /// Records a call and returns its number.
    pub fn begin(&mut self, call: Call) -> usize {
        self.calls.push(call);
        let running = self.calls.iter().filter(|call| call.outcome == Outcome::Running).count();
        self.most_at_once = self.most_at_once.max(running);
        self.calls.len() - 1
    }

    pub fn end(&mut self, number: usize, outcome: Outcome) {
        self.downloads.remove(&number);
        let call = &mut self.calls[number];
        call.outcome = outcome;
        call.ended = Some(Instant::now());
    }

    /// The plot of a reference by tag or by digest.
    pub fn plot_mut(&mut self, reference: &ImageRef) -> Option<&mut Plot> {
        if !reference.is_digest() {
            return self.plots.get_mut(reference);
        }
        self.plots
            .iter_mut()
            .find(|(tagged, plot)| tagged.name() == reference.name() && plot.is_named_by(reference.tag()))
            .map(|(_, plot)| plot)
    }
}

/// The world, and the ways to wait for it.
pub(super) struct Shared {
    world: Mutex<World>,
    version: watch::Sender<u64>,
    frozen: watch::Sender<bool>,
    removals: broadcast::Sender<String>,
    /// How it is stopped and started; it comes after the world, because it serves it.
    wire: OnceLock<Wire>,
}

impl Shared {
    pub fn new(world: World) -> Self {
        Self {
            world: Mutex::new(world),
            version: watch::Sender::new(0),
            frozen: watch::Sender::new(false),
            removals: broadcast::Sender::new(REMOVALS_KEPT),
            wire: OnceLock::new(),
        }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody who waits for a state of the world.
    pub fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Waits until the world is in a state.
    pub async fn until(&self, is_so: impl Fn(&World) -> bool) {
        let mut version = self.version.subscribe();
        while !is_so(&self.world()) {
            version.changed().await.expect("the sender lives as long as the world");
        }
    }

    /// Hands over how it is stopped and started.
    pub fn serve_by(&self, wire: &Wire) {
        self.wire.get_or_init(|| wire.clone());
    }

    /// Stops it for so long. Whoever calls this ends with it.
    pub fn crash(&self, downtime: Duration) {
        let Some(wire) = self.wire.get().cloned() else { return };
        wire.stop();
        tokio::spawn(async move {
            tokio::time::sleep(downtime).await;
            wire.start();
        });
    }

    pub fn set_frozen(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Counts a request, and makes it wait while everything is frozen.
    pub async fn enter(&self, method: &'static str) {
        *self.world().requests.entry(method).or_default() += 1;
        let mut frozen = self.frozen.subscribe();
        frozen.wait_for(|frozen| !frozen).await.expect("the sender lives as long as the world");
    }

    pub fn announce_removal(&self, name: &str) {
        // Nobody may be listening.
        let _listeners = self.removals.send(name.to_owned());
        self.changed();
    }

    pub fn removals(&self) -> broadcast::Receiver<String> {
        self.removals.subscribe()
    }
}
