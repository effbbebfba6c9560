//! Work that several callers want at the same time is done once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use prewarm_runtime::serve::Refusal;

type Work<T> = BoxFuture<'static, Result<T, Refusal>>;

/// Work under way, by the key that callers must share to join it. Only the waiting callers hold it: when the last one
/// leaves, the work is dropped.
pub(super) struct Flights<K, T>(Mutex<BTreeMap<K, WeakShared<Work<T>>>>);

impl<K: Ord, T: Clone> Flights<K, T> {
    pub fn new() -> Self {
        Self(Mutex::default())
    }

    /// Joins work under way, or starts it.
    pub fn join(&self, key: K, begin: impl FnOnce() -> Work<T>) -> Shared<Work<T>> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Work that has ended is no answer to a caller that asks after that.
        let under_way =
            |flight: &WeakShared<Work<T>>| flight.upgrade().filter(|flight| flight.peek().is_none());
        if let Some(flight) = flights.get(&key).and_then(under_way) {
            return flight;
        }
        flights.retain(|_, flight| under_way(flight).is_some());
        let flight = begin().shared();
        flights.insert(key, flight.downgrade().expect("it has not even begun"));
        flight
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn never(alive: &Arc<()>) -> Work<()> {
        let alive = Arc::clone(alive);
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            Ok(())
        }
        .boxed()
    }

    #[tokio::test]
    async fn callers_share_work_under_way_and_later_ones_start_again() {
        let (flights, begun) = (Flights::new(), AtomicUsize::new(0));
        let join = || {
            flights.join("a", || {
                begun.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().map(Ok).boxed()
            })
        };
        let (one, other) = (join(), join());
        assert_eq!(futures::join!(one.clone(), other), (Ok(()), Ok(())));
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        // The first caller still holds the ended work.
        assert_eq!((join().await, begun.load(Ordering::Relaxed)), (Ok(()), 2));
    }

    #[test]
    fn work_lasts_as_long_as_a_caller_waits() {
        let (flights, alive) = (Flights::new(), Arc::new(()));
        let one = flights.join("a", || never(&alive));
        let other = flights.join("a", || never(&alive));
        drop(one);
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(other);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
