//! What one ImagePullJob does next: whom it grants, what it reports, when it ends.
//!
//! `standing` settles where each node is, `roll` keeps the counts by difference, `queue` the order of those that wait,
//! `status` the words for people; `explain` and `estimate` say why and how long still to whoever asks.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImagePullJob, ImagePullJobStatus};

use crate::cluster::node_image::node::Want;
use crate::demand::{Demand, Until};
use crate::object::NodeName;
use crate::time::earliest;

pub mod demand;
pub mod estimate;
pub mod explain;
mod jobs;
pub(super) mod member;
mod observe;
mod pass;
pub mod pod;
pub mod queue;
pub mod reason;
pub(super) mod record;
pub mod roll;
mod settle;
pub mod standing;
pub mod status;

pub use jobs::Jobs;
pub use pass::SIBLING_PATIENCE;

use roll::Roll;

/// A status is written at most this often, the last one apart.
pub const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// A child of a list reports at most this often, and not before this time is over unless it ends: people look at the list,
/// which counts how its children ended, and fifty children would otherwise write three statuses each.
pub const CHILD_STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// What keeps a job from granting, apart from its parallelism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Its image cannot be read.
    Image,
    /// Its Secrets are not copied yet, for this reason.
    Secrets(String),
    /// The other jobs of its list are being made, so that a node is told of all images at once.
    Siblings,
}

/// Names in a job's selector that stand for no node that can pull.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownNodes {
    /// No NodeImage has these.
    pub absent: Vec<String>,
    /// No agent runs on these, by what their labels say.
    pub agentless: Vec<String>,
}

/// Everything that a pass over an unfinished job depends on.
pub struct Observed<'a> {
    /// The job.
    pub job: &'a ImagePullJob,
    /// What it wants of nodes.
    pub demand: &'a Demand,
    /// What keeps it from granting.
    pub hold: Option<Hold>,
    /// Names in its selector that stand for no node that can pull.
    pub unknown_nodes: UnknownNodes,
    /// Secrets that it names and that do not exist.
    pub missing_secrets: Vec<String>,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
    /// When it was first looked at.
    pub begun_at: Timestamp,
    /// Whether it is the child of a list.
    pub is_child: bool,
    /// The time.
    pub now: Timestamp,
}

/// What is wanted of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wants {
    /// What is wanted of which nodes.
    pub of_nodes: Vec<(NodeName, Want)>,
    /// When to look again although nothing has changed.
    pub wake_at: Option<Timestamp>,
}

/// What is reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The status, if it is to be written now.
    pub status: Option<ImagePullJobStatus>,
    /// When to look again although nothing has changed.
    pub wake_at: Option<Timestamp>,
}

/// Decides what an unfinished job wants of its nodes.
pub fn wants(observed: &Observed, roll: &mut Roll) -> Wants {
    let mut wants = Wants::default();
    if is_late(observed) {
        return wants;
    }
    let of_nodes = &mut wants.of_nodes;
    of_nodes.extend(roll.to_withdraw().into_iter().map(|node| (node, Want::Withdraw)));
    of_nodes.extend(roll.to_attach().into_iter().map(|node| (node, Want::Attach)));
    if observed.hold.is_some() {
        return wants;
    }
    let now = observed.now;
    let mut slots = observed.demand.at_once.saturating_sub(roll.taken(now));
    for want in [Want::Retry, Want::Renew, Want::Grant] {
        let chosen = match want {
            Want::Retry => roll.to_retry(slots),
            Want::Renew => roll.to_renew(slots, now),
            _ => roll.waiting().first(slots),
        };
        slots -= chosen.len();
        of_nodes.extend(chosen.into_iter().map(|node| (node, want)));
    }
    // With no place left, whoever is in line gets the first that a silent node gives up.
    wants.wake_at = earliest(roll.next_renewal(now), roll.next_overdue().filter(|_| slots == 0));
    wants
}

/// Decides what an unfinished job reports, after what it wants was noted in the roll.
pub fn report(observed: &Observed, roll: &Roll) -> Report {
    let status = status::status(observed, roll, is_late(observed));
    let ends = status.completion_time.is_some();
    let deadline = deadline(observed).filter(|_| !ends);
    if observed.job.status.as_ref() == Some(&status) {
        return Report { status: None, wake_at: deadline };
    }
    match quiet_until(observed).filter(|at| *at > observed.now && !ends) {
        Some(at) => Report { status: None, wake_at: earliest(deadline, Some(at)) },
        None => Report { status: Some(status), wake_at: deadline },
    }
}

/// Until when only an end is reported.
fn quiet_until(observed: &Observed) -> Option<Timestamp> {
    let is_silent = observed.is_child && observed.job.status.is_none();
    let since = observed.written_at.or(is_silent.then_some(observed.begun_at))?;
    Some(since + if observed.is_child { CHILD_STATUS_INTERVAL } else { STATUS_INTERVAL })
}

fn is_late(observed: &Observed) -> bool {
    deadline(observed).is_some_and(|at| at <= observed.now)
}

/// When the job has to be over (kruise R49).
fn deadline(observed: &Observed) -> Option<Timestamp> {
    let Until::Done { deadline_seconds, .. } = observed.demand.until else { return None };
    let seconds = u64::try_from(deadline_seconds?).ok()?;
    let start = observed.job.status.as_ref().and_then(|status| status.start_time.as_ref());
    let start = start.map_or(observed.begun_at, |Time(start)| *start);
    start.checked_add(Duration::from_secs(seconds)).ok()
}

/// When a finished job is to be deleted (kruise R34), if it is.
pub fn expires_at(job: &ImagePullJob) -> Option<Timestamp> {
    let Time(end) = job.status.as_ref()?.completion_time.clone()?;
    let ttl = u64::try_from(job.spec.completion_policy.ttl_seconds_after_finished?).ok()?;
    end.checked_add(Duration::from_secs(ttl)).ok()
}

/// Whether a job is over.
pub fn is_finished(job: &ImagePullJob) -> bool {
    job.status.as_ref().is_some_and(|status| status.completion_time.is_some())
}

#[cfg(test)]
mod tests;
