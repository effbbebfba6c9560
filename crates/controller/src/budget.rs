//! How many requests a second the API server is asked at most.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A bucket of requests. Clones share it.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The time that one request costs.
    cost: Duration,
    /// The time that may be saved up.
    most: Duration,
    /// Until when everything is spent: what lies before the present is saved up.
    spent_until: Arc<Mutex<Instant>>,
}

impl Budget {
    /// So many requests a second in the long run, and so many at once after a rest.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let cost = Duration::from_secs(1) / per_second.max(1);
        let most = cost.saturating_mul(burst.max(1));
        let now = Instant::now();
        Self { cost, most, spent_until: Arc::new(Mutex::new(now.checked_sub(most).unwrap_or(now))) }
    }

    /// Waits until one more request may be sent.
    pub async fn take(&self) {
        let at = {
            let mut spent_until = self.spent_until.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let oldest = now.checked_sub(self.most).unwrap_or(now);
            *spent_until = (*spent_until).max(oldest) + self.cost;
            *spent_until
        };
        tokio::time::sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_requests_come_at_the_given_rate() {
        let budget = Budget::new(10, 5);
        let start = Instant::now();
        for _ in 0..5 {
            budget.take().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            budget.take().await;
        }
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_saves_up_no_more_than_a_burst() {
        let budget = Budget::new(10, 5);
        tokio::time::sleep(Duration::from_mins(1)).await;
        let start = Instant::now();
        for _ in 0..6 {
            budget.take().await;
        }
        assert!(start.elapsed() >= Duration::from_millis(99));
    }
}
