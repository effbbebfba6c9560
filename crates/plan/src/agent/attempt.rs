//! How long and how often a task may try: the timeline of its attempts (kruise D20, D21).
//!
//! ```text
//! start ──attempt──✗─pause──attempt──✗─pause──attempt (cut)─┤ deadline: gives up
//!         ≤ timeout         ≤ timeout         ≤ what remains
//! ```

use std::time::Duration;

use prewarm_api::kruise::ImageTagPullPolicy;
use prewarm_api::names::message;

/// The time of one attempt if the policy gives none that could be meant.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
/// The repetitions if the policy gives none that could be meant.
pub const DEFAULT_BACKOFF_LIMIT: u32 = 3;

/// How long and how often a task may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The time of one attempt.
    pub timeout: Duration,
    /// The number of attempts.
    pub attempts: u32,
    /// The time of all attempts together, counted from the start of the first.
    pub deadline: Option<Duration>,
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try, for at most this long.
    Attempt {
        /// The time of this attempt.
        timeout: Duration,
    },
    /// Fail for good.
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

impl Reason {
    /// The text that clients look for, where there is one.
    pub const fn message(self) -> Option<&'static str> {
        match self {
            Self::NoAttemptLeft => None,
            Self::Deadline => Some(message::TASK_DEADLINE),
        }
    }
}

impl Timeline {
    /// Reads a policy. No attempt could succeed in no time, so a timeout of 0 means the default, as do negative
    /// numbers, which the schema refuses but an older one may have stored.
    pub fn of(policy: &ImageTagPullPolicy) -> Self {
        let timeout = u64::try_from(policy.timeout_seconds).ok().filter(|seconds| *seconds > 0);
        let repetitions = u32::try_from(policy.backoff_limit).unwrap_or(DEFAULT_BACKOFF_LIMIT);
        let deadline = policy.active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            attempts: repetitions.saturating_add(1),
            deadline: deadline.map(Duration::from_secs),
        }
    }

    /// What to do after so many attempts were begun and ended, so long after the start of the first.
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

    fn policy(timeout: i32, backoff: i32, deadline: Option<i64>) -> ImageTagPullPolicy {
        ImageTagPullPolicy {
            timeout_seconds: timeout,
            backoff_limit: backoff,
            active_deadline_seconds: deadline,
            ..ImageTagPullPolicy::default()
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_policy_gives_one_attempt_more_than_repetitions() {
        let timeline = Timeline::of(&policy(30, 2, Some(90)));
        assert_eq!(timeline, Timeline { timeout: seconds(30), attempts: 3, deadline: Some(seconds(90)) });
    }

    #[test]
    fn numbers_that_cannot_be_meant_give_the_defaults() {
        let usual = Timeline { timeout: seconds(600), attempts: 4, deadline: None };
        assert_eq!(Timeline::of(&policy(0, 3, None)), usual);
        assert_eq!(Timeline::of(&policy(-1, -1, Some(-1))), usual);
        assert_eq!(Timeline::of(&policy(i32::MIN, i32::MIN, Some(i64::MIN))), usual);
    }

    #[test]
    fn the_largest_numbers_overflow_nothing() {
        let timeline = Timeline::of(&policy(i32::MAX, i32::MAX, Some(i64::MAX)));
        assert_eq!(timeline.attempts, 2_147_483_648);
        let timeout = seconds(2_147_483_647);
        assert_eq!(timeline.next(2_147_483_647, seconds(1)), Next::Attempt { timeout });
        assert_eq!(timeline.next(0, Duration::MAX), Next::GiveUp(Reason::Deadline));
    }

    #[test]
    fn attempts_go_on_until_none_is_left() {
        let timeline = Timeline::of(&policy(30, 1, None));
        assert_eq!(timeline.next(0, seconds(0)), Next::Attempt { timeout: seconds(30) });
        assert_eq!(timeline.next(1, seconds(31)), Next::Attempt { timeout: seconds(30) });
        assert_eq!(timeline.next(2, seconds(62)), Next::GiveUp(Reason::NoAttemptLeft));
    }

    #[test]
    fn an_attempt_is_cut_to_what_remains_until_the_deadline() {
        let timeline = Timeline::of(&policy(30, 9, Some(40)));
        assert_eq!(timeline.next(1, seconds(31)), Next::Attempt { timeout: seconds(9) });
        assert_eq!(timeline.remaining(seconds(31)), Some(seconds(9)));
    }

    #[test]
    fn no_attempt_begins_at_or_past_the_deadline() {
        let timeline = Timeline::of(&policy(30, 9, Some(40)));
        assert_eq!(timeline.next(2, seconds(40)), Next::GiveUp(Reason::Deadline));
        assert_eq!(Timeline::of(&policy(30, 9, Some(0))).next(0, seconds(0)), Next::GiveUp(Reason::Deadline));
        assert_eq!(Reason::Deadline.message(), Some("pulling exceeds the activeDeadlineSeconds"));
    }

    #[test]
    fn a_last_attempt_that_the_deadline_cut_fails_for_the_deadline() {
        let timeline = Timeline::of(&policy(30, 0, Some(10)));
        assert_eq!(timeline.next(0, seconds(0)), Next::Attempt { timeout: seconds(10) });
        assert_eq!(timeline.next(1, seconds(10)), Next::GiveUp(Reason::Deadline));
    }
}
