//! The images of a runtime, and how their names come and go.

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::reference::ImageRef;

use crate::image::Image;
use crate::runtime::Kind;

/// Images by the digests of their configs.
pub struct Inventory {
    kind: Kind,
    images: BTreeMap<String, Image>,
}

/// What identifies an image, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The digest of its config, which is the image's id in a runtime.
    pub config: String,
    /// The digest of its manifest.
    pub manifest: String,
    /// The digest that a tag points to: that of the index, if there is one.
    pub root: String,
    /// The size in bytes.
    pub size: u64,
}

impl Inventory {
    /// An empty inventory of a runtime that behaves like this program.
    pub fn new(kind: Kind) -> Self {
        Self { kind, images: BTreeMap::new() }
    }

    /// All images on the node.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.values()
    }

    /// The image with this config.
    pub fn by_config(&self, digest: &str) -> Option<&Image> {
        self.images.get(digest)
    }

    /// The image with this name.
    pub fn find(&self, name: &str) -> Option<&Image> {
        self.images.values().find(|image| names_of(image).any(|known| known == name))
    }

    /// Adds an image under this name.
    pub fn add(&mut self, reference: &ImageRef, identity: &Identity) {
        let repository = reference.full().split(['@']).next().unwrap_or_default().to_owned();
        let repository = repository.strip_suffix(&format!(":{}", reference.tag())).unwrap_or(&repository);
        let config = &identity.config;
        let image = self.images.entry(config.clone()).or_default();
        image.id = match self.kind {
            Kind::CriO => config.trim_start_matches("sha256:").to_owned(),
            Kind::Containerd | Kind::Other => config.clone(),
        };
        image.size = identity.size;
        let mut digests: BTreeSet<String> = image.digests.drain(..).collect();
        digests.insert(format!("{repository}@{}", identity.root));
        if self.kind == Kind::CriO {
            digests.insert(format!("{repository}@{}", identity.manifest));
        }
        image.digests = digests.into_iter().collect();
        if !reference.is_digest() {
            self.tag(config, &reference.full());
        }
    }

    /// Moves a tag to an image. A tag is on one image at a time.
    fn tag(&mut self, config: &str, name: &str) {
        for image in self.images.values_mut() {
            image.tags.retain(|tag| tag != name);
        }
        if let Some(image) = self.images.get_mut(config) {
            image.tags.push(name.to_owned());
            image.tags.sort();
        }
    }

    /// Removes an image by name and returns the removed names. containerd removes all names of an image with one of
    /// them, CRI-O only that one.
    pub fn remove(&mut self, name: &str) -> Vec<String> {
        let Some(config) = self.find(name).map(|image| image.id.clone()) else { return Vec::new() };
        let is_it = |image: &Image| image.id == config;
        if self.kind == Kind::CriO {
            for image in self.images.values_mut().filter(|image| is_it(image)) {
                image.tags.retain(|tag| tag != name);
                if image.tags.is_empty() {
                    image.digests.clear();
                }
            }
            self.images.retain(|_, image| names_of(image).next().is_some());
            return vec![name.to_owned()];
        }
        let gone = self.images.values().filter(|image| is_it(image)).flat_map(names_of).cloned().collect();
        self.images.retain(|_, image| !is_it(image));
        gone
    }
}

fn names_of(image: &Image) -> impl Iterator<Item = &String> {
    image.tags.iter().chain(&image.digests)
}
