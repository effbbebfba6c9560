//! How fast bytes pass through a link that several transfers share.
//!
//! Each transfer asks before every chunk, and never for a second one before the first has passed. So waiting transfers
//! alternate, and one that is slow for another reason leaves its share to the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How late a transfer may ask for its next chunk without losing time. Timers are exact only to a millisecond, and
/// without this every chunk would lose a part of one.
const SLACK: Duration = Duration::from_millis(10);

/// A link. Clones share it.
#[derive(Clone)]
pub struct Pace(Arc<Link>);

struct Link {
    flow: watch::Sender<Flow>,
    /// When everything that was admitted will have passed.
    busy_until: Mutex<Instant>,
}

/// How much passes through a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Without a limit.
    Free,
    /// This many bytes a second.
    Limited(u64),
    /// Nothing.
    Still,
}

impl Pace {
    pub fn new(flow: Flow) -> Self {
        Self(Arc::new(Link { flow: watch::Sender::new(flow), busy_until: Mutex::new(Instant::now()) }))
    }

    /// Changes the flow, also for transfers that wait.
    pub fn set(&self, flow: Flow) {
        *self.busy_until() = Instant::now();
        self.0.flow.send_replace(flow);
    }

    /// Waits until a chunk of this many bytes has passed.
    pub async fn pass(&self, bytes: usize) {
        let mut flow = self.0.flow.subscribe();
        loop {
            let present = flow.wait_for(|flow| *flow != Flow::Still).await.map(|flow| *flow);
            let Ok(Flow::Limited(rate)) = present else { return };
            let end = self.admit(bytes, rate);
            if end <= Instant::now() {
                return;
            }
            tokio::select! {
                biased;
                () = sleep_until(end) => return,
                _ = flow.changed() => {}
            }
        }
    }

    /// Queues a chunk behind all others, and returns when it will have passed.
    fn admit(&self, bytes: usize, rate: u64) -> Instant {
        #[expect(clippy::cast_precision_loss, reason = "a pace need not be exact to the byte")]
        let takes = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        let now = Instant::now();
        let mut busy_until = self.busy_until();
        *busy_until = (*busy_until).max(now.checked_sub(SLACK).unwrap_or(now)) + takes;
        *busy_until
    }

    fn busy_until(&self) -> MutexGuard<'_, Instant> {
        self.0.busy_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::join_all;

    use super::*;

    const CHUNK: usize = 1000;

    async fn transfer(pace: &Pace, chunks: usize) -> Duration {
        let start = Instant::now();
        for _ in 0..chunks {
            pace.pass(CHUNK).await;
        }
        start.elapsed()
    }

    fn is_about(actual: Duration, seconds: f64) -> bool {
        (actual.as_secs_f64() - seconds).abs() < 0.05
    }

    #[tokio::test(start_paused = true)]
    async fn a_transfer_takes_its_bytes_divided_by_the_rate() {
        let pace = Pace::new(Flow::Limited(100_000));
        let took = transfer(&pace, 500).await;
        assert!(is_about(took, 5.0), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn transfers_that_share_a_link_get_equal_parts_of_it() {
        let pace = Pace::new(Flow::Limited(100_000));
        let took = join_all((0..4).map(|_| transfer(&pace, 100))).await;
        assert!(took.iter().all(|took| is_about(*took, 4.0)), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_others_use_what_a_slow_transfer_leaves() {
        let (uplink, slow) = (Pace::new(Flow::Limited(100_000)), Pace::new(Flow::Limited(10_000)));
        let behind_slow_link = async {
            for _ in 0..100 {
                uplink.pass(CHUNK).await;
                slow.pass(CHUNK).await;
            }
        };
        let (took, ()) = tokio::join!(transfer(&uplink, 450), behind_slow_link);
        assert!(is_about(took, 5.0), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_link_does_not_accumulate_a_burst() {
        let pace = Pace::new(Flow::Limited(100_000));
        transfer(&pace, 1).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let took = transfer(&pace, 100).await;
        assert!(is_about(took, 1.0), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_applies_to_waiting_transfers_too() {
        let pace = Pace::new(Flow::Limited(1));
        let change = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            pace.set(Flow::Limited(100_000));
        };
        let (took, ()) = tokio::join!(transfer(&pace, 100), change);
        assert!(is_about(took, 2.0), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_passes_a_still_link_until_it_flows_again() {
        let pace = Pace::new(Flow::Still);
        let mut passing = Box::pin(pace.pass(CHUNK));
        assert!(tokio::time::timeout(Duration::from_hours(1), &mut passing).await.is_err());
        pace.set(Flow::Free);
        assert!(passing.now_or_never().is_some());
    }
}
