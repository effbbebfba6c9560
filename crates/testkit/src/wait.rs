//! Waits for a condition, with a deadline and without fixed sleeps.

use std::time::{Duration, Instant};

use anyhow::bail;

/// How long a condition may take on a busy machine before the test fails.
pub const PATIENCE: Duration = Duration::from_mins(1);

const INTERVAL: Duration = Duration::from_millis(25);

/// Asks until the answer is `Some`, and fails with `what` when the time is over. An error ends the waiting at once.
pub async fn until<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        if start.elapsed() > PATIENCE {
            bail!("after {} s still waiting for {what}", PATIENCE.as_secs());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
