//! When a report may leave, so that a node with much to do writes little and a person still sees it at once.
//!
//! ```text
//! small NodeImage   0   ¼   ¾   1¾   2¾   3¾ s …       after work began; each only if something changed
//! from 50 tags on   1   2   4   8   16   24 s …
//! ```
//!
//! Whatever is left to say leaves at once when the node falls idle: work that ends within the first second is one report
//! of a large NodeImage. Progress alone leaves every 5 s at most, and free
//! disk never causes a report. Time is counted from any fixed moment.

use std::collections::BTreeMap;
use std::time::Duration;

use prewarm_api::kruise::{ImageTagStatus, NodeImageStatus, PullPhase};

use super::entry::UNPACKING;
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
/// From so many tags on a NodeImage is large.
pub const LARGE: i32 = 50;
/// Between reports that tell of nothing but progress lies at least this.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How much a report tells that the last one did not.
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

/// What a report tells that the last one did not. The room on the disk is not looked at, and neither are the numbers
/// in the texts of waiting tags, because they tell of that room.
pub fn compare(last: &NodeImageStatus, next: &NodeImageStatus) -> Change {
    match difference(last, next) {
        Change::Step if next.pulling + next.waiting == 0 => Change::Idle,
        change => change,
    }
}

fn difference(last: &NodeImageStatus, next: &NodeImageStatus) -> Change {
    let numbers = |status: &NodeImageStatus| {
        [status.desired, status.succeeded, status.failed, status.pulling, status.waiting]
    };
    if numbers(last) != numbers(next) || last.first_sync_status != next.first_sync_status {
        return Change::Step;
    }
    let images = |status: &NodeImageStatus| status.image_statuses.as_ref().map_or(0, BTreeMap::len);
    if images(last) != images(next) {
        return Change::Step;
    }
    let pairs = last.image_statuses.iter().flatten().zip(next.image_statuses.iter().flatten());
    let changes =
        pairs.map(
            |((name, last), (next_name, next))| {
                if name == next_name { difference_of_tags(&last.tags, &next.tags) } else { Change::Step }
            },
        );
    changes.max().unwrap_or(Change::Nothing)
}

fn difference_of_tags(last: &[ImageTagStatus], next: &[ImageTagStatus]) -> Change {
    if last.len() != next.len() {
        return Change::Step;
    }
    last.iter().zip(next).map(|(last, next)| difference_of_tag(last, next)).max().unwrap_or(Change::Nothing)
}

fn difference_of_tag(last: &ImageTagStatus, next: &ImageTagStatus) -> Change {
    if last == next {
        return Change::Nothing;
    }
    let mut aligned = last.clone();
    let waits = last.phase == PullPhase::Waiting && next.phase == PullPhase::Waiting;
    if waits && without_numbers(last) == without_numbers(next) {
        aligned.message.clone_from(&next.message);
    }
    if aligned == *next {
        return Change::Nothing;
    }
    let unpacks = [last, next].iter().any(|status| status.message.as_deref() == Some(UNPACKING));
    if unpacks && last.phase == PullPhase::Pulling && next.phase == PullPhase::Pulling {
        aligned.message.clone_from(&next.message);
    }
    aligned.progress = next.progress;
    aligned.bytes_done = next.bytes_done;
    aligned.bytes_total = next.bytes_total;
    if aligned == *next { Change::Progress } else { Change::Step }
}

fn without_numbers(status: &ImageTagStatus) -> Option<String> {
    let message = status.message.as_ref()?;
    Some(message.chars().filter(|one| !one.is_ascii_digit() && *one != '.').collect())
}

/// Decides when the next report may leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coalescer {
    sent: Option<Duration>,
    /// How many reports told of steps since work began; none while the node is idle.
    steps: Option<u32>,
    /// Since when there is something to tell of a large NodeImage whose last report said that it is idle.
    since: Option<Duration>,
}

impl Coalescer {
    /// When a report with this change may leave, if it is worth one at all. That moment is never before `now`.
    /// `desired` is the number of tags in it.
    pub fn due(&mut self, change: Change, desired: i32, now: Duration) -> Option<Duration> {
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
            // Progress is told in long intervals anyway and does not lengthen those of steps.
            (Change::Nothing | Change::Progress, steps) => steps,
            (Change::Step, Some(steps)) => Some(steps.saturating_add(1)),
        };
    }
}

#[cfg(test)]
mod tests;
