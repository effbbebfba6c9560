//! What keeps runs from starting. A condition says so, and the condition is what later says why runs were skipped:
//! whoever leads by then may be another process.

use prewarm_api::condition::Condition;
use prewarm_api::kruise::{AdvancedCronJob, SkipReason};
use prewarm_api::names::condition::SCHEDULING;
use prewarm_api::names::event::{RUN_REFUSED, RUNS_SKIPPED};

use super::timetable::Trouble;
use crate::cluster::command::Notice;
use crate::condition::{ConditionStatus, Finding, Reason};

/// What keeps runs from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// No run is ever due.
    Schedule(Trouble),
    /// The cron job is paused.
    Paused,
    /// A run is due, but this one goes on, and there may be only one.
    Forbidden(String),
    /// A run is due, but so many have not ended.
    TooMany(usize),
    /// The API server does not take the run that is due, in its words.
    Refused(String),
}

impl Hindrance {
    /// What the condition says.
    pub fn finding(&self) -> Finding {
        let (reason, message) = match self {
            Self::Schedule(trouble) => (trouble.reason, trouble.message.clone()),
            Self::Paused => (Reason::Paused, "spec.paused is true; set it to false to go on".to_owned()),
            Self::Forbidden(name) => (
                Reason::Forbidden,
                format!("a run is due and waits until {name} has ended: concurrencyPolicy is Forbid"),
            ),
            Self::TooMany(count) => (Reason::TooManyRuns, too_many(*count)),
            Self::Refused(words) => (Reason::Refused, words.clone()),
        };
        Finding { type_: SCHEDULING, status: ConditionStatus::False, reason, message }
    }

    /// The event when it begins. What people asked for is no news to them.
    pub fn notice(&self) -> Option<Notice> {
        let (reason, note) = match self {
            Self::Schedule(trouble) => {
                (trouble.reason.as_str(), format!("no run will start: {}", trouble.message))
            }
            Self::TooMany(count) => (RUNS_SKIPPED, too_many(*count)),
            Self::Refused(words) => (RUN_REFUSED, words.clone()),
            Self::Paused | Self::Forbidden(_) => return None,
        };
        Some(Notice::warning(reason, note))
    }
}

fn too_many(count: usize) -> String {
    format!(
        "a run is due and waits because {count} runs have not ended: give them activeDeadlineSeconds, or set \
         concurrencyPolicy to Forbid or Replace"
    )
}

/// What the condition says while nothing keeps runs from starting.
pub(super) fn none() -> Finding {
    let message = "runs start when they are due".to_owned();
    Finding { type_: SCHEDULING, status: ConditionStatus::True, reason: Reason::OnSchedule, message }
}

/// What has kept runs from starting so far, as the status says.
pub fn told(cron: &AdvancedCronJob) -> Option<SkipReason> {
    let condition = condition(cron)?;
    match Reason::read(&condition.reason)? {
        Reason::Paused => Some(SkipReason::Paused),
        Reason::Forbidden => Some(SkipReason::Forbidden),
        Reason::TooManyRuns => Some(SkipReason::TooMany),
        Reason::Refused => Some(SkipReason::Refused),
        _ => None,
    }
}

/// The condition that is there.
pub fn condition(cron: &AdvancedCronJob) -> Option<&Condition> {
    let mut conditions = cron.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.find(|condition| condition.type_ == SCHEDULING)
}

/// The event about runs that were skipped.
pub(super) fn skipped(runs: &super::due::Skipped, deadline: Option<i64>) -> Notice {
    let why = match runs.reason {
        SkipReason::Paused => "the cron job was paused".to_owned(),
        SkipReason::Forbidden => "the run before went on, and concurrencyPolicy is Forbid".to_owned(),
        SkipReason::TooMany => "too many runs before had not ended".to_owned(),
        SkipReason::Refused => "the API server did not take them".to_owned(),
        SkipReason::TooLate => {
            format!(
                "they could not start within the {} s of startingDeadlineSeconds",
                deadline.unwrap_or_default()
            )
        }
        SkipReason::Missed => "no controller started them in time".to_owned(),
    };
    let how_many = match runs.count {
        1 => format!("1 run, of {},", runs.first),
        count if count >= crate::schedule::MOST_COUNTED => {
            format!("at least {count} runs, from {} to {},", runs.first, runs.last)
        }
        count => format!("{count} runs, from {} to {},", runs.first, runs.last),
    };
    let was = if runs.count == 1 { "was" } else { "were" };
    // Who pauses, or forbids a second run, has asked for it.
    let is_warning = !matches!(runs.reason, SkipReason::Paused | SkipReason::Forbidden);
    Notice { is_warning, reason: RUNS_SKIPPED, note: format!("{how_many} {was} skipped: {why}") }
}
