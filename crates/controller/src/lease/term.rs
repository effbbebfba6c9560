//! How long a process may write: whoever writes asks just before.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// A term of office. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Term {
    /// Until when it runs; none before it began and after it ended.
    until: Arc<Mutex<Option<Instant>>>,
    /// Of a controller that shares with nobody.
    is_endless: bool,
}

impl Term {
    /// One that runs from the start and never ends.
    pub fn endless() -> Self {
        Self { until: Arc::default(), is_endless: true }
    }

    /// One that has not begun.
    pub(super) fn unbegun() -> Self {
        Self { until: Arc::default(), is_endless: false }
    }

    /// Whether it runs at this very moment.
    pub fn is_running(&self) -> bool {
        self.is_endless || self.until().is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn until(&self) -> Option<Instant> {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}
