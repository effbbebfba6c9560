//! The time of day. Code that stamps times takes a [`Clock`], so that a simulated day under tokio's paused time takes
//! moments.

use jiff::Timestamp;
use tokio::time::Instant;

/// The time of day.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// The machine's clock, including its corrections.
#[derive(Clone, Copy, Debug)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
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
