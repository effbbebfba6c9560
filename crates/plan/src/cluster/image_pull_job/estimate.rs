//! How fast a job is and how long it still takes, as far as its own status tells.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::ImagePullJobStatus;

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Nodes in all.
    pub desired: u32,
    /// Nodes that are done, well or not.
    pub done: u32,
    /// Nodes that pull.
    pub active: u32,
    /// Bytes that have arrived and all of them, on the nodes that tell.
    pub bytes: (u64, u64),
    /// How long it has been going on.
    pub elapsed: Duration,
}

impl Progress {
    /// Reads a status. `None` before the job has begun.
    pub fn of(status: &ImagePullJobStatus, now: Timestamp) -> Option<Self> {
        let Time(start) = status.start_time.as_ref()?;
        let end = status.completion_time.as_ref().map_or(now, |Time(end)| *end);
        Some(Self {
            desired: count(status.desired),
            done: count(status.succeeded).saturating_add(count(status.failed)),
            active: count(status.active),
            bytes: (amount(status.bytes_done), amount(status.bytes_total)),
            elapsed: Duration::try_from(end.duration_since(*start)).unwrap_or_default(),
        })
    }

    /// Bytes a second since the beginning.
    pub fn speed(&self) -> Option<u64> {
        let seconds = self.elapsed.as_secs();
        (seconds > 0 && self.bytes.0 > 0).then(|| self.bytes.0 / seconds)
    }

    /// How long it still takes if it goes on like this. `None` if it is over or nothing can be said.
    pub fn left(&self) -> Option<Duration> {
        let (done, desired) = (self.nodes_done(), f64::from(self.desired));
        let is_open = self.done < self.desired && done > 0.0 && !self.elapsed.is_zero();
        is_open.then(|| self.elapsed.mul_f64(((desired - done) / done).clamp(0.0, MOST)))
    }

    /// Nodes that are done; of those that pull, the share of their bytes that is there.
    fn nodes_done(&self) -> f64 {
        let (there, all) = self.bytes;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let share = if all == 0 { 0.0 } else { there as f64 / all as f64 };
        let begun = f64::from(self.done.saturating_add(self.active));
        (begun * share).clamp(f64::from(self.done), f64::from(self.desired))
    }
}

/// No estimate is longer than so many times what has passed: it would only be noise.
const MOST: f64 = 10_000.0;

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn amount(bytes: Option<i64>) -> u64 {
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Progress =
        Progress { desired: 100, done: 50, active: 0, bytes: (0, 0), elapsed: Duration::from_mins(1) };

    #[test]
    fn what_half_is_done_takes_as_long_again() {
        assert_eq!(HALF.left(), Some(Duration::from_mins(1)));
    }

    #[test]
    fn the_first_wave_is_estimated_by_its_bytes() {
        let wave = Progress { done: 0, active: 50, bytes: (25, 100), ..HALF };
        assert_eq!(wave.left(), Some(Duration::from_mins(7)));
        assert_eq!(Progress { bytes: (0, 100), ..wave }.left(), None);
    }

    #[test]
    fn what_is_over_takes_no_time_and_what_has_not_begun_is_unknown() {
        assert_eq!(Progress { done: 100, ..HALF }.left(), None);
        assert_eq!(Progress { elapsed: Duration::ZERO, ..HALF }.left(), None);
        assert_eq!(Progress::of(&ImagePullJobStatus::default(), Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn the_speed_is_that_of_the_whole_time() {
        assert_eq!(Progress { bytes: (6000, 9000), ..HALF }.speed(), Some(100));
        assert_eq!(HALF.speed(), None);
    }
}
