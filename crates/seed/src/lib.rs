//! The seeds that a test plays.
//!
//! Tests give the same result in every run, so each has fixed seeds. `cargo xtask test --repeat` chooses others, and a
//! person repeats a failed seed with the number that the test printed.

use std::env;
use std::ops::Range;

/// The first seed, instead of 0.
pub const FIRST: &str = "PREWARM_SEED";
/// How many seeds each test plays, instead of its usual number: more take longer and find more.
pub const COUNT: &str = "PREWARM_SEEDS";

/// The seed of a test that plays only one.
pub fn first() -> u64 {
    number(FIRST).unwrap_or(0)
}

/// The seeds of a test that usually plays this many.
pub fn several(usual: u64) -> Range<u64> {
    range(first(), number(COUNT).unwrap_or(usual))
}

fn range(first: u64, count: u64) -> Range<u64> {
    first..first.saturating_add(count)
}

/// Panics on anything but a number: a seed that is silently ignored would show nothing.
fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_follow_the_first_one() {
        assert_eq!(range(0, 3), 0..3);
        assert_eq!(range(7, 2), 7..9);
        assert_eq!(range(u64::MAX, 2), u64::MAX..u64::MAX);
    }
}
