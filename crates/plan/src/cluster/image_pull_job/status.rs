//! The status of an unfinished job (kruise R45–R49), to the letter of its texts, and the conditions beside it.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::{CompletionType, ImagePullJobStatus};
use prewarm_api::names::condition::{COMPLETE, FAILED, NODES_FOUND, PROGRESSING, SECRETS_READY};
use prewarm_api::names::message::{JOB_COMPLETED, JOB_DEADLINE, JOB_NO_PROGRESS};

use super::roll::{Counts, Roll};
use super::{Hold, Observed, UnknownNodes};
use crate::condition::{ConditionStatus, Finding, set_condition};
use crate::demand::selection::parallelism;
use crate::object::NodeName;
use crate::time::stamp;

/// At most this many names of failed nodes are listed; the count has all (kruise W43).
pub const MOST_FAILED_NODES: usize = 500;
/// At most this many names that no node has are listed.
pub const MOST_UNKNOWN_NAMES: usize = 10;

/// The status at this time.
pub fn status(observed: &Observed, roll: &Roll, is_late: bool) -> ImagePullJobStatus {
    let old = observed.job.status.clone().unwrap_or_default();
    let counts = roll.counts();
    let ends = observed.job.spec.completion_policy.type_ == CompletionType::Always;
    let is_readable = observed.hold != Some(Hold::Image);
    let is_done = ends && is_readable && counts.desired == counts.succeeded + counts.failed;
    let outcome = match (is_done, is_late) {
        (true, _) => Outcome::Done,
        (false, true) => Outcome::Late,
        (false, false) => Outcome::Running,
    };
    let failed: BTreeSet<NodeName> = match outcome {
        // Each node once, although it may have been both active and waiting in another's eyes.
        Outcome::Late => roll.failed().cloned().chain(roll.unfinished()).collect(),
        Outcome::Done | Outcome::Running => roll.failed().take(MOST_FAILED_NODES).cloned().collect(),
    };
    let (active, failed_count) = match outcome {
        Outcome::Late => (0, failed.len()),
        Outcome::Done | Outcome::Running => (counts.active, counts.failed),
    };
    let names: Vec<String> = failed.iter().take(MOST_FAILED_NODES).map(ToString::to_string).collect();
    let mut conditions = old.conditions.unwrap_or_default();
    for finding in findings(observed, roll, &counts, outcome, failed_count) {
        set_condition(&mut conditions, finding, observed.job.metadata.generation, observed.now);
    }
    forget_what_no_longer_applies(&mut conditions, observed);
    ImagePullJobStatus {
        start_time: old.start_time.or(Some(Time(stamp(observed.begun_at)))),
        completion_time: (outcome != Outcome::Running).then(|| Time(stamp(observed.now))),
        desired: number(counts.desired),
        active: number(active),
        succeeded: number(counts.succeeded),
        failed: number(failed_count),
        message: Some(message(&counts, outcome)),
        failed_nodes: (!names.is_empty()).then_some(names),
        conditions: Some(conditions),
        bytes_done: counts.bytes.map(|(done, _)| done),
        bytes_total: counts.bytes.map(|(_, total)| total),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Running,
    Done,
    Late,
}

fn message(counts: &Counts, outcome: Outcome) -> String {
    match outcome {
        Outcome::Done => JOB_COMPLETED.to_owned(),
        Outcome::Late => JOB_DEADLINE.to_owned(),
        Outcome::Running if counts.desired == 0 => JOB_NO_PROGRESS.to_owned(),
        Outcome::Running => {
            #[expect(clippy::cast_precision_loss, reason = "one decimal of a percentage")]
            let share = 100.0 * (counts.succeeded + counts.failed) as f64 / counts.desired as f64;
            format!("job is running, progress {share:.1}%")
        }
    }
}

fn findings(
    observed: &Observed,
    roll: &Roll,
    counts: &Counts,
    outcome: Outcome,
    failed: usize,
) -> Vec<Finding> {
    let mut findings = vec![progressing(observed, roll, counts, outcome)];
    if outcome != Outcome::Running {
        let reason = if outcome == Outcome::Late { "DeadlineExceeded" } else { "Finished" };
        let of = counts.desired;
        let (type_, message) = if failed == 0 && outcome == Outcome::Done {
            (COMPLETE, format!("the image is on all {of} nodes"))
        } else {
            (
                FAILED,
                format!(
                    "{failed} of {of} nodes do not have the image; failedNodes names the first {MOST_FAILED_NODES}"
                ),
            )
        };
        findings.push(Finding { type_, status: ConditionStatus::True, reason, message });
    }
    if observed.job.spec.selector.as_ref().is_some_and(|selector| selector.names.is_some()) {
        findings.push(nodes_found(&observed.unknown_nodes));
    }
    if observed.job.spec.pull_secrets.as_ref().is_some_and(|secrets| !secrets.is_empty()) {
        findings.push(secrets_ready(observed));
    }
    findings
}

fn progressing(observed: &Observed, roll: &Roll, counts: &Counts, outcome: Outcome) -> Finding {
    let waiting = roll.waiting().len();
    let is_paused = parallelism(observed.job.spec.parallelism.as_ref()) == 0;
    let (holds, reason, message) = match (outcome, &observed.hold) {
        (Outcome::Done, _) => (false, "Finished", "every node has ended".to_owned()),
        (Outcome::Late, _) => {
            (false, "DeadlineExceeded", "the job took longer than activeDeadlineSeconds".to_owned())
        }
        (Outcome::Running, Some(Hold::Image)) => (
            false,
            "InvalidImage",
            format!("{:?} is no image reference; correct spec.image", observed.job.spec.image),
        ),
        (Outcome::Running, Some(Hold::Secrets(why))) => (false, "WaitingForSecrets", why.clone()),
        (Outcome::Running, Some(Hold::Siblings)) => {
            (true, "WaitingForSiblings", "the other jobs of the list are being made".to_owned())
        }
        (Outcome::Running, None) if is_paused && waiting > 0 => {
            (false, "Paused", "parallelism is 0; raise it to go on".to_owned())
        }
        (Outcome::Running, None) if counts.desired == 0 => {
            (true, "NoNodes", "no node matches the selector yet".to_owned())
        }
        (Outcome::Running, None) if counts.succeeded + counts.failed == counts.desired => {
            (true, "Watching", "every node has ended; nodes that join are warmed too".to_owned())
        }
        (Outcome::Running, None) => (true, "Pulling", "nodes are pulling".to_owned()),
    };
    Finding { type_: PROGRESSING, status: holds.into(), reason, message }
}

fn nodes_found(unknown: &UnknownNodes) -> Finding {
    let UnknownNodes { absent, agentless } = unknown;
    let (reason, message) = match (absent.is_empty(), agentless.is_empty()) {
        (true, true) => ("AllFound", "every named node exists".to_owned()),
        (false, true) => ("UnknownNodes", told_absent(absent)),
        (true, false) => ("NodesWithoutAgent", told_agentless(agentless)),
        (false, false) => ("UnknownNodes", format!("{}; {}", told_absent(absent), told_agentless(agentless))),
    };
    Finding { type_: NODES_FOUND, status: (reason == "AllFound").into(), reason, message }
}

fn told_absent(names: &[String]) -> String {
    format!("no NodeImage has these names: {}; they do not count until their node is ready", listed(names))
}

fn told_agentless(names: &[String]) -> String {
    format!("no agent runs on these nodes, by their labels: {}; they do not count", listed(names))
}

fn listed(names: &[String]) -> String {
    let some = names.iter().take(MOST_UNKNOWN_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST_UNKNOWN_NAMES);
    if more > 0 { format!("{some} and {more} more") } else { some }
}

fn secrets_ready(observed: &Observed) -> Finding {
    let type_ = SECRETS_READY;
    let missing = &observed.missing_secrets;
    if let Some(Hold::Secrets(why)) = &observed.hold {
        return Finding {
            type_,
            status: ConditionStatus::False,
            reason: "WaitingForSecrets",
            message: why.clone(),
        };
    }
    if missing.is_empty() {
        let message = "the agents can read every named Secret".to_owned();
        return Finding { type_, status: ConditionStatus::True, reason: "Copied", message };
    }
    let message = format!(
        "these Secrets do not exist in the job's namespace: {}; the pull goes on without them, and failed nodes are tried \
         again when they appear",
        missing.join(", ")
    );
    Finding { type_, status: ConditionStatus::False, reason: "SecretMissing", message }
}

/// A selector or a list of Secrets that was edited away leaves no condition behind.
fn forget_what_no_longer_applies(conditions: &mut Vec<Condition>, observed: &Observed) {
    let spec = &observed.job.spec;
    let has_names = spec.selector.as_ref().is_some_and(|selector| selector.names.is_some());
    let has_secrets = spec.pull_secrets.as_ref().is_some_and(|secrets| !secrets.is_empty());
    conditions.retain(|condition| match condition.type_.as_str() {
        NODES_FOUND => has_names,
        SECRETS_READY => has_secrets,
        _ => true,
    });
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
