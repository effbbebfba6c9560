//! Who watches a resource. A write tells those whom it concerns and waits for nobody: a watcher whose buffer is full
//! is cut off, and its client starts again.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Change, Key};

/// Which objects a watcher wants to hear of; selectors are asked later, by the watcher itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every object.
    All,
    /// The objects of one namespace.
    Namespace(String),
    /// One object.
    Object(Key),
}

/// What reaches a watcher.
pub type Delivery = Arc<Change>;

/// A place among the watchers; dropping it gives the place up.
#[derive(Debug)]
pub struct Subscription {
    /// What happened between the asked-for revision and now.
    pub missed: Vec<Delivery>,
    /// What happens from now on; it ends when the watcher is cut off.
    pub changes: mpsc::Receiver<Delivery>,
}

#[derive(Debug)]
pub(super) struct Watchers {
    buffer: usize,
    next: u64,
    /// Those of everything and of namespaces, in the order in which they came.
    wide: BTreeMap<u64, (Interest, mpsc::Sender<Delivery>)>,
    /// Those of a single object, so that a thousand of them cost a write nothing.
    narrow: BTreeMap<Key, BTreeMap<u64, mpsc::Sender<Delivery>>>,
}

impl Watchers {
    pub(super) fn new(buffer: usize) -> Self {
        Self { buffer, next: 0, wide: BTreeMap::new(), narrow: BTreeMap::new() }
    }

    pub(super) fn subscribe(&mut self, interest: Interest, missed: Vec<Delivery>) -> Subscription {
        let (sender, changes) = mpsc::channel(self.buffer);
        let missed = missed.into_iter().filter(|change| interest.covers(&change.object.key)).collect();
        self.next += 1;
        match interest {
            Interest::Object(key) => {
                let watchers = self.narrow.entry(key).or_default();
                // Those who left without a word would pile up on an object that never changes.
                watchers.retain(|_, sender| !sender.is_closed());
                watchers.insert(self.next, sender);
            }
            interest => {
                self.wide.retain(|_, (_, sender)| !sender.is_closed());
                self.wide.insert(self.next, (interest, sender));
            }
        }
        Subscription { missed, changes }
    }

    pub(super) fn tell(&mut self, change: &Delivery) {
        let key = &change.object.key;
        self.wide
            .retain(|_, (interest, sender)| !interest.covers(key) || sender.try_send(change.clone()).is_ok());
        if let Some(watchers) = self.narrow.get_mut(key) {
            watchers.retain(|_, sender| sender.try_send(change.clone()).is_ok());
            if watchers.is_empty() {
                self.narrow.remove(key);
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.wide.clear();
        self.narrow.clear();
    }
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
