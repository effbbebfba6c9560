//! The status of an unfinished job (kruise R45–R49), to the letter of its texts, and the conditions beside it.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::condition::Condition;
use prewarm_api::kruise::ImagePullJobStatus;
use prewarm_api::names::condition::{NODES_FOUND, SECRETS_READY};
use prewarm_api::names::message::{JOB_COMPLETED, JOB_DEADLINE, JOB_NO_PROGRESS};

use super::reason::{End, Progress};
use super::{Hold, Observed};
use crate::amount::counter;
use crate::cluster::demands::roll::{Counts, Roll};
use crate::cluster::demands::secrets::SecretsReady;
use crate::cluster::node_image::room::Crowd;
use crate::condition::{Finding, set_condition};
use crate::demand::selection::Selection;
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
    let ends = !observed.demand.is_lasting();
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
        desired: counter(counts.desired),
        active: counter(active),
        succeeded: counter(counts.succeeded),
        failed: counter(failed_count),
        message: Some(message(&counts, outcome)),
        failed_nodes: (!names.is_empty()).then_some(names),
        conditions: Some(conditions),
        bytes_done: counts.bytes.map(|(done, _)| done),
        bytes_total: counts.bytes.map(|(_, total)| total),
        unknown: old.unknown,
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
    let mut findings = vec![progress(observed, roll, counts, outcome).finding()];
    if outcome != Outcome::Running {
        let end = End { is_late: outcome == Outcome::Late, desired: counts.desired, failed };
        findings.push(end.finding());
    }
    if matches!(observed.demand.nodes, Selection::Names(_)) {
        findings.push(observed.unknown_nodes.finding());
    }
    if !observed.demand.secrets.is_empty() {
        findings.push(secrets_ready(observed).finding());
    }
    findings
}

fn progress<'a>(observed: &'a Observed, roll: &Roll, counts: &Counts, outcome: Outcome) -> Progress<'a> {
    let is_paused = observed.demand.at_once == 0;
    match (outcome, &observed.hold) {
        (Outcome::Done, _) => Progress::Finished,
        (Outcome::Late, _) => Progress::Late,
        (Outcome::Running, Some(hold)) => Progress::Held(hold, &observed.job.spec.image),
        (Outcome::Running, None) if is_paused && !roll.waiting().is_empty() => Progress::Paused,
        (Outcome::Running, None) if counts.desired == 0 => Progress::NoNodes,
        (Outcome::Running, None) if counts.succeeded + counts.failed == counts.desired => Progress::Watching,
        (Outcome::Running, None) => match (roll.crowded(Crowd::Share), roll.crowded(Crowd::Full)) {
            (0, 0) => Progress::Pulling,
            (by_own, by_all) => Progress::Crowded { by_own, by_all, is_pulling: counts.active > 0 },
        },
    }
}

fn secrets_ready<'a>(observed: &'a Observed) -> SecretsReady<'a> {
    match &observed.hold {
        Some(Hold::Secrets(why)) => SecretsReady::Waiting(why),
        _ => SecretsReady::named(&observed.unusable_secrets, &observed.missing_secrets),
    }
}

/// A selector or a list of Secrets that was edited away leaves no condition behind.
fn forget_what_no_longer_applies(conditions: &mut Vec<Condition>, observed: &Observed) {
    let has_names = matches!(observed.demand.nodes, Selection::Names(_));
    let has_secrets = !observed.demand.secrets.is_empty();
    conditions.retain(|condition| match condition.type_.as_str() {
        NODES_FOUND => has_names,
        SECRETS_READY => has_secrets,
        _ => true,
    });
}
