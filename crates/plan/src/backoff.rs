//! How long a failed attempt waits before the next one (kruise D23).
//!
//! ```text
//! failures   1     2     3     4     5      6 and more
//! pause      1 s   2 s   4 s   8 s   16 s   30 s         (and up to half of it less, by jitter)
//! ```
//!
//! Whether there is a next attempt at all is decided in `attempt`; nobody pauses after the last one.

use std::time::Duration;

/// The pause after the first failure.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause after so many failures in a row. `jitter` is a random number from 0 to 1 and only shortens, so that
/// nodes that failed together do not come back together.
pub fn pause(failures: u32, jitter: f64) -> Duration {
    shorten(double(FIRST_PAUSE, LONGEST_PAUSE, failures), jitter)
}

/// `first`, doubled for each time but the first, up to `longest`; nothing for no time at all.
pub fn double(first: Duration, longest: Duration, times: u32) -> Duration {
    let Some(doublings) = times.checked_sub(1) else { return Duration::ZERO };
    let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

/// Between the whole (`jitter` 0) and half (`jitter` 1) of a pause. What is no number counts as 0.
pub fn shorten(pause: Duration, jitter: f64) -> Duration {
    let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
    pause.mul_f64(1.0 - jitter / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_one_second_to_thirty() {
        let pauses: Vec<u64> = (1..=8).map(|failures| pause(failures, 0.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn nobody_pauses_before_a_failure() {
        assert_eq!(pause(0, 0.5), Duration::ZERO);
    }

    #[test]
    fn jitter_takes_away_at_most_half() {
        let shortened = [0.0, 0.5, 1.0].map(|jitter| pause(3, jitter));
        assert_eq!(shortened, [4000, 3000, 2000].map(Duration::from_millis));
    }

    #[test]
    fn any_number_of_failures_and_any_jitter_give_a_pause_within_bounds() {
        for failures in [1, 31, 32, 33, u32::MAX] {
            for jitter in [f64::NEG_INFINITY, -1.0, 0.3, 2.0, f64::INFINITY, f64::NAN] {
                let pause = pause(failures, jitter);
                assert!((FIRST_PAUSE / 2..=LONGEST_PAUSE).contains(&pause), "{failures} {jitter}: {pause:?}");
            }
        }
    }
}
