//! Waits for a time that may never be set, and for one that nobody shares.

use std::time::Duration;

use tokio::time::Instant;

/// Sleeps until `at` has passed since `start`, or for ever if there is nothing to wake up for.
pub async fn sleep_until(start: Instant, at: Option<Duration>) {
    match at {
        Some(at) => tokio::time::sleep_until(start + at).await,
        None => std::future::pending().await,
    }
}

/// Sleeps for a random part of this time, so that thousands that begin at the same moment do not ask at the same moment.
pub async fn sleep_within(time: Duration) {
    tokio::time::sleep(time.mul_f64(rand::random())).await;
}
