//! Everything a server holds, behind one lock. A write reads, validates and stores under the lock, so two writers never
//! see each other half-way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::options::Options;
use crate::refusal::Refusal;
use crate::resource::{self, ByResource, Resource, Resources};
use crate::store::{Key, Shelf, Stored};

/// The group and plural of a resource.
pub type ResourceId = (String, String);

#[derive(Debug)]
pub struct State {
    pub options: Options,
    pub resources: Resources,
    revision: u64,
    /// The last revision that every watcher has been sent, for bookmarks.
    progress: Arc<AtomicU64>,
    shelves: ByResource<Shelf>,
    /// The objects with owner references, by the UID of the owner.
    owned: BTreeMap<String, BTreeSet<(ResourceId, Key)>>,
    random: StdRng,
    /// Answers that depend only on the kinds, by path, until a kind changes.
    pub documents: BTreeMap<String, Bytes>,
    /// How many objects were serialised, for the figures.
    pub serialised: u64,
}

impl State {
    /// An empty server with the built-in kinds.
    pub fn new(options: Options) -> Self {
        let mut state = Self {
            random: StdRng::seed_from_u64(options.seed),
            resources: Resources::default(),
            // Revision 0 means "any" to clients, and an empty etcd has 1.
            revision: 1,
            progress: Arc::new(AtomicU64::new(1)),
            shelves: ByResource::default(),
            owned: BTreeMap::new(),
            documents: BTreeMap::new(),
            serialised: 0,
            options,
        };
        for resource in resource::built_in() {
            state.add_resource(resource);
        }
        state
    }

    /// A copy of the state without watchers.
    pub fn copy(&self) -> Self {
        Self {
            options: self.options.clone(),
            resources: self.resources.clone(),
            revision: self.revision,
            progress: Arc::new(AtomicU64::new(self.revision)),
            shelves: self.shelves.map(Shelf::copy),
            owned: self.owned.clone(),
            // A random generator cannot be copied. This one makes other names and UIDs, but the same ones for every
            // copy.
            random: StdRng::seed_from_u64(self.options.seed.wrapping_add(self.revision)),
            documents: self.documents.clone(),
            serialised: self.serialised,
        }
    }

    /// Serves a kind from here on. Objects that are already stored remain.
    pub fn add_resource(&mut self, resource: Resource) {
        if self.shelves.find(&resource.group, &resource.plural).is_none() {
            let empty = Shelf::new(&self.options, self.revision);
            self.shelves.insert(&resource.group, &resource.plural, empty);
        }
        self.resources.insert(Arc::new(resource));
        self.documents.clear();
    }

    /// Stops serving a kind and forgets its objects.
    pub fn remove_resource(&mut self, group: &str, plural: &str) {
        self.resources.remove(group, plural);
        self.documents.clear();
        if let Some(mut shelf) = self.shelves.remove(group, plural) {
            shelf.close();
        }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The last revision that every watcher has been sent. The value is shared and moves on.
    pub fn progress(&self) -> Arc<AtomicU64> {
        self.progress.clone()
    }

    /// The revision of the next write.
    pub fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    pub fn shelf(&self, resource: &Resource) -> Result<&Shelf, Refusal> {
        self.shelves.find(&resource.group, &resource.plural).ok_or_else(Refusal::no_such_path)
    }

    pub fn shelf_mut(&mut self, resource: &Resource) -> Result<&mut Shelf, Refusal> {
        self.shelves.find_mut(&resource.group, &resource.plural).ok_or_else(Refusal::no_such_path)
    }

    /// An object, or the refusal that it does not exist.
    pub fn object(&self, resource: &Resource, key: &Key) -> Result<Arc<Stored>, Refusal> {
        let found = self.shelf(resource)?.get(key).cloned();
        found.ok_or_else(|| Refusal::not_found(resource, &key.name))
    }

    /// Stores an object and indexes its owners.
    pub fn put(&mut self, resource: &Resource, object: Arc<Stored>) -> Result<(), Refusal> {
        let old = self.shelf(resource)?.get(&object.key).cloned();
        self.forget_owners(resource, old.as_deref());
        for owner in &object.owners {
            self.owned.entry(owner.uid.clone()).or_default().insert((id_of(resource), object.key.clone()));
        }
        if let Some((twin, copy)) = self.twin(resource, &object) {
            self.shelf_mut(&twin)?.put(copy);
        }
        self.shelf_mut(resource)?.put(object);
        self.progress.store(self.revision, Ordering::Release);
        Ok(())
    }

    /// Removes an object. `last` is its final state.
    pub fn remove(&mut self, resource: &Resource, last: Arc<Stored>) -> Result<(), Refusal> {
        let old = self.shelf(resource)?.get(&last.key).cloned();
        self.forget_owners(resource, old.as_deref());
        if let Some((twin, copy)) = self.twin(resource, &last) {
            self.shelf_mut(&twin)?.remove(copy);
        }
        self.shelf_mut(resource)?.remove(last);
        self.progress.store(self.revision, Ordering::Release);
        Ok(())
    }

    /// The same object as the other API of its kind shows it. Only events have two.
    fn twin(&self, resource: &Resource, object: &Stored) -> Option<(Arc<Resource>, Arc<Stored>)> {
        let group = resource::events::other_group(resource)?;
        let twin = self.resources.find(group, &resource.plural)?;
        let mut value = object.value();
        resource::events::convert(&mut value, group);
        let copy = Stored::new(&value, object.revision, &twin.selectable);
        Some((twin.clone(), Arc::new(copy)))
    }

    /// Whether any object names this owner.
    pub fn is_owner(&self, uid: &str) -> bool {
        self.owned.contains_key(uid)
    }

    /// The objects that name this owner.
    pub fn owned_by(&self, uid: &str) -> Vec<(ResourceId, Key)> {
        self.owned.get(uid).into_iter().flatten().cloned().collect()
    }

    fn forget_owners(&mut self, resource: &Resource, old: Option<&Stored>) {
        let Some(old) = old.filter(|old| !old.owners.is_empty()) else { return };
        let entry = (id_of(resource), old.key.clone());
        for owner in &old.owners {
            if let Some(objects) = self.owned.get_mut(&owner.uid) {
                objects.remove(&entry);
                if objects.is_empty() {
                    self.owned.remove(&owner.uid);
                }
            }
        }
    }

    /// Restarts the random names and UIDs from a seed.
    #[cfg(test)]
    pub fn reseed(&mut self, seed: u64) {
        self.random = StdRng::seed_from_u64(seed);
    }

    /// The end of a generated name: five characters that cannot spell a word.
    pub fn name_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(ALPHABET[self.random.random_range(0..ALPHABET.len())])).collect()
    }

    /// A random UID, the same in every run with the same seed.
    pub fn uid(&mut self) -> String {
        let bits: u128 = self.random.random();
        // Version 4, variant 1, as clients expect of a UUID.
        let bits = bits & !(0xf << 76) | 0x4 << 76;
        let bits = bits & !(0x3 << 62) | 0x2 << 62;
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

pub fn id_of(resource: &Resource) -> ResourceId {
    (resource.group.clone(), resource.plural.clone())
}
