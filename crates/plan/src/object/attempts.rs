//! Writes to one object: one at a time, and after trouble only after a pause.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff::{double, shorten};

/// The first pause after trouble.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// After so many collisions in a row there are pauses too.
const FREE_COLLISIONS: u32 = 3;

/// How writes to one object go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    is_busy: bool,
    failures: u32,
    not_before: Option<Timestamp>,
}

impl Attempts {
    /// Whether nothing may be written now: a write is under way, or a pause.
    pub fn is_blocked(&self, now: Timestamp) -> bool {
        self.is_busy || self.not_before.is_some_and(|at| now < at)
    }

    /// Whether a write is under way.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether the last write went wrong: whoever has a choice tries elsewhere first.
    pub fn is_failing(&self) -> bool {
        self.not_before.is_some()
    }

    /// When the pause ends, if there is one.
    pub fn pause_ends(&self) -> Option<Timestamp> {
        self.not_before.filter(|_| !self.is_busy)
    }

    /// A write begins.
    pub fn begin(&mut self) {
        self.is_busy = true;
    }

    /// The write arrived.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// The write did not arrive, or not as it was meant. The pauses double; `jitter` is a random number from 0 to 1.
    pub fn fail(&mut self, now: Timestamp, jitter: f64) {
        let failures = self.failures.saturating_add(1);
        let pause = shorten(double(FIRST_PAUSE, LONGEST_PAUSE, failures), jitter);
        *self = Self { is_busy: false, failures, not_before: Some(now + pause) };
    }

    /// The object was changed meanwhile: nobody's fault, so the next try comes at once, unless that happens again and
    /// again.
    pub fn collide(&mut self, now: Timestamp, jitter: f64) {
        if self.failures < FREE_COLLISIONS {
            *self = Self { is_busy: false, failures: self.failures + 1, not_before: None };
        } else {
            self.fail(now, jitter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_end_with_a_success() {
        let mut attempts = Attempts::default();
        let now = Timestamp::UNIX_EPOCH;
        let mut pauses = Vec::new();
        for _ in 0..13 {
            attempts.fail(now, 0.0);
            pauses.push(attempts.pause_ends().map(|at| at.duration_since(now).as_millis()));
        }
        assert_eq!(pauses[..3], [Some(200), Some(400), Some(800)]);
        assert_eq!(pauses[12], Some(300_000));
        attempts.succeed();
        assert_eq!(attempts, Attempts::default());
    }

    #[test]
    fn one_write_is_under_way_at_a_time() {
        let mut attempts = Attempts::default();
        attempts.begin();
        assert!(attempts.is_blocked(Timestamp::UNIX_EPOCH));
        attempts.collide(Timestamp::UNIX_EPOCH, 0.0);
        assert!(!attempts.is_blocked(Timestamp::UNIX_EPOCH));
    }
}
