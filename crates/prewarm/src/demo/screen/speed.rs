//! The speed of a download, from the bytes that had arrived at several moments.

use std::collections::VecDeque;
use std::time::Duration;

/// The speed is averaged over this time. With less it would jump, with more it would lag behind.
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub struct Speed(VecDeque<(Duration, u64)>);

impl Speed {
    /// Records how many bytes have arrived in total. Returns whether there are more than before.
    pub fn record(&mut self, received: u64, now: Duration) -> bool {
        let has_more = self.0.back().is_some_and(|(_, last)| *last != received);
        self.0.push_back((now, received));
        // One sample from before the window is kept, so that the whole window is covered.
        while self.0.get(1).is_some_and(|(at, _)| *at + WINDOW <= now) {
            self.0.pop_front();
        }
        has_more
    }

    /// Bytes per second; 0 until there are two samples.
    pub fn per_second(&self) -> u64 {
        let (Some((from, before)), Some((to, after))) = (self.0.front(), self.0.back()) else { return 0 };
        let millis = to.saturating_sub(*from).as_millis();
        let bytes = u128::from(after.saturating_sub(*before));
        u64::try_from((bytes * 1000).checked_div(millis).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(moments: &[(u64, u64)]) -> u64 {
        let mut speed = Speed::default();
        for (millis, received) in moments {
            speed.record(*received, Duration::from_millis(*millis));
        }
        speed.per_second()
    }

    #[test]
    fn a_speed_needs_two_moments() {
        assert_eq!(samples(&[]), 0);
        assert_eq!(samples(&[(100, 5000)]), 0);
        assert_eq!(samples(&[(0, 0), (500, 5000)]), 10_000);
    }

    #[test]
    fn only_the_last_second_counts() {
        assert_eq!(samples(&[(0, 0), (1000, 9000), (2000, 10_000)]), 1000);
        assert_eq!(samples(&[(0, 0), (1000, 9000), (2000, 9000), (3000, 9000)]), 0);
    }

    #[test]
    fn without_elapsed_time_there_is_no_speed() {
        assert_eq!(samples(&[(7, 0), (7, 100)]), 0);
    }
}
