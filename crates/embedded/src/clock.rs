//! Where time comes from. Everything the server stamps or waits for follows the same clock, so that a simulated day
//! under tokio's paused time takes moments.

use jiff::Timestamp;
use tokio::time::Instant;

/// The time of day.
pub trait Clock: Send + Sync {
    /// The present.
    fn now(&self) -> Timestamp;
}

/// Follows tokio's clock from a chosen beginning: real time in a program, paused time in a test.
#[derive(Debug)]
pub struct TokioClock {
    beginning: Timestamp,
    start: Instant,
}

impl TokioClock {
    /// A clock that shows `beginning` now.
    pub fn starting_at(beginning: Timestamp) -> Self {
        Self { beginning, start: Instant::now() }
    }

    /// A clock that shows the machine's time.
    pub fn of_the_machine() -> Self {
        Self::starting_at(Timestamp::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.beginning + self.start.elapsed()
    }
}
