//! What a person has to know or do about a cron job.

use std::fmt;

use jiff::Timestamp;
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_api::names::condition::{LAST_RUN_SUCCEEDED, SCHEDULING};
use prewarm_plan::cluster::advanced_cron_job::timetable::Trouble;
use serde::{Serialize, Serializer};

use super::times::Times;
use super::{State, trouble};

/// One note. JSON and YAML contain its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The schedule has no times, for this reason.
    NoTimes(String),
    /// The controller starts no run, for this reason.
    Hindered(String),
    /// A run was due at this time, and no controller has started it.
    Overdue(Timestamp),
    /// The run that ended last did not succeed, for this reason.
    LastRunFailed(String),
    /// No controller has looked at the cron job.
    NotSeen,
}

impl Note {
    /// All notes on a cron job.
    pub fn all(cron: &AdvancedCronJob, state: State, times: &Result<Times, Trouble>) -> Vec<Self> {
        let start = match (times, trouble(cron, SCHEDULING)) {
            (Err(trouble), _) => Some(Self::NoTimes(trouble.message.clone())),
            (Ok(_), Some(condition)) => Some(Self::Hindered(condition.message.clone())),
            (Ok(times), None) if matches!(state, State::Scheduled | State::Failed) => {
                times.overdue.map(Self::Overdue)
            }
            _ => None,
        };
        let last = trouble(cron, LAST_RUN_SUCCEEDED);
        let last = last.map(|condition| Self::LastRunFailed(condition.message.clone()));
        let not_seen = (state == State::New).then_some(Self::NotSeen);
        start.into_iter().chain(last).chain(not_seen).collect()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTimes(why) | Self::Hindered(why) | Self::LastRunFailed(why) => formatter.write_str(why),
            Self::Overdue(due) => write!(
                formatter,
                "a run has been due since {due} and has not started; check that `prewarm controller` is running"
            ),
            Self::NotSeen => formatter.write_str(
                "no controller has looked at the cron job yet; check that `prewarm controller` is running",
            ),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
