//! Which runs are due, and which were due and do not happen.
//!
//! ```text
//!        settled         cutoff                   now
//! ──────────┼──×───×───────┼────×────×─────×───────┼──▶
//!              └ too late ┘    └ missed ┘  └ the run that happens
//! ```
//!
//! Up to `settled`, every run was made or counted; it stands in the status, so that no outage, restart or history limit
//! brings a run back (kruise W23). Only the latest run that was missed happens, however many there were (kruise W24).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{AdvancedCronJob, SkipReason};

use super::hindrance;
use crate::schedule::Schedule;

/// Runs that were due and do not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Why.
    pub reason: SkipReason,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
}

/// The time up to which every run was made or counted as skipped.
pub fn settled_until(cron: &AdvancedCronJob) -> Timestamp {
    let status = cron.status.as_ref();
    let begun = status.and_then(|status| status.last_schedule_time.as_ref());
    let skipped = status.iter().flat_map(|status| &status.skipped_runs).flatten().map(|runs| &runs.last_time);
    let times = begun.into_iter().chain(skipped).chain(&cron.metadata.creation_timestamp);
    times.map(|Time(at)| *at).max().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The latest run that has to happen now, if one has to.
pub fn latest(
    cron: &AdvancedCronJob,
    schedule: &Schedule,
    settled: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let latest = schedule.missed(settled, now)?.latest;
    cutoff(cron, now).is_none_or(|cutoff| latest > cutoff).then_some(latest)
}

/// The runs after `settled` and before `until` that do not happen, by reason. `made` of them were made all the same.
pub fn skipped(
    cron: &AdvancedCronJob,
    schedule: &Schedule,
    settled: Timestamp,
    until: Timestamp,
    made: u64,
    now: Timestamp,
) -> Vec<Skipped> {
    let Ok(until) = until.checked_sub(SignedDuration::from_secs(1)) else { return Vec::new() };
    let Some(all) = schedule.missed(settled, until) else { return Vec::new() };
    let mut left = all.count.saturating_sub(made);
    let mut skipped = Vec::new();
    let mut add = |reason, count: u64, first, last| {
        if count > 0 {
            skipped.push(Skipped { reason, count, first, last });
        }
    };
    if let Some(reason) = hindrance::told(cron) {
        add(reason, left, all.first, all.latest);
        return skipped;
    }
    let late = cutoff(cron, now).and_then(|cutoff| schedule.missed(settled, cutoff.min(until)));
    if let Some(late) = late {
        let count = late.count.min(left);
        add(SkipReason::TooLate, count, late.first, late.latest);
        left -= count;
    }
    let first = late.and_then(|late| schedule.next(late.latest)).unwrap_or(all.first);
    add(SkipReason::Missed, left, first, all.latest);
    skipped
}

/// Runs up to this time can no longer start (kruise R99).
fn cutoff(cron: &AdvancedCronJob, now: Timestamp) -> Option<Timestamp> {
    let seconds = u64::try_from(cron.spec.starting_deadline_seconds?).unwrap_or(0);
    Some(now.checked_sub(Duration::from_secs(seconds)).unwrap_or(Timestamp::MIN))
}
