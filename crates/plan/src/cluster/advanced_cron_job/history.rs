//! Runs that are over: those that people have not heard of yet, and those that are old enough to go.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_api::names::condition::LAST_RUN_SUCCEEDED;
use prewarm_api::names::event::{RUN_COMPLETED, RUN_DELETED, RUN_FAILED};
use prewarm_api::reference_object::ObjectReference;

use super::Observed;
use super::child::{Child, Failure, State};
use crate::cluster::command::Notice;
use crate::condition::{ConditionStatus, Finding, Reason};
use crate::object::Uid;

/// So many failed images are named.
const MOST_IMAGES: usize = 10;

/// A run that is over and has not been told.
pub enum End<'a> {
    /// It ended by itself.
    Ended(&'a Child),
    /// It is gone, and was taken away for the next one.
    Replaced(&'a ObjectReference),
    /// It is gone, and nobody has seen its end.
    Deleted(&'a ObjectReference),
}

/// The runs that are over and have not been told: those that the status has as going on, and those that began and ended
/// since it was written. The latest comes last.
pub fn untold<'a>(observed: &Observed<'a>, settled: Timestamp) -> Vec<End<'a>> {
    let told = observed.cron.status.iter().flat_map(|status| &status.active).flatten();
    let (mut gone, mut ended) = (Vec::new(), Vec::new());
    for reference in told {
        let uid = reference.uid.as_deref().unwrap_or_default();
        match observed.children.values().find(|child| *child.uid == *uid) {
            Some(child) if child.is_over() => ended.push(child),
            Some(_) => {}
            None if observed.replaced.contains(uid) => gone.push(End::Replaced(reference)),
            None => gone.push(End::Deleted(reference)),
        }
    }
    let is_listed = |child: &Child| ended.iter().any(|other| other.uid == child.uid);
    let fresh: Vec<&Child> = observed
        .children
        .values()
        .filter(|child| {
            child.is_over() && child.scheduled_at.is_some_and(|at| at > settled) && !is_listed(child)
        })
        .collect();
    ended.extend(fresh);
    ended.sort_by_key(|child| child.scheduled_at);
    gone.into_iter().chain(ended.into_iter().map(End::Ended)).collect()
}

impl End<'_> {
    /// What people hear.
    pub fn notice(&self) -> Option<Notice> {
        let (is_warning, reason, note) = match self {
            // Told when it was done.
            Self::Replaced(_) => return None,
            Self::Deleted(reference) => (true, RUN_DELETED, deleted(reference)),
            Self::Ended(child) => match &child.state {
                State::Failed(failure) => {
                    (true, RUN_FAILED, format!("{} failed: {}", child.name, words(failure)))
                }
                State::Active | State::Complete => {
                    (false, RUN_COMPLETED, format!("{} is complete", child.name))
                }
            },
        };
        Some(Notice { is_warning, reason, note })
    }

    /// What the condition says.
    pub fn finding(&self) -> Finding {
        let (status, reason, message) = match self {
            Self::Replaced(reference) => (
                ConditionStatus::False,
                Reason::Replaced,
                format!("{} was replaced by the next run", name(reference)),
            ),
            Self::Deleted(reference) => (ConditionStatus::False, Reason::Deleted, deleted(reference)),
            Self::Ended(child) => match &child.state {
                State::Failed(failure) => {
                    let reason =
                        if failure.images.is_empty() { Reason::Failed } else { Reason::ImagesFailed };
                    (ConditionStatus::False, reason, format!("{}: {}", child.name, words(failure)))
                }
                State::Active | State::Complete => {
                    (ConditionStatus::True, Reason::Complete, format!("{} is complete", child.name))
                }
            },
        };
        Finding { type_: LAST_RUN_SUCCEEDED, status, reason, message }
    }

    /// An image that failed in it.
    pub fn failed_image(&self) -> Option<&str> {
        match self {
            Self::Ended(Child { state: State::Failed(failure), .. }) => {
                failure.images.first().map(String::as_str)
            }
            _ => None,
        }
    }
}

fn words(failure: &Failure) -> String {
    let Failure { message, images } = failure;
    let message = if message.is_empty() { "no reason was given" } else { message };
    if images.is_empty() {
        return message.to_owned();
    }
    let named: Vec<&str> = images.iter().take(MOST_IMAGES).map(String::as_str).collect();
    let more = match images.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{message}: {}{more}", named.join(", "))
}

fn deleted(reference: &ObjectReference) -> String {
    format!("{} was deleted before its end was seen", name(reference))
}

fn name(reference: &ObjectReference) -> &str {
    reference.name.as_deref().unwrap_or_default()
}

/// Names and UIDs of the runs that are too old to be kept (kruise R97). What has not been told stays until it is: its end
/// must not be lost.
pub fn surplus(observed: &Observed<'_>, untold: &[End<'_>]) -> Vec<(Arc<str>, Uid)> {
    let is_untold =
        |child: &Child| untold.iter().any(|end| matches!(end, End::Ended(other) if other.uid == child.uid));
    let mut over: Vec<&Child> =
        observed.children.values().filter(|child| child.is_over() && !is_untold(child)).collect();
    over.sort_by_key(|child| Reverse((child.began_at, child.name.clone())));
    let (complete, failed): (Vec<&Child>, Vec<&Child>) =
        over.into_iter().partition(|child| child.state == State::Complete);
    let AdvancedCronJob { spec, .. } = observed.cron;
    let kept = |limit: i32| usize::try_from(limit).unwrap_or(0);
    let surplus = complete
        .into_iter()
        .skip(kept(spec.successful_jobs_history_limit))
        .chain(failed.into_iter().skip(kept(spec.failed_jobs_history_limit)));
    surplus
        .filter(|child| !child.is_terminating)
        .map(|child| (child.name.clone(), child.uid.clone()))
        .collect()
}
