//! When a report may leave, so that a busy node writes little and a person still sees changes at once.
//!
//! ```text
//! small NodeImage   0   ¼   ¾   1¾   2¾   3¾ s …       after work began; each only if something changed
//! from 50 tags on   1   2   4   8   16   24 s …
//! ```
//!
//! When the node falls idle, the last changes leave at once, so work on a large NodeImage that ends within its first second
//! is one report. Progress alone leaves at most every 5 s, and free disk space never causes a report. Time is counted from
//! any fixed moment.

use std::time::Duration;

use super::report::Report;
use super::state::{Note, Phase, TaskState};
use crate::backoff::double;

/// The first interval between reports of one stretch of work. The following ones double.
pub const FIRST_INTERVAL: Duration = Duration::from_millis(250);
/// The first interval for a large NodeImage, which also lies before its first report. Short stretches of work then cost
/// it one write, and the pulls keep the processor that the API server shares with them on small clusters.
pub const FIRST_INTERVAL_LARGE: Duration = Duration::from_secs(1);
/// The longest interval for a small NodeImage.
pub const LONGEST_INTERVAL: Duration = Duration::from_secs(1);
/// The longest interval for a large NodeImage, since its writes cost the API server as much as it is large.
pub const LONGEST_INTERVAL_LARGE: Duration = Duration::from_secs(8);
/// A NodeImage with at least this many tags is large.
pub const LARGE: usize = 50;
/// The shortest interval between reports of nothing but progress.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How much a report adds to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing that is worth a report.
    Nothing,
    /// Only how far pulls are, unpacking included.
    Progress,
    /// Something began or ended, and more is to do.
    Step,
    /// Something ended or went, and nothing is left to do.
    Idle,
}

/// What a report adds to the last one. The amount of room on the disk makes no difference, neither by itself nor in the
/// reason why a task waits.
pub fn compare(last: &Report, next: &Report) -> Change {
    match difference(last, next) {
        Change::Step if next.is_idle() => Change::Idle,
        change => change,
    }
}

fn difference(last: &Report, next: &Report) -> Change {
    if last.tasks.len() != next.tasks.len() || last.first_sync != next.first_sync {
        return Change::Step;
    }
    let pairs = last.tasks.iter().zip(&next.tasks);
    pairs.map(|(last, next)| difference_of_task(last, next)).max().unwrap_or(Change::Nothing)
}

fn difference_of_task(last: &TaskState, next: &TaskState) -> Change {
    let mut aligned = last.clone();
    if says_the_same(last.note.as_ref(), next.note.as_ref()) {
        aligned.note.clone_from(&next.note);
    }
    if aligned == *next {
        return Change::Nothing;
    }
    let is_pulled = last.phase == Phase::Pulling && next.phase == Phase::Pulling;
    if is_pulled && [last, next].iter().any(|state| state.note == Some(Note::Unpacking)) {
        aligned.note.clone_from(&next.note);
    }
    (aligned.percent, aligned.bytes) = (next.percent, next.bytes);
    if aligned == *next { Change::Progress } else { Change::Step }
}

/// Whether two notes say the same. One that was read back from a status has only its text.
fn says_the_same(last: Option<&Note>, next: Option<&Note>) -> bool {
    match (last, next) {
        (Some(Note::Wait(last)), Some(Note::Wait(next))) => last.is_like(next),
        (Some(Note::Text(text)), Some(next)) => *text == next.message(),
        (last, next) => last == next,
    }
}

/// Decides when the next report may leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coalescer {
    sent: Option<Duration>,
    /// How many reports had steps since work began; none while the node is idle.
    steps: Option<u32>,
    /// Since when there is something to report of a large NodeImage whose last report said that it is idle.
    since: Option<Duration>,
}

impl Coalescer {
    /// When a report with this change may leave, if it is worth one at all. That moment is never before `now`.
    /// `desired` is the number of tags in it.
    pub fn due(&mut self, change: Change, desired: usize, now: Duration) -> Option<Duration> {
        let is_large = desired >= LARGE;
        let (first, longest) = if is_large {
            (FIRST_INTERVAL_LARGE, LONGEST_INTERVAL_LARGE)
        } else {
            (FIRST_INTERVAL, LONGEST_INTERVAL)
        };
        // After an idle stretch the first report leaves at once, unless that stretch was no stretch at all.
        let interval = double(first, longest, self.steps.unwrap_or(1));
        let wait = match change {
            Change::Nothing => return None,
            Change::Progress => interval.max(PROGRESS_INTERVAL),
            Change::Step => interval,
            Change::Idle => return Some(now),
        };
        let after_last = self.sent.map_or(now, |sent| sent.saturating_add(wait));
        let after_beginning = if is_large && self.steps.is_none() {
            self.since.get_or_insert(now).saturating_add(first)
        } else {
            now
        };
        Some(after_last.max(after_beginning).max(now))
    }

    /// A report with this change leaves.
    pub fn sent(&mut self, change: Change, now: Duration) {
        self.sent = Some(now);
        self.since = None;
        self.steps = match (change, self.steps) {
            (Change::Idle, _) => None,
            (_, None) => Some(1),
            // Progress is reported in long intervals anyway and does not lengthen those of steps.
            (Change::Nothing | Change::Progress, steps) => steps,
            (Change::Step, Some(steps)) => Some(steps.saturating_add(1)),
        };
    }
}

#[cfg(test)]
mod tests;
