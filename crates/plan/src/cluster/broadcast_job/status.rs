//! The status of a BroadcastJob, and what people hear when it changes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{BroadcastJobCondition, BroadcastJobPhase, BroadcastJobStatus, FailurePolicyType};
use prewarm_api::names::condition::{COMPLETE, FAILED, NODES_FOUND, PODS_CREATED, PODS_SCHEDULED};
use prewarm_api::names::event::{CONTINUE, JOB_COMPLETE};

use super::roll::{Roll, Tally};
use super::{Failure, Observed, acknowledged};
use crate::amount::counter;
use crate::cluster::command::Notice;
use crate::condition::{ConditionStatus, Reason, shorten};
use crate::time::stamp;

/// At most this many reasons why nodes do not fit are named.
const MOST_REASONS: usize = 5;

/// The status with these numbers.
pub fn counted(observed: &Observed<'_>, tally: Tally) -> BroadcastJobStatus {
    let mut status = observed.job.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| Time(stamp(observed.now)));
    status.desired = counter(tally.desired);
    status.active = counter(tally.active + tally.unwanted);
    status.succeeded = counter(tally.succeeded);
    status.failed = counter(tally.failed);
    status.phase.get_or_insert(BroadcastJobPhase::Running);
    status
}

/// The status of a job that is paused (kruise R116). Whoever resumes it has seen how many pods failed.
pub fn paused(observed: &Observed<'_>, tally: Tally) -> BroadcastJobStatus {
    let pauses = observed.job.spec.failure_policy.type_ == FailurePolicyType::Pause;
    let paused_failures = (pauses && tally.failed > 0).then(|| counter(tally.failed));
    let phase = Some(BroadcastJobPhase::Paused);
    BroadcastJobStatus { phase, paused_failures, ..counted(observed, tally) }
}

/// The status of a job that goes on, and what is new in it. Pods that are taken from nodes count as failed (kruise R115).
pub fn running(observed: &Observed<'_>, roll: &Roll) -> (BroadcastJobStatus, Vec<Notice>) {
    let (job, tally) = (observed.job, roll.tally());
    let mut status = counted(observed, tally);
    status.active = counter(tally.active);
    status.failed = counter(tally.failed + tally.unwanted);
    let told = acknowledged(job, tally);
    status.paused_failures = (told > 0).then(|| counter(told));
    let mut notices = Vec::new();
    if status.phase == Some(BroadcastJobPhase::Paused) {
        notices.push(Notice::normal(CONTINUE, "the job goes on".to_owned()));
    }
    status.phase = Some(BroadcastJobPhase::Running);
    let hindrances = [
        (NODES_FOUND, Reason::NodesFound, Reason::NoNodeFits, no_node(roll)),
        (PODS_CREATED, Reason::PodsCreated, Reason::PodRefused, observed.refusal.map(str::to_owned)),
        (PODS_SCHEDULED, Reason::PodsScheduled, Reason::PodUnschedulable, no_place(roll)),
    ];
    for (type_, well, reason, trouble) in hindrances {
        let is_known =
            trouble.is_some() && condition(&status, type_) == Some(ConditionStatus::False.as_str());
        let mentioned = condition(&status, type_).is_some();
        match trouble {
            Some(note) => {
                set(&mut status, observed, (type_, ConditionStatus::False, reason), note.clone());
                if !is_known {
                    notices.push(Notice::warning(reason.as_str(), note));
                }
            }
            // A job that never had the trouble need not speak of it.
            None if mentioned => {
                set(&mut status, observed, (type_, ConditionStatus::True, well), String::new());
            }
            None => {}
        }
    }
    (status, notices)
}

/// The status of a job whose pods are all over (kruise R121).
pub fn complete(observed: &Observed<'_>, tally: Tally) -> (BroadcastJobStatus, Vec<Notice>) {
    let note = format!("job completed: {}", ended(tally.succeeded, tally.failed));
    let mut status =
        BroadcastJobStatus { phase: Some(BroadcastJobPhase::Completed), ..counted(observed, tally) };
    end(&mut status, observed, false, note.clone());
    (status, vec![Notice::normal(JOB_COMPLETE, note)])
}

/// The status of a job that fails: the pods that are deleted for it count as failed (kruise R119).
pub fn failed(observed: &Observed<'_>, tally: Tally, failure: &Failure) -> (BroadcastJobStatus, Vec<Notice>) {
    let all = tally.failed + tally.active + tally.unwanted;
    let mut status = BroadcastJobStatus {
        phase: Some(BroadcastJobPhase::Failed),
        active: 0,
        failed: counter(all),
        ..counted(observed, tally)
    };
    let note = format!("{}: {}", failure.message, ended(tally.succeeded, all));
    end(&mut status, observed, true, note.clone());
    (status, vec![Notice::warning(failure.event, note)])
}

fn end(status: &mut BroadcastJobStatus, observed: &Observed<'_>, is_failed: bool, message: String) {
    let (type_, reason) = if is_failed { (FAILED, Reason::Failed) } else { (COMPLETE, Reason::Complete) };
    status.completion_time = Some(Time(stamp(observed.now)));
    set(status, observed, (type_, ConditionStatus::True, reason), message);
}

fn ended(succeeded: usize, failed: usize) -> String {
    format!("{succeeded} pods succeeded, {failed} pods failed")
}

/// A job without any node stays, in the hope of one that fits; people should know.
fn no_node(roll: &Roll) -> Option<String> {
    if roll.tally().desired > 0 {
        return None;
    }
    let misfits = roll.misfits();
    if misfits.is_empty() {
        return Some("there is no node".to_owned());
    }
    let reasons: Vec<String> = misfits
        .iter()
        .take(MOST_REASONS)
        .map(|(misfit, count)| format!("{count} {}: {misfit}", if *count == 1 { "node" } else { "nodes" }))
        .collect();
    Some(format!("the pod fits no node: {}", reasons.join("; ")))
}

/// A pod that waits for lack of room, in the scheduler's own words.
fn no_place(roll: &Roll) -> Option<String> {
    let mut pods = roll.unscheduled();
    let others = pods.len().saturating_sub(1);
    let (name, words) = pods.next()?;
    let more = if others == 0 { String::new() } else { format!(" ({others} more wait)") };
    Some(format!("pod {name} finds no place{more}: {words}"))
}

fn condition<'a>(status: &'a BroadcastJobStatus, type_: &str) -> Option<&'a str> {
    let found = status.conditions.iter().flatten().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.status.as_str())
}

fn set(
    status: &mut BroadcastJobStatus,
    observed: &Observed<'_>,
    (type_, holds, reason): (&'static str, ConditionStatus, Reason),
    message: String,
) {
    let conditions = status.conditions.get_or_insert_default();
    let present = conditions.iter().position(|condition| condition.type_ == type_);
    let now = Some(Time(stamp(observed.now)));
    let since =
        present.map(|index| &conditions[index]).filter(|condition| condition.status == holds.as_str());
    let since = since.map_or(now, |condition| condition.last_transition_time.clone());
    let condition = BroadcastJobCondition {
        type_: type_.to_owned(),
        status: holds.as_str().to_owned(),
        last_probe_time: since.clone(),
        last_transition_time: since,
        reason: Some(reason.as_str().to_owned()),
        message: (!message.is_empty()).then(|| shorten(message)),
        unknown: present.map(|index| conditions[index].unknown.clone()).unwrap_or_default(),
    };
    match present {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
}
