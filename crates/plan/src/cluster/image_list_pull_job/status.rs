//! The status of an unfinished list (kruise R74), rolled up from the children that stay: what is about to be deleted counts
//! for nothing (kruise W10).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{CompletionType, FailedImageStatus, ImageListPullJob, ImageListPullJobStatus};
use prewarm_api::names::condition::{CHILDREN_CREATED, COMPLETE, FAILED, PROGRESSING};

use super::{Child, Kept, Progress};
use crate::amount::counter;
use crate::condition::{ConditionStatus, Finding, Reason, set_condition};
use crate::demand::selection::parallelism;
use crate::time::stamp;

/// At most this many failed images are listed.
const MOST_FAILED_IMAGES: usize = 512;
/// At most this many refused images are named.
const MOST_REFUSED_IMAGES: usize = 5;
/// How many characters of a refusal are repeated for each of them.
const LONGEST_REFUSAL: usize = 500;

/// The status at this time.
pub(super) fn status(
    list: &ImageListPullJob,
    kept: &Kept<'_>,
    refused: &BTreeMap<String, String>,
    has_doomed: bool,
    now: Timestamp,
) -> ImageListPullJobStatus {
    let old = list.status.clone().unwrap_or_default();
    let mut tally = Tally::new(list, kept, refused);
    // A finished list deletes nothing, so that one which is still to go would stay for good.
    tally.is_finished &= !has_doomed;
    let mut conditions = old.conditions.unwrap_or_default();
    for finding in findings(list, &tally) {
        set_condition(&mut conditions, finding, list.metadata.generation, now);
    }
    let failed: Vec<FailedImageStatus> = kept.values().filter_map(failure).take(MOST_FAILED_IMAGES).collect();
    ImageListPullJobStatus {
        start_time: old.start_time.or_else(|| Some(Time(stamp(now)))),
        completion_time: tally.is_finished.then(|| Time(stamp(now))),
        desired: counter(tally.desired),
        active: counter(tally.active),
        completed: counter(tally.completed),
        succeeded: counter(tally.succeeded),
        failed_image_statuses: (!failed.is_empty()).then_some(failed),
        conditions: Some(conditions),
        unknown: old.unknown,
    }
}

/// How many images stand where.
struct Tally<'a> {
    desired: usize,
    active: usize,
    completed: usize,
    succeeded: usize,
    missing: usize,
    /// The images that have no child because the API server took none, and why.
    refused: Vec<(&'a str, &'a str)>,
    is_finished: bool,
}

impl<'a> Tally<'a> {
    fn new(list: &'a ImageListPullJob, kept: &Kept<'_>, refused: &'a BTreeMap<String, String>) -> Self {
        let count =
            |question: fn(&Progress) -> bool| kept.values().filter(|child| question(&child.progress)).count();
        let images: BTreeSet<&str> = list.spec.images.iter().map(String::as_str).collect();
        let (desired, completed) = (images.len(), count(|progress| progress.is_completed));
        let missing = images.iter().filter(|image| !kept.contains_key(*image));
        let refused = missing.clone().filter_map(|image| Some((*image, refused.get(*image)?.as_str())));
        Self {
            desired,
            active: count(|progress| progress.is_active),
            completed,
            succeeded: count(|progress| progress.is_succeeded),
            missing: missing.count(),
            refused: refused.collect(),
            is_finished: list.spec.completion_policy.type_ == CompletionType::Always && completed == desired,
        }
    }
}

/// Where to look for more about an image that failed. Without numbers, so that a further failed node is no further write.
fn failure(child: &Child<'_>) -> Option<FailedImageStatus> {
    let job = Some(child.job).filter(|_| child.progress.has_failed)?;
    let name = job.metadata.name.clone().unwrap_or_default();
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    let message =
        format!("the image failed on some nodes; see: kubectl describe imagepulljob {name} -n {namespace}");
    Some(FailedImageStatus {
        image_pull_job: Some(name),
        name: Some(job.spec.image.clone()),
        message: Some(message),
    })
}

fn findings(list: &ImageListPullJob, tally: &Tally<'_>) -> Vec<Finding> {
    let mut findings = vec![progressing(list, tally), children_created(tally)];
    if tally.is_finished {
        let (of, failed) = (tally.desired, tally.desired - tally.succeeded);
        let (type_, message) = if failed == 0 {
            (COMPLETE, format!("all {of} images are on every node"))
        } else {
            (FAILED, format!("{failed} of {of} images are not on every node; see failedImageStatuses"))
        };
        findings.push(Finding { type_, status: ConditionStatus::True, reason: Reason::Finished, message });
    }
    findings
}

fn progressing(list: &ImageListPullJob, tally: &Tally<'_>) -> Finding {
    let is_paused = parallelism(list.spec.parallelism.as_ref()) == 0;
    let (holds, reason, message) = if tally.is_finished {
        (false, Reason::Finished, "every image has ended")
    } else if tally.completed == tally.desired {
        (true, Reason::Watching, "every image has ended; nodes that join are warmed too")
    } else if is_paused {
        (false, Reason::Paused, "parallelism is 0; raise it to go on")
    } else if tally.completed + tally.refused.len() == tally.desired {
        (false, Reason::Refused, "what is left cannot begin; see the condition ChildrenCreated")
    } else {
        (true, Reason::Pulling, "images are being pulled")
    };
    Finding { type_: PROGRESSING, status: holds.into(), reason, message: message.to_owned() }
}

/// Whether every image has its child, and if the API server takes none, in its words (kruise R80, W11).
fn children_created(tally: &Tally<'_>) -> Finding {
    let (reason, message) = match (tally.missing, tally.refused.len()) {
        (0, _) => (Reason::AllCreated, "every image has its ImagePullJob".to_owned()),
        (_, 0) => (Reason::Creating, "ImagePullJobs are being made".to_owned()),
        (_, _) => (Reason::Refused, refusal(tally)),
    };
    let status = (tally.missing == 0).into();
    Finding { type_: CHILDREN_CREATED, status, reason, message }
}

fn refusal(tally: &Tally<'_>) -> String {
    let told = tally.refused.iter().take(MOST_REFUSED_IMAGES).map(|(image, reason)| {
        let reason: String = reason.chars().take(LONGEST_REFUSAL).collect();
        format!("{image}: {reason}")
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let more = match tally.refused.len().saturating_sub(MOST_REFUSED_IMAGES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("the ImagePullJobs of these images were refused: {told}{more}")
}
