//! How long a tag may take on a node, and how long its entry stays there (kruise R54).
//!
//! What is random here is drawn by the caller: a number from 0 to 1, without 1.

use prewarm_api::kruise::ImageTagPullPolicy;

use super::{Demand, Limits, Until};

/// The entry of a `Never` job lives a day, because its end is what starts the next pull (kruise R56).
const REFRESH_INTERVAL: i32 = 86_400;
/// The daily pull comes up to ten minutes early or late, so that not all nodes ask the registry at once.
const REFRESH_SPREAD: i32 = 1_200;
/// What a `Never` job grants all attempts together at least.
const SHORTEST_REFRESH_DEADLINE: i64 = 1_800;
/// The entries of an `Always` job go over five minutes, so that not all nodes are written at once.
const REMOVAL_SPREAD: i32 = 300;

/// The policy of a tag that is written for a demand. `always_ttl` is how many seconds longer than the job itself the
/// entry of an `Always` job stays.
pub fn tag_policy(demand: &Demand, always_ttl: i32, jitter: f64) -> ImageTagPullPolicy {
    let Limits { timeout_seconds, backoff_limit } = demand.limits;
    let (ttl_seconds_after_finished, active_deadline_seconds) = match demand.until {
        Until::Withdrawn => (
            REFRESH_INTERVAL - REFRESH_SPREAD / 2 + part_of(REFRESH_SPREAD, jitter),
            Some(SHORTEST_REFRESH_DEADLINE.max(timeout_seconds.into())),
        ),
        Until::Kept => (i32::MAX, None),
        Until::Done { deadline_seconds, ttl_seconds } => {
            let run = longest_run(demand.limits, deadline_seconds, ttl_seconds);
            let ttl = run.saturating_add(always_ttl).saturating_add(part_of(REMOVAL_SPREAD, jitter));
            (ttl, deadline_seconds)
        }
    };
    ImageTagPullPolicy { timeout_seconds, backoff_limit, ttl_seconds_after_finished, active_deadline_seconds }
}

/// How long an `Always` job may need the result: until it is deleted, else until its deadline, else as long as the
/// attempts of one node take.
fn longest_run(limits: Limits, deadline_seconds: Option<i64>, ttl_seconds: Option<i32>) -> i32 {
    let until_deadline = || deadline_seconds.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
    let attempts = limits.timeout_seconds.saturating_mul(limits.backoff_limit);
    ttl_seconds.or_else(until_deadline).unwrap_or(attempts)
}

#[expect(clippy::cast_possible_truncation, reason = "the product lies between 0 and the spread")]
fn part_of(spread: i32, jitter: f64) -> i32 {
    (f64::from(spread) * jitter.clamp(0.0, 1.0)).floor().min(f64::from(spread - 1)) as i32
}

/// A policy under which the pull of neither job is cut short: of each field the larger value, and no deadline if one
/// of them has none.
pub fn longest(one: &ImageTagPullPolicy, other: &ImageTagPullPolicy) -> ImageTagPullPolicy {
    ImageTagPullPolicy {
        timeout_seconds: one.timeout_seconds.max(other.timeout_seconds),
        backoff_limit: one.backoff_limit.max(other.backoff_limit),
        ttl_seconds_after_finished: one.ttl_seconds_after_finished.max(other.ttl_seconds_after_finished),
        active_deadline_seconds: one
            .active_deadline_seconds
            .zip(other.active_deadline_seconds)
            .map(|(one, other)| one.max(other)),
    }
}

#[cfg(test)]
mod tests;
