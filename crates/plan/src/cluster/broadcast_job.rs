//! What is to be done for a BroadcastJob: one pod on every node that it fits (kruise R110–R122).
//!
//! ```text
//! over     ─▶ pods that are not over go; the job goes when its time has come
//! paused   ─▶ pods that run go on; nothing else
//! failing  ─▶ the failure policy: pause, fail, or go on; the deadline: fail
//! running  ─▶ unwanted pods go, empty nodes get one as far as the parallelism allows
//! done     ─▶ complete
//! ```

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use prewarm_api::kruise::{
    BroadcastJob, BroadcastJobPhase, BroadcastJobStatus, CompletionType, FailurePolicyType,
};
use prewarm_api::names::condition::{COMPLETE, FAILED};
use prewarm_api::names::event::{DEADLINE_EXCEEDED, FAILED_POD_FOUND, TOO_MANY_ACTIVE_PODS};

use crate::cluster::command::Notice;
use crate::object::Uid;
use crate::time::after;
use roll::{Roll, Tally};

pub mod fitness;
mod jobs;
mod observe;
mod pass;
pub mod pod;
pub mod quantity;
mod record;
pub mod roll;
mod settle;
pub mod shape;
mod status;

pub use jobs::Broadcasts;

/// What a decision is made on.
pub struct Observed<'a> {
    /// The job.
    pub job: &'a BroadcastJob,
    /// Why there can be no pods: the template cannot be read, or the API server does not take them.
    pub refusal: Option<&'a str>,
    /// How many pods are being made.
    pub creating: usize,
    /// Whether there is an event that there are too many pods.
    pub has_warned_of_too_many: bool,
    /// The time.
    pub now: Timestamp,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The new status, if it differs.
    pub status: Option<BroadcastJobStatus>,
    /// Whether the failure policy pauses the job.
    pub pauses: bool,
    /// How many further pods may be made.
    pub create: usize,
    /// Names and UIDs of pods that have to go.
    pub delete: Vec<(Arc<str>, Uid)>,
    /// Whether the job's time after its end has run out.
    pub is_expired: bool,
    /// When to look again although nothing changes.
    pub wake_at: Option<Timestamp>,
    /// What is recorded once the status is written.
    pub notices: Vec<Notice>,
    /// Whether there are more pods than the parallelism allows.
    pub has_too_many: bool,
}

/// Why a job fails.
struct Failure {
    event: &'static str,
    message: String,
}

/// Decides what to do for a job.
pub fn decide(observed: &Observed<'_>, roll: &Roll) -> Decision {
    let job = observed.job;
    if job.metadata.deletion_timestamp.is_some() {
        // The garbage collector takes its pods.
        return Decision::default();
    }
    if is_over(job) {
        return close(job, roll, observed.now);
    }
    let tally = roll.tally();
    if phase(job) == Some(BroadcastJobPhase::Failed) {
        // Only one that never ends comes here (kruise R122).
        let status = status::counted(observed, tally);
        return Decision {
            status: changed(job, status),
            delete: owned(roll.unfinished()),
            ..Decision::default()
        };
    }
    if job.spec.paused {
        let status = status::paused(observed, tally);
        return Decision { status: changed(job, status), ..Decision::default() };
    }
    if job.spec.failure_policy.type_ == FailurePolicyType::Pause && tally.failed > acknowledged(job, tally) {
        return Decision { pauses: true, ..Decision::default() };
    }
    if let Some(failure) = failure(observed, tally) {
        let (status, notices) = status::failed(observed, tally, &failure);
        return Decision { status: Some(status), notices, ..Decision::default() };
    }
    let is_done = tally.desired > 0 && tally.open == 0 && tally.unwanted == 0 && observed.creating == 0;
    if is_done && ends(job) {
        let (status, notices) = status::complete(observed, tally);
        return Decision { status: Some(status), notices, ..Decision::default() };
    }
    go_on(observed, roll)
}

fn go_on(observed: &Observed<'_>, roll: &Roll) -> Decision {
    let (job, tally) = (observed.job, roll.tally());
    let limit = limit(&job.spec.parallelism, tally.desired);
    let busy = tally.active + observed.creating;
    let (status, mut notices) = status::running(observed, roll);
    let has_too_many = busy > limit;
    if has_too_many && !observed.has_warned_of_too_many {
        let note =
            format!("{busy} pods are active, and parallelism allows {limit}; none is stopped for that");
        notices.push(Notice::warning(TOO_MANY_ACTIVE_PODS, note));
    }
    let begun_at = job.status.as_ref().and_then(|status| status.start_time.clone());
    Decision {
        status: changed(job, status),
        create: limit.saturating_sub(busy),
        delete: owned(roll.unwanted()),
        wake_at: begun_at.and_then(|Time(begun_at)| deadline(job, begun_at)),
        notices,
        has_too_many,
        ..Decision::default()
    }
}

/// A job that is over leaves no running pod, and goes itself when its time has come (kruise R111, R119).
fn close(job: &BroadcastJob, roll: &Roll, now: Timestamp) -> Decision {
    let expires_at = expires_at(job);
    let is_expired = expires_at.is_some_and(|at| at <= now);
    let wake_at = expires_at.filter(|_| !is_expired);
    Decision { delete: owned(roll.unfinished()), is_expired, wake_at, ..Decision::default() }
}

fn failure(observed: &Observed<'_>, tally: Tally) -> Option<Failure> {
    let job = observed.job;
    if tally.failed > 0 && job.spec.failure_policy.type_ == FailurePolicyType::FailFast {
        let message = "a pod failed, and the failure policy is FailFast".to_owned();
        return Some(Failure { event: FAILED_POD_FOUND, message });
    }
    let Time(begun_at) = job.status.as_ref()?.start_time.clone()?;
    deadline(job, begun_at).filter(|at| *at <= observed.now)?;
    let seconds = job.spec.completion_policy.active_deadline_seconds.unwrap_or_default();
    let message = format!("the job took longer than the {seconds} s of its activeDeadlineSeconds");
    Some(Failure { event: DEADLINE_EXCEEDED, message })
}

/// When the job has to be over, if it began at this time (kruise R118).
fn deadline(job: &BroadcastJob, begun_at: Timestamp) -> Option<Timestamp> {
    let seconds = job.spec.completion_policy.active_deadline_seconds.filter(|_| ends(job))?;
    Some(after(begun_at, Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
}

/// When the object of a job that is over is deleted.
fn expires_at(job: &BroadcastJob) -> Option<Timestamp> {
    let seconds = job.spec.completion_policy.ttl_seconds_after_finished?;
    let Time(ended_at) = job.status.as_ref()?.completion_time.clone()?;
    Some(after(ended_at, Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
}

/// How many pods may be active at once (kruise R120). What is neither a number nor a percentage allows none.
pub fn limit(parallelism: &IntOrString, desired: usize) -> usize {
    match parallelism {
        IntOrString::Int(number) => usize::try_from(*number).unwrap_or(0),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|percent| percent.parse::<u32>().ok());
            percent.map_or(0, |percent| desired.saturating_mul(percent as usize).div_ceil(100))
        }
    }
}

/// Whether the job ends at all.
fn ends(job: &BroadcastJob) -> bool {
    job.spec.completion_policy.type_ != CompletionType::Never
}

/// Whether the job has ended.
pub fn is_over(job: &BroadcastJob) -> bool {
    let conditions = job.status.iter().flat_map(|status| &status.conditions).flatten();
    let mut ended = conditions.filter(|condition| condition.status == "True");
    ends(job) && ended.any(|condition| [COMPLETE, FAILED].contains(&condition.type_.as_str()))
}

fn phase(job: &BroadcastJob) -> Option<BroadcastJobPhase> {
    job.status.as_ref().and_then(|status| status.phase)
}

/// For how many of the failed pods the job was paused already. Pods that are gone do not speak for those that come.
fn acknowledged(job: &BroadcastJob, tally: Tally) -> usize {
    let told = job.status.as_ref().and_then(|status| status.paused_failures).unwrap_or(0);
    usize::try_from(told).unwrap_or(0).min(tally.failed)
}

fn changed(job: &BroadcastJob, status: BroadcastJobStatus) -> Option<BroadcastJobStatus> {
    (job.status.as_ref() != Some(&status)).then_some(status)
}

fn owned<'a>(pods: impl Iterator<Item = (&'a Arc<str>, &'a Uid)>) -> Vec<(Arc<str>, Uid)> {
    pods.map(|(name, uid)| (name.clone(), uid.clone())).collect()
}

#[cfg(test)]
mod tests;
