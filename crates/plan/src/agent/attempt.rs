//! How long and how often a task may try: the timeline of its attempts (kruise D20, D21).
//!
//! ```text
//! start ──attempt──✗─pause──attempt──✗─pause──attempt (cut)─┤ deadline: gives up
//!         ≤ timeout         ≤ timeout         ≤ what remains
//! ```

use std::time::Duration;

/// How long and how often a task may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The time of one attempt.
    pub(crate) timeout: Duration,
    pub(crate) attempts: u32,
    /// The time of all attempts together, counted from the start of the first.
    pub(crate) deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try, for at most this long.
    Attempt {
        timeout: Duration,
    },
    GiveUp(Reason),
}

/// Why a task fails for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Every attempt failed. The last one's failure says why.
    NoAttemptLeft,
    /// All attempts together took too long.
    Deadline,
}

impl Timeline {
    /// What to do once `begun` attempts have ended, `elapsed` after the start of the first one.
    ///
    /// The deadline is asked first: since it cuts every attempt, one that ends past it ended because of it.
    pub fn next(&self, begun: u32, elapsed: Duration) -> Next {
        let remaining = self.remaining(elapsed);
        if remaining == Some(Duration::ZERO) {
            return Next::GiveUp(Reason::Deadline);
        }
        if begun >= self.attempts {
            return Next::GiveUp(Reason::NoAttemptLeft);
        }
        Next::Attempt { timeout: remaining.map_or(self.timeout, |remaining| remaining.min(self.timeout)) }
    }

    /// The time until the deadline, if there is one. No pause needs to be longer.
    pub fn remaining(&self, elapsed: Duration) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(timeout: u64, attempts: u32, deadline: Option<u64>) -> Timeline {
        Timeline { timeout: seconds(timeout), attempts, deadline: deadline.map(seconds) }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_largest_numbers_overflow_nothing() {
        let timeline = limits(2_147_483_647, 2_147_483_648, Some(9_223_372_036_854_775_807));
        let timeout = seconds(2_147_483_647);
        assert_eq!(timeline.next(2_147_483_647, seconds(1)), Next::Attempt { timeout });
        assert_eq!(timeline.next(0, Duration::MAX), Next::GiveUp(Reason::Deadline));
    }

    #[test]
    fn attempts_go_on_until_none_is_left() {
        let timeline = limits(30, 2, None);
        assert_eq!(timeline.next(0, seconds(0)), Next::Attempt { timeout: seconds(30) });
        assert_eq!(timeline.next(1, seconds(31)), Next::Attempt { timeout: seconds(30) });
        assert_eq!(timeline.next(2, seconds(62)), Next::GiveUp(Reason::NoAttemptLeft));
    }

    #[test]
    fn an_attempt_is_cut_to_what_remains_until_the_deadline() {
        let timeline = limits(30, 10, Some(40));
        assert_eq!(timeline.next(1, seconds(31)), Next::Attempt { timeout: seconds(9) });
        assert_eq!(timeline.remaining(seconds(31)), Some(seconds(9)));
    }

    #[test]
    fn no_attempt_begins_at_or_past_the_deadline() {
        let timeline = limits(30, 10, Some(40));
        assert_eq!(timeline.next(2, seconds(40)), Next::GiveUp(Reason::Deadline));
        assert_eq!(limits(30, 10, Some(0)).next(0, seconds(0)), Next::GiveUp(Reason::Deadline));
    }

    #[test]
    fn a_last_attempt_that_the_deadline_cut_fails_for_the_deadline() {
        let timeline = limits(30, 1, Some(10));
        assert_eq!(timeline.next(0, seconds(0)), Next::Attempt { timeout: seconds(10) });
        assert_eq!(timeline.next(1, seconds(10)), Next::GiveUp(Reason::Deadline));
    }
}
