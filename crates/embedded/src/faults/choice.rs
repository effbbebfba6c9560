//! Which of many things that are counted is meant.

use std::fmt;
use std::sync::Arc;

/// Says of a number whether it is the one.
#[derive(Clone)]
pub(super) struct Choice(Arc<dyn Fn(u64) -> bool + Send + Sync>);

impl Choice {
    pub(super) fn new(is_chosen: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_chosen))
    }

    pub(super) fn is(&self, number: u64) -> bool {
        (self.0)(number)
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Choice")
    }
}
