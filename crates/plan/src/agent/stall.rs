//! When a pull brings too little to be worth its place.
//!
//! What has arrived is looked at in stretches: each time the least amount has arrived, the next stretch begins. One that
//! lasts too long is a stall. A runtime has its own limit for downloads that stand still, but a registry that sends a byte now and
//! then stays below it.

use std::time::Duration;

/// The least that has to arrive in a stretch: 64 KiB a minute. The slowest links that anybody pulls images over bring more.
pub const LEAST: u64 = 10 * 64 * 1024;
/// How long a stretch may last.
pub const LONGEST: Duration = Duration::from_mins(10);

/// How far a pull is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many bytes have arrived, and more are to come.
    Arrived(u64),
    /// Everything has arrived. Unpacking takes as long as it takes.
    Unpacking,
}

/// Watches one pull.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    began: Duration,
    arrived: u64,
}

impl Watch {
    /// A pull that begins.
    pub fn new(now: Duration) -> Self {
        Self { began: now, arrived: 0 }
    }

    /// Notes how far the pull is, and returns whether it has stalled. A pull of which nothing is known is not judged: nobody
    /// calls this then.
    pub fn has_stalled(&mut self, progress: Progress, now: Duration) -> bool {
        let arrived = match progress {
            Progress::Unpacking => None,
            Progress::Arrived(bytes) => Some(bytes),
        };
        let is_enough = arrived.is_none_or(|bytes| bytes >= self.arrived.saturating_add(LEAST));
        if is_enough {
            *self = Self { began: now, arrived: arrived.unwrap_or(self.arrived) };
        }
        now.saturating_sub(self.began) >= LONGEST
    }
}

/// What is said of a pull that has stalled.
pub fn sentence() -> String {
    let (kibibytes, minutes) = (LEAST / 1024, LONGEST.as_secs() / 60);
    format!("stopped because less than {kibibytes} KiB arrived within {minutes} minutes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minute in which a pull stalls whose bytes at each minute are these.
    fn stalls(arrived: impl Fn(u64) -> Progress) -> Option<u64> {
        let minute = |number| Duration::from_mins(number);
        let mut watch = Watch::new(minute(0));
        (1..100).find(|number| watch.has_stalled(arrived(*number), minute(*number)))
    }

    #[test]
    fn a_pull_that_brings_a_byte_a_minute_is_cut_off_after_ten_minutes() {
        assert_eq!(stalls(Progress::Arrived), Some(10));
        assert_eq!(stalls(|_| Progress::Arrived(0)), Some(10));
    }

    #[test]
    fn a_pull_that_brings_the_least_goes_on() {
        assert_eq!(stalls(|minute| Progress::Arrived(minute * 64 * 1024)), None);
        assert_eq!(stalls(|minute| Progress::Arrived(minute * 63 * 1024)), Some(10));
    }

    #[test]
    fn ten_minutes_are_counted_from_when_enough_had_arrived() {
        assert_eq!(stalls(|minute| Progress::Arrived(minute.min(15) * 1_000_000)), Some(25));
    }

    #[test]
    fn unpacking_is_never_cut_off_and_what_follows_has_its_own_time() {
        let unpacks = |minute| if minute < 50 { Progress::Unpacking } else { Progress::Arrived(0) };
        assert_eq!(stalls(unpacks), Some(59));
    }

    #[test]
    fn the_sentence_says_how_much_and_how_long() {
        assert_eq!(sentence(), "stopped because less than 640 KiB arrived within 10 minutes");
    }
}
