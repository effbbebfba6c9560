//! The runtime's state: what the registry has, what the node has, what was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use prewarm_api::reference::ImageRef;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::call::{Call, Outcome};
use super::pulling::Flights;
use super::script::Plot;
use crate::proto::cri;
use crate::runtime::Kind;

/// How many removals a listener may be late by.
const REMOVALS_KEPT: usize = 64;

pub(super) struct World {
    pub kind: Kind,
    pub plots: BTreeMap<ImageRef, Plot>,
    pub stored: BTreeMap<String, cri::Image>,
    pub downloads: BTreeMap<usize, Download>,
    pub flights: Flights,
    pub calls: Vec<Call>,
    pub most_at_once: usize,
    pub requests: BTreeMap<&'static str, usize>,
    pub filesystem: String,
}

/// A pull that fetches layers.
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
            plots: BTreeMap::new(),
            stored: BTreeMap::new(),
            downloads: BTreeMap::new(),
            flights: Flights::new(),
            calls: Vec::new(),
            most_at_once: 0,
            requests: BTreeMap::new(),
            filesystem: "/var/lib/images".into(),
        }
    }

    /// Writes a call down and gives its number.
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

    /// The image on the node that has this name.
    pub fn find(&self, name: &str) -> Option<&cri::Image> {
        self.stored.values().find(|image| names_of(image).any(|known| known == name))
    }

    /// Puts an image on the node under this name.
    pub fn store(&mut self, reference: &ImageRef, plot: &Plot) {
        let repository = reference.full().split(['@']).next().unwrap_or_default().to_owned();
        let repository = repository.strip_suffix(&format!(":{}", reference.tag())).unwrap_or(&repository);
        let config = plot.config();
        let image = self.stored.entry(config.clone()).or_default();
        image.id = match self.kind {
            Kind::CriO => config.trim_start_matches("sha256:").to_owned(),
            Kind::Containerd | Kind::Other => config.clone(),
        };
        image.size = plot.total();
        let mut digests: BTreeSet<String> = image.repo_digests.drain(..).collect();
        digests.insert(format!("{repository}@{}", plot.root()));
        if self.kind == Kind::CriO {
            digests.insert(format!("{repository}@{}", plot.manifest()));
        }
        image.repo_digests = digests.into_iter().collect();
        if !reference.is_digest() {
            self.tag(&config, &reference.full());
        }
    }

    /// A tag is on one image at a time.
    fn tag(&mut self, config: &str, name: &str) {
        for image in self.stored.values_mut() {
            image.repo_tags.retain(|tag| tag != name);
        }
        if let Some(image) = self.stored.get_mut(config) {
            image.repo_tags.push(name.to_owned());
            image.repo_tags.sort();
        }
    }

    /// Removes by name and returns the names that are gone. containerd removes all names of an image with one of them,
    /// CRI-O only that one.
    pub fn remove(&mut self, name: &str) -> Vec<String> {
        let Some(config) = self.find(name).map(|image| image.id.clone()) else { return Vec::new() };
        let is_it = |image: &cri::Image| image.id == config;
        if self.kind == Kind::CriO {
            for image in self.stored.values_mut().filter(|image| is_it(image)) {
                image.repo_tags.retain(|tag| tag != name);
                if image.repo_tags.is_empty() {
                    image.repo_digests.clear();
                }
            }
            self.stored.retain(|_, image| names_of(image).next().is_some());
            return vec![name.to_owned()];
        }
        let gone = self.stored.values().filter(|image| is_it(image)).flat_map(names_of).cloned().collect();
        self.stored.retain(|_, image| !is_it(image));
        gone
    }
}

fn names_of(image: &cri::Image) -> impl Iterator<Item = &String> {
    image.repo_tags.iter().chain(&image.repo_digests)
}

/// The world, and the ways to wait for it.
pub(super) struct Shared {
    world: Mutex<World>,
    version: watch::Sender<u64>,
    frozen: watch::Sender<bool>,
    removals: broadcast::Sender<String>,
}

impl Shared {
    pub fn new(world: World) -> Self {
        Self {
            world: Mutex::new(world),
            version: watch::Sender::new(0),
            frozen: watch::Sender::new(false),
            removals: broadcast::Sender::new(REMOVALS_KEPT),
        }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a state of the world.
    pub fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Waits until the world is so.
    pub async fn until(&self, is_so: impl Fn(&World) -> bool) {
        let mut version = self.version.subscribe();
        while !is_so(&self.world()) {
            version.changed().await.expect("the sender lives as long as the world");
        }
    }

    pub fn set_frozen(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Counts a request, and lets it wait while everything is frozen.
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
