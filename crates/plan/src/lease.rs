//! Which of several processes leads: whoever holds a Lease, by the rules of Kubernetes' own controllers.
//!
//! ```text
//! leader   renews ─ 2 s ─ renews ─ 2 s ─ cannot renew … 10 s after the last good one it stops
//! others        see it            see it ─────────────────────── 15 s ───────▶ take over
//! ```
//!
//! The leader counts from the moment at which it sent a renewal, the others from the moment at which they saw it. The
//! first is earlier, so one stops before another begins, whatever their clocks say: the times in a Lease are for people.
//!
//! An absent Lease is not a free one, because somebody may have deleted it below its leader. Whoever finds it absent
//! makes one whose holder is unknown. The leader, if there is one, takes that back; the others wait as for any holder.
//! A Lease is free at once only if it says that nobody holds it, as an installed and a released one do.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use crate::agent::Moment;
use crate::backoff::shorten;

/// For so long a Lease that does not change belongs to its holder.
pub const DURATION: Duration = Duration::from_secs(15);
/// No Lease is waited for longer, whatever is written in it: nobody of ours writes more than [`DURATION`].
pub const LONGEST_DURATION: Duration = Duration::from_mins(5);
/// After so long without a good renewal a leader leads no more.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Who holds a Lease that was made because there was none.
pub const UNKNOWN: &str = "unknown";
/// The longest pause between two looks or renewals.
pub const RETRY: Duration = Duration::from_secs(2);

/// What is known of the Lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// What it says, if there is one.
    pub lease: Option<LeaseSpec>,
    /// Since when it has been seen like this, and not changed.
    pub since: Duration,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its name, which no other process has or had.
    pub identity: &'a str,
    /// Whether it leads at the moment.
    pub is_leading: bool,
}

/// What a candidate does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Makes the Lease again, and leads on if that succeeds.
    Create(LeaseSpec),
    /// Makes a Lease whose holder is unknown, and waits.
    Mark(LeaseSpec),
    /// Replaces exactly the Lease that was seen, and leads if that succeeds.
    Replace(LeaseSpec),
    /// Waits: until this moment somebody else may lead.
    Wait {
        /// When it could be free, if it does not change before.
        until: Duration,
    },
    /// Leads no more: the Lease is no longer its own.
    Stop,
}

/// Settles what a candidate does next.
pub fn decide(observed: &Observed, candidate: Candidate<'_>, now: Moment) -> Verdict {
    let Candidate { identity, is_leading } = candidate;
    let Some(lease) = &observed.lease else {
        return if is_leading {
            Verdict::Create(taken(None, identity, now.wall))
        } else {
            Verdict::Mark(taken(None, UNKNOWN, now.wall))
        };
    };
    let until = observed.since.saturating_add(duration(lease));
    match holder(lease) {
        // Also if this candidate does not know it yet, because the answer to its write was lost.
        Some(holder) if holder == identity => Verdict::Replace(renewed(lease, now.wall)),
        Some(UNKNOWN) if is_leading => Verdict::Replace(taken(Some(lease), identity, now.wall)),
        _ if is_leading => Verdict::Stop,
        Some(_) if until > now.elapsed => Verdict::Wait { until },
        _ => Verdict::Replace(taken(Some(lease), identity, now.wall)),
    }
}

/// What a leader that stops leaves behind, so that another need not wait; nothing if the Lease is not its own.
pub fn release(observed: &Observed, identity: &str, now: Timestamp) -> Option<LeaseSpec> {
    let lease = observed.lease.as_ref().filter(|lease| holder(lease) == Some(identity))?;
    Some(LeaseSpec { holder_identity: Some(String::new()), ..renewed(lease, now) })
}

/// Until when a process leads that sent its last good renewal at this moment.
pub fn leads_until(sent: Duration) -> Duration {
    sent.saturating_add(RENEW_DEADLINE)
}

/// The pause before the next look or renewal. `jitter` is a random number from 0 to 1 and only shortens.
pub fn pause(jitter: f64) -> Duration {
    shorten(RETRY, jitter)
}

/// Who holds the Lease, if anybody does.
pub fn holder(lease: &LeaseSpec) -> Option<&str> {
    lease.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// How long a Lease is waited for. One that does not say, or says less than ours, is waited for as long as ours.
fn duration(lease: &LeaseSpec) -> Duration {
    let seconds = lease.lease_duration_seconds;
    let written = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    written.unwrap_or(DURATION).clamp(DURATION, LONGEST_DURATION)
}

fn renewed(lease: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    let seconds = i32::try_from(DURATION.as_secs()).unwrap_or(i32::MAX);
    LeaseSpec {
        lease_duration_seconds: Some(seconds),
        renew_time: Some(MicroTime(now)),
        // Fields that others use, such as those of coordinated elections, stay as they are.
        ..lease.clone()
    }
}

fn taken(lease: Option<&LeaseSpec>, identity: &str, now: Timestamp) -> LeaseSpec {
    let transitions = lease.map_or(0, |lease| lease.lease_transitions.unwrap_or(0).saturating_add(1));
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        acquire_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions),
        ..renewed(&lease.cloned().unwrap_or_default(), now)
    }
}

#[cfg(test)]
mod tests;
