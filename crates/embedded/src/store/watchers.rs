//! The watchers of a resource. A write notifies those it concerns and waits for none: a watcher whose buffer is full is
//! cut off, and its client starts again.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Change, Key};

/// After this many new watchers, those that have left are removed.
const SWEEP_INTERVAL: u64 = 1024;

/// Which objects a watcher is interested in. The watcher applies its selectors later, by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every object.
    All,
    /// The objects of one namespace.
    Namespace(String),
    /// One object.
    Object(Key),
}

pub type Delivery = Arc<Change>;

/// A place among the watchers. Dropping it gives the place up.
#[derive(Debug)]
pub struct Subscription {
    /// The changes between the requested revision and the current one.
    pub missed: Vec<Delivery>,
    /// The changes from there on. The channel closes when the watcher is cut off.
    pub changes: mpsc::Receiver<Delivery>,
}

/// The watchers with the same interest, in the order in which they came.
type Group = BTreeMap<u64, mpsc::Sender<Delivery>>;

/// Groups by interest, so that a thousand watchers of one object each cost nothing when another object is written.
#[derive(Debug)]
pub(super) struct Watchers {
    buffer: usize,
    next: u64,
    all: Group,
    namespaces: BTreeMap<String, Group>,
    objects: BTreeMap<Key, Group>,
}

impl Watchers {
    pub(super) fn new(buffer: usize) -> Self {
        // A channel needs room for at least one.
        let buffer = buffer.max(1);
        Self { buffer, next: 0, all: Group::new(), namespaces: BTreeMap::new(), objects: BTreeMap::new() }
    }

    /// No watchers, but the same limits.
    pub(super) fn copy(&self) -> Self {
        Self::new(self.buffer)
    }

    pub(super) fn subscribe(&mut self, interest: Interest, missed: Vec<Delivery>) -> Subscription {
        let (sender, changes) = mpsc::channel(self.buffer);
        let missed = missed.into_iter().filter(|change| interest.covers(&change.object.key)).collect();
        self.next += 1;
        if self.next.is_multiple_of(SWEEP_INTERVAL) {
            self.sweep();
        }
        let group = match interest {
            Interest::All => &mut self.all,
            Interest::Namespace(namespace) => self.namespaces.entry(namespace).or_default(),
            Interest::Object(key) => self.objects.entry(key).or_default(),
        };
        group.insert(self.next, sender);
        Subscription { missed, changes }
    }

    pub(super) fn tell(&mut self, change: &Delivery) {
        let key = &change.object.key;
        tell(&mut self.all, change);
        if let Some(group) = self.namespaces.get_mut(&key.namespace) {
            tell(group, change);
            if group.is_empty() {
                self.namespaces.remove(&key.namespace);
            }
        }
        if let Some(group) = self.objects.get_mut(key) {
            tell(group, change);
            if group.is_empty() {
                self.objects.remove(key);
            }
        }
    }

    /// Removes watchers that have left. On an object that never changes, nothing else would notice.
    fn sweep(&mut self) {
        let is_left = |group: &mut Group| {
            group.retain(|_, sender| !sender.is_closed());
            !group.is_empty()
        };
        is_left(&mut self.all);
        self.namespaces.retain(|_, group| is_left(group));
        self.objects.retain(|_, group| is_left(group));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let groups = self.namespaces.values().chain(self.objects.values());
        self.all.len() + groups.map(Group::len).sum::<usize>()
    }

    pub(super) fn close(&mut self) {
        self.all.clear();
        self.namespaces.clear();
        self.objects.clear();
    }
}

fn tell(group: &mut Group, change: &Delivery) {
    group.retain(|_, sender| sender.try_send(change.clone()).is_ok());
}

impl Interest {
    fn covers(&self, key: &Key) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => key.namespace == *namespace,
            Self::Object(wanted) => key == wanted,
        }
    }
}
