//! Demands that wait because a NodeImage has no room. This is kept in memory only; a restarted controller finds it again.

use std::collections::BTreeMap;

use super::room::Crowd;
use crate::object::{ImageKey, Uid};

/// Jobs that wait for room on a node.
#[derive(Clone, Debug, Default)]
pub struct Crowded {
    by_entry: BTreeMap<ImageKey, BTreeMap<Uid, Crowd>>,
    /// Whether what takes room has changed since somebody looked who fits.
    has_changed: bool,
}

impl Crowded {
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_entry.is_empty()
    }

    /// Why a job waits, if it does.
    pub fn get(&self, key: &ImageKey, uid: &str) -> Option<Crowd> {
        self.by_entry.get(key)?.get(uid).copied()
    }

    /// A job was turned away.
    pub fn insert(&mut self, key: &ImageKey, uid: Uid, crowd: Crowd) {
        self.by_entry.entry(key.clone()).or_default().insert(uid, crowd);
    }

    /// All who wait, by entry.
    pub fn all(&self) -> impl Iterator<Item = (&ImageKey, &Uid)> {
        self.by_entry.iter().flat_map(|(key, jobs)| jobs.keys().map(move |uid| (key, uid)))
    }

    /// A job does not wait any more.
    pub fn remove(&mut self, uid: &str) {
        self.by_entry.retain(|_, jobs| {
            jobs.remove(uid);
            !jobs.is_empty()
        });
    }

    /// What takes room has changed: the spec of the NodeImage, or what is about to be written to it.
    pub fn room_changed(&mut self) {
        self.has_changed = !self.is_empty();
    }

    /// Whether there is a reason to look who fits.
    pub fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}
