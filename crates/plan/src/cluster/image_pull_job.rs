//! What one ImagePullJob does next: whom it grants, what it reports, when it ends.
//!
//! What it wants of nodes is a demand like any other (`cluster/demands`); here is how it is read, what holds it, when it ends, and
//! `status`, the words for people; `explain` and `estimate` say why and how long still to whoever asks.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImagePullJob, ImagePullJobStatus};

use crate::cluster::demands::roll::Roll;
use crate::cluster::demands::{self, UnknownNodes, Wants};
use crate::cluster::interface::STATUS_INTERVAL;
use crate::demand::{Demand, Until};
use crate::time::earliest;

mod closing;
pub mod estimate;
pub mod explain;
mod jobs;
mod pass;
pub mod reason;
pub(super) mod record;
mod settle;
pub mod status;

pub use jobs::Jobs;
pub use pass::SIBLING_PATIENCE;
pub use record::demand;

/// A child of a list reports at most this often, and not before this time is over unless it ends: people look at the list,
/// which counts how its children ended, and fifty children would otherwise write three statuses each.
pub const CHILD_STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// What keeps a job from granting, apart from its parallelism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Its image cannot be read.
    Image,
    /// Its namespace may not have its image, for this reason.
    NotAllowed(String),
    /// Its Secrets are not copied yet, for this reason.
    Secrets(String),
    /// The other jobs of its list are being made, so that a node is told of all images at once.
    Siblings,
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
    /// Secrets that the job names and that hold no registry credentials, each with the reason.
    pub unusable_secrets: Vec<String>,
    /// When its status was last written.
    pub written_at: Option<Timestamp>,
    /// When it was first looked at.
    pub begun_at: Timestamp,
    /// Whether it is the child of a list.
    pub is_child: bool,
    /// The time.
    pub now: Timestamp,
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
    if is_late(observed) {
        return Wants::default();
    }
    demands::wants(observed.demand, observed.hold.is_some(), roll, observed.now)
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
