//! Waits for a time that may never be set.

use std::time::Duration;

use tokio::time::Instant;

/// Sleeps until `at` has passed since `start`, or for ever if there is nothing to wake up for.
pub async fn sleep_until(start: Instant, at: Option<Duration>) {
    match at {
        Some(at) => tokio::time::sleep_until(start + at).await,
        None => std::future::pending().await,
    }
}
