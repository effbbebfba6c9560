//! What the server stores: objects as JSON text, a history of changes, and the watchers.
//!
//! An object is serialised once, when it is written; lists and watches send those bytes. The text leaves out
//! `apiVersion` and `kind`, so every served version of a kind is the same bytes after another beginning.

mod history;
mod object;
#[cfg(test)]
mod tests;
mod view;
mod watchers;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use history::{Change, ChangeKind, TooOld, line};
pub use object::{FOREGROUND, Key, Owner, Stored};
pub use view::View;
pub use watchers::{Interest, Subscription};

use crate::options::Options;
use history::History;
use watchers::Watchers;

/// All objects of one resource.
#[derive(Debug)]
pub struct Shelf {
    objects: BTreeMap<Key, Arc<Stored>>,
    history: History,
    watchers: Watchers,
}

impl Shelf {
    /// An empty shelf, whose history starts at `revision`.
    pub fn new(options: &Options, revision: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: History::new(options.history_changes, options.history_bytes, revision),
            watchers: Watchers::new(options.watch_buffer),
        }
    }

    /// The same objects and history, without watchers.
    pub fn copy(&self) -> Self {
        let Self { objects, history, watchers } = self;
        Self { objects: objects.clone(), history: history.clone(), watchers: watchers.copy() }
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The current objects.
    pub fn present(&self) -> View<'_> {
        View::new(&self.objects, BTreeMap::new())
    }

    /// The objects at a revision.
    pub fn at(&self, revision: u64) -> Result<View<'_>, TooOld> {
        Ok(View::new(&self.objects, self.history.undone(revision)?))
    }

    /// Stores an object and notifies its watchers.
    pub fn put(&mut self, object: Arc<Stored>) {
        let previous = self.objects.insert(object.key.clone(), object.clone());
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.record(Change::new(kind, object, previous));
    }

    /// Removes an object. `last` is its final state, with the revision of the removal.
    pub fn remove(&mut self, last: Arc<Stored>) {
        let previous = self.objects.remove(&last.key);
        self.record(Change::new(ChangeKind::Deleted, last, previous));
    }

    fn record(&mut self, change: Change) {
        let change = Arc::new(change);
        self.watchers.tell(&change);
        self.history.push(change);
    }

    /// Watches the changes after a revision.
    pub fn watch(&mut self, interest: Interest, after: u64) -> Result<Subscription, TooOld> {
        let missed = self.history.since(after)?;
        Ok(self.watchers.subscribe(interest, missed))
    }

    /// Ends every watch, as when the kind itself is removed.
    pub fn close(&mut self) {
        self.watchers.close();
    }
}
