//! How a node slows down for an overloaded registry: with all its tasks, not only with the one that was refused.
//!
//! ```text
//! overloaded ─▶ closed 2 s ─▶ open ─▶ overloaded ─▶ closed 4 s ─▶ … ─▶ closed 5 min at most
//!                                 └─▶ served: the next time is half as long, and at last none
//! ```
//!
//! What counts as overloaded (429 and 5xx) is the caller's to say. Time is counted from any fixed moment.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backoff::{double, shorten};

/// How long a registry is left alone the first time.
pub const FIRST_CLOSURE: Duration = Duration::from_secs(2);
/// The longest time that a registry is left alone.
pub const LONGEST_CLOSURE: Duration = Duration::from_mins(5);
/// At most this many overloaded registries are remembered. Of more, those that open first are forgotten.
pub const MOST_REGISTRIES: usize = 64;

/// Which registries are left alone, and until when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    slow: BTreeMap<String, Slow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slow {
    /// How often in a row it was overloaded, less how often it served since.
    strikes: u32,
    open_at: Duration,
}

impl Pace {
    /// A registry said that it is overloaded. While it is closed that says nothing more: the request began before.
    pub fn overloaded(&mut self, registry: &str, now: Duration, jitter: f64) {
        let strikes = match self.slow.get(registry) {
            Some(slow) if now < slow.open_at => return,
            // Trouble that lies longer back than any closure is over.
            Some(slow) if now < slow.open_at.saturating_add(LONGEST_CLOSURE) => {
                slow.strikes.saturating_add(1)
            }
            _ => 1,
        };
        let closure = shorten(double(FIRST_CLOSURE, LONGEST_CLOSURE, strikes), jitter);
        self.slow.insert(registry.to_owned(), Slow { strikes, open_at: now.saturating_add(closure) });
        self.forget_beyond_bound();
    }

    /// A registry served a pull. One strike less halves the next closure; without any it is open at once.
    pub fn served(&mut self, registry: &str) {
        let Some(slow) = self.slow.get_mut(registry) else { return };
        slow.strikes = slow.strikes.min(MOST_STRIKES) - 1;
        if slow.strikes == 0 {
            self.slow.remove(registry);
        }
    }

    /// When a registry may be asked again, if it was overloaded. That moment may have passed.
    pub fn open_at(&self, registry: &str) -> Option<Duration> {
        self.slow.get(registry).map(|slow| slow.open_at)
    }

    fn forget_beyond_bound(&mut self) {
        while self.slow.len() > MOST_REGISTRIES {
            let first = self.slow.iter().min_by_key(|(_, slow)| slow.open_at).map(|(name, _)| name.clone());
            first.and_then(|name| self.slow.remove(&name));
        }
    }
}

/// Strikes beyond those that make the longest closure do not make it harder to come back: 2 s × 2^8 > 5 min.
const MOST_STRIKES: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "registry.example:5000";

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A registry that is overloaded again each time it opens.
    fn overload(pace: &mut Pace, times: usize) -> Duration {
        for _ in 0..times {
            let now = pace.open_at(HOST).unwrap_or_default();
            pace.overloaded(HOST, now, 0.0);
        }
        pace.open_at(HOST).unwrap()
    }

    #[test]
    fn a_registry_that_never_complained_is_open() {
        assert_eq!(Pace::default().open_at(HOST), None);
    }

    #[test]
    fn closures_double_from_two_seconds_to_five_minutes() {
        let mut pace = Pace::default();
        let opens: Vec<u64> = (0..10).map(|_| overload(&mut pace, 1).as_secs()).collect();
        let closures: Vec<u64> =
            std::iter::once(opens[0]).chain(opens.windows(2).map(|two| two[1] - two[0])).collect();
        assert_eq!(closures, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn jitter_shortens_a_closure_by_up_to_half() {
        let mut pace = Pace::default();
        pace.overloaded(HOST, seconds(10), 1.0);
        assert_eq!(pace.open_at(HOST), Some(seconds(11)));
    }

    #[test]
    fn pulls_that_were_under_way_together_count_as_one_complaint() {
        let mut pace = Pace::default();
        pace.overloaded(HOST, seconds(10), 0.0);
        pace.overloaded(HOST, seconds(11), 0.0);
        assert_eq!(pace.open_at(HOST), Some(seconds(12)));
        pace.overloaded(HOST, seconds(12), 0.0);
        assert_eq!(pace.open_at(HOST), Some(seconds(16)));
    }

    #[test]
    fn other_registries_are_not_slowed_down() {
        let mut pace = Pace::default();
        overload(&mut pace, 3);
        assert_eq!(pace.open_at("other.example"), None);
    }

    #[test]
    fn a_served_pull_halves_the_next_closure_and_at_last_opens() {
        let mut pace = Pace::default();
        let open = overload(&mut pace, 2);
        pace.served(HOST);
        pace.overloaded(HOST, open, 0.0);
        assert_eq!(pace.open_at(HOST), Some(open + seconds(4)));
        pace.served(HOST);
        pace.served(HOST);
        assert_eq!(pace, Pace::default());
        pace.served(HOST);
        assert_eq!(pace, Pace::default());
    }

    #[test]
    fn a_few_served_pulls_are_enough_to_forget_a_long_outage() {
        let mut pace = Pace::default();
        overload(&mut pace, 1000);
        for _ in 0..9 {
            pace.served(HOST);
        }
        assert_eq!(pace, Pace::default());
    }

    #[test]
    fn trouble_of_long_ago_does_not_make_a_closure_longer() {
        let mut pace = Pace::default();
        let later = overload(&mut pace, 8) + LONGEST_CLOSURE;
        pace.overloaded(HOST, later, 0.0);
        assert_eq!(pace.open_at(HOST), Some(later + FIRST_CLOSURE));
    }

    #[test]
    fn no_more_registries_are_remembered_than_the_bound() {
        let mut pace = Pace::default();
        for number in 0..=MOST_REGISTRIES as u64 {
            pace.overloaded(&format!("host-{number}"), seconds(number), 0.0);
        }
        assert_eq!(pace.slow.len(), MOST_REGISTRIES);
        assert_eq!(pace.open_at("host-0"), None);
        assert_eq!(pace.open_at("host-64"), Some(seconds(66)));
    }

    #[test]
    fn the_largest_time_does_not_panic() {
        let mut pace = Pace::default();
        pace.overloaded(HOST, Duration::MAX, 0.0);
        assert_eq!(pace.open_at(HOST), Some(Duration::MAX));
    }
}
