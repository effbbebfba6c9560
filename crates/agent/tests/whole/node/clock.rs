//! A time of day that follows the test's time, and jumps on request.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use prewarm_clock::{Clock, TokioClock};

pub struct JumpingClock {
    steady: TokioClock,
    offset: AtomicI64,
}

impl JumpingClock {
    pub fn new() -> Self {
        let beginning: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        Self { steady: TokioClock::starting_at(beginning), offset: AtomicI64::new(0) }
    }

    /// Moves the time of day by this many seconds.
    pub fn jump(&self, seconds: i64) {
        self.offset.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        self.steady.now() + SignedDuration::from_secs(self.offset.load(Ordering::Relaxed))
    }
}
