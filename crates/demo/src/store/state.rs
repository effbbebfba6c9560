//! What a node has and what is under way. Every change is one step under the store's lock.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use prewarm_agent::disk::Room;
use prewarm_api::reference::ImageRef;
use prewarm_runtime::Kind;
use prewarm_runtime::serve::{Content, Identity, Ingest, Inventory};
use serde_json::{Value, json};

use super::manifest::Descriptor;
use super::{Disk, Pulling};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

pub(super) struct State {
    pub inventory: Inventory,
    disk: Disk,
    content: BTreeMap<String, Piece>,
    /// Downloads under way, by number: one that is being dropped and one that begins may have the same content.
    ingests: BTreeMap<u64, Ingest>,
    last_ingest: u64,
    /// The digests of all content of an image, by the digest of its config.
    images: BTreeMap<String, BTreeSet<String>>,
    /// What the names of images refer to.
    roots: BTreeMap<String, Root>,
    /// Pulls under way, by number.
    pulls: BTreeMap<u64, Pull>,
    last_pull: u64,
    /// The bytes of all content, complete or not.
    used: u64,
    pub received: u64,
    /// The link breaks with the bytes that take `received` past this.
    pub breaks_at: Option<u64>,
}

/// A manifest or an index that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub descriptor: Descriptor,
    pub media_type: String,
}

/// A pull under way. Its content is not collected.
struct Pull {
    reference: ImageRef,
    manifests: BTreeSet<String>,
    /// Sizes by digest, once the manifest has arrived.
    parts: BTreeMap<String, u64>,
}

struct Piece {
    size: u64,
    touched: SystemTime,
    manifest: Option<ManifestPiece>,
}

/// The manifest for one platform.
struct ManifestPiece {
    bytes: Vec<u8>,
    of: BTreeSet<ImageRef>,
}

impl State {
    pub fn new(disk: Disk) -> Self {
        Self {
            inventory: Inventory::new(Kind::Containerd),
            disk,
            content: BTreeMap::new(),
            ingests: BTreeMap::new(),
            last_ingest: 0,
            images: BTreeMap::new(),
            roots: BTreeMap::new(),
            pulls: BTreeMap::new(),
            last_pull: 0,
            used: 0,
            received: 0,
            breaks_at: None,
        }
    }

    pub fn room(&self) -> Room {
        let Disk { capacity, taken } = self.disk;
        Room { free: capacity.saturating_sub(taken).saturating_sub(self.used), capacity }
    }

    pub fn set_taken(&mut self, bytes: u64) {
        self.disk.taken = bytes;
    }

    pub fn has(&self, digest: &str) -> bool {
        self.content.contains_key(digest)
    }

    /// Records that a download begins, and returns its number.
    pub fn begin(&mut self, wanted: &Descriptor) -> u64 {
        let ingest = Ingest { digest: wanted.digest.clone(), offset: 0, total: wanted.size };
        self.last_ingest += 1;
        self.ingests.insert(self.last_ingest, ingest);
        self.last_ingest
    }

    /// Whether the link breaks with these bytes. It breaks once.
    pub fn breaks(&mut self, bytes: u64) -> bool {
        self.breaks_at.take_if(|mark| self.received + bytes > *mark).is_some()
    }

    /// Takes room for bytes that have arrived. `false` if there is none.
    #[must_use]
    pub fn arrive(&mut self, number: u64, bytes: u64) -> bool {
        self.received += bytes;
        if self.room().free < bytes {
            return false;
        }
        if let Some(ingest) = self.ingests.get_mut(&number) {
            ingest.offset += bytes;
            self.used += bytes;
        }
        true
    }

    /// Records that a download is complete.
    pub fn commit(&mut self, number: u64) {
        let Some(ingest) = self.ingests.remove(&number) else { return };
        match self.content.entry(ingest.digest) {
            Entry::Occupied(_) => self.used -= ingest.offset,
            Entry::Vacant(place) => {
                place.insert(Piece { size: ingest.offset, touched: SystemTime::now(), manifest: None });
            }
        }
    }

    /// Gives back the room of a download that failed.
    pub fn abandon(&mut self, number: u64) {
        if let Some(ingest) = self.ingests.remove(&number) {
            self.used -= ingest.offset;
        }
    }

    /// Records the manifest that a pull of this image found.
    pub fn note_manifest(&mut self, digest: &str, bytes: Vec<u8>, of: &ImageRef) {
        if let Some(piece) = self.content.get_mut(digest) {
            piece.touched = SystemTime::now();
            let manifest = piece.manifest.get_or_insert(ManifestPiece { bytes, of: BTreeSet::new() });
            manifest.of.insert(of.clone());
        }
    }

    /// Records the image of a completed pull.
    pub fn add(&mut self, number: u64, identity: &Identity, root: Root) {
        let Some(pull) = self.pulls.get(&number) else { return };
        self.inventory.add(&pull.reference, identity);
        let digests = pull.manifests.iter().chain(pull.parts.keys()).cloned();
        self.images.entry(identity.config.clone()).or_default().extend(digests);
        self.roots.insert(pull.reference.full(), root);
    }

    /// The layout's index: every name with what it refers to.
    pub fn index(&self) -> String {
        let entry = |(name, root): (&String, &Root)| {
            let short = name.rsplit_once(['@', ':']).map_or(name.as_str(), |(_, tag)| tag);
            json!({
                "annotations": { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": short },
                "digest": root.descriptor.digest,
                "mediaType": root.media_type,
                "size": root.descriptor.size,
            })
        };
        let manifests: Vec<Value> = self.roots.iter().map(entry).collect();
        json!({ "manifests": manifests, "mediaType": INDEX, "schemaVersion": 2 }).to_string()
    }

    /// What a name refers to, if its image is here.
    pub fn root(&self, name: &str) -> Option<&Root> {
        self.inventory.find(name).and_then(|_here| self.roots.get(name))
    }

    /// The size of a piece of content that belongs to an image, and its media type if names refer to it.
    pub fn piece_of_image(&self, digest: &str) -> Option<(u64, Option<String>)> {
        let belongs = self.images.values().any(|parts| parts.contains(digest));
        let piece = self.content.get(digest).filter(|_| belongs)?;
        let root = self.roots.values().find(|root| root.descriptor.digest == digest);
        Some((piece.size, root.map(|root| root.media_type.clone())))
    }

    /// Records that a pull begins, and returns its number.
    pub fn begin_pull(&mut self, reference: &ImageRef) -> u64 {
        let pull = Pull { reference: reference.clone(), manifests: BTreeSet::new(), parts: BTreeMap::new() };
        self.last_pull += 1;
        self.pulls.insert(self.last_pull, pull);
        self.last_pull
    }

    /// Records an index or a manifest that a pull needs.
    pub fn need_manifest(&mut self, number: u64, digest: &str) {
        if let Some(pull) = self.pulls.get_mut(&number) {
            pull.manifests.insert(digest.to_owned());
        }
    }

    /// Records the config and the layers that a pull needs.
    pub fn need_parts(&mut self, number: u64, parts: impl Iterator<Item = (String, u64)>) {
        if let Some(pull) = self.pulls.get_mut(&number) {
            pull.parts.extend(parts);
        }
    }

    pub fn end_pull(&mut self, number: u64) {
        self.pulls.remove(&number);
    }

    /// Forgets the content that no image and no pull needs, and returns it, so that its files can be removed.
    #[must_use]
    pub fn collect(&mut self) -> Vec<String> {
        let Self { inventory, images, roots, content, pulls, used, .. } = self;
        images.retain(|config, _| inventory.by_config(config).is_some());
        roots.retain(|name, _| inventory.find(name).is_some());
        let pulled = pulls.values().flat_map(|pull| pull.manifests.iter().chain(pull.parts.keys()));
        let needed: BTreeSet<&String> = images.values().flatten().chain(pulled).collect();
        let garbage: Vec<String> =
            content.keys().filter(|digest| !needed.contains(digest)).cloned().collect();
        for piece in garbage.iter().filter_map(|digest| content.remove(digest)) {
            *used -= piece.size;
        }
        garbage
    }

    pub fn content(&self) -> Vec<Content> {
        let content = self.content.iter().map(|(digest, piece)| Content {
            digest: digest.clone(),
            size: piece.size,
            touched: piece.touched,
            manifest_of: piece.manifest.iter().flat_map(|manifest| manifest.of.iter().cloned()).collect(),
        });
        content.collect()
    }

    pub fn manifest(&self, digest: &str) -> Option<Vec<u8>> {
        Some(self.content.get(digest)?.manifest.as_ref()?.bytes.clone())
    }

    /// The progress of the pulls under way.
    pub fn pulls(&self) -> Vec<Pulling> {
        let done = |(digest, size): (&String, &u64)| {
            let ingest = self.ingests.values().find(|ingest| ingest.digest == *digest);
            if self.has(digest) { *size } else { ingest.map_or(0, |ingest| ingest.offset) }
        };
        let pulls = self.pulls.values().map(|pull| Pulling {
            reference: pull.reference.clone(),
            done: pull.parts.iter().map(done).sum(),
            total: pull.parts.values().sum(),
        });
        pulls.collect()
    }

    pub fn ingests(&self) -> Vec<Ingest> {
        self.ingests.values().cloned().collect()
    }
}
