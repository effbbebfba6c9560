//! A network that may swallow packets, so that connections die without a word to anybody.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct Network {
    swallows: AtomicBool,
    /// How often it began to swallow.
    outages: AtomicU64,
}

/// A connection, by the outages that came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection(u64);

impl Network {
    pub(super) fn swallow(&self) {
        self.outages.fetch_add(1, Ordering::Relaxed);
        self.swallows.store(true, Ordering::Relaxed);
    }

    pub(super) fn heal(&self) {
        self.swallows.store(false, Ordering::Relaxed);
    }

    /// A connection that is opened at this moment.
    pub(super) fn connect(&self) -> Connection {
        Connection(self.outages.load(Ordering::Relaxed))
    }

    /// Whether packets of a connection arrive.
    pub(super) fn carries(&self, connection: Connection) -> bool {
        !self.swallows.load(Ordering::Relaxed) && connection == self.connect()
    }
}
