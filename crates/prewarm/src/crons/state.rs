//! The state of a cron job in one word.

use prewarm_api::kruise::{AdvancedCronJob, SkipReason};
use prewarm_api::names::condition::{LAST_RUN_SUCCEEDED, SCHEDULING};
use prewarm_plan::cluster::advanced_cron_job::hindrance;
use serde::Serialize;

use super::trouble;
use crate::show::Tone;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// No controller has looked at it yet.
    New,
    /// It waits for its next run.
    Scheduled,
    /// A run is going on.
    Running,
    /// It was paused and starts no further runs.
    Paused,
    /// The run that ended last did not succeed.
    Failed,
    /// No run can start: the schedule has no times, or the API server refuses the runs.
    Stuck,
    /// It is being deleted.
    Deleting,
}

impl State {
    /// The state of a cron job, given whether its schedule has times.
    pub fn of(cron: &AdvancedCronJob, has_times: bool) -> Self {
        if cron.metadata.deletion_timestamp.is_some() {
            return Self::Deleting;
        }
        // Both reasons are choices of the user, so nothing is wrong.
        let is_wanted = matches!(hindrance::told(cron), Some(SkipReason::Paused | SkipReason::Forbidden));
        let is_hindered = trouble(cron, SCHEDULING).is_some() && !is_wanted;
        let Some(status) = &cron.status else {
            return if has_times { Self::New } else { Self::Stuck };
        };
        match &status.active {
            _ if !has_times || is_hindered => Self::Stuck,
            _ if cron.spec.paused => Self::Paused,
            Some(active) if !active.is_empty() => Self::Running,
            _ if trouble(cron, LAST_RUN_SUCCEEDED).is_some() => Self::Failed,
            _ => Self::Scheduled,
        }
    }

    /// Whether somebody has to act.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Stuck)
    }

    pub fn tone(self) -> Tone {
        match self {
            Self::Scheduled => Tone::Good,
            Self::Running => Tone::Busy,
            Self::Failed | Self::Stuck => Tone::Bad,
            Self::New | Self::Paused | Self::Deleting => Tone::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(paused: bool, status: &Value) -> State {
        let cron = json!({
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "@daily", "paused": paused, "template": {"jobTemplate": {}}},
            "status": status,
        });
        State::of(&serde_json::from_value(cron).unwrap(), true)
    }

    fn conditions(all: &[(&str, &str, &str)]) -> Value {
        let one = |(type_, status, reason): &(&str, &str, &str)| {
            json!({"type": type_, "status": status, "reason": reason, "message": "why",
                "lastTransitionTime": "2026-11-17T10:00:00Z"})
        };
        json!(all.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn the_state_shows_what_matters_most() {
        let failed = ("LastRunSucceeded", "False", "ImagesFailed");
        assert_eq!(state(false, &json!(null)), State::New);
        assert_eq!(state(false, &json!({})), State::Scheduled);
        assert_eq!(state(true, &json!({"active": [{"name": "nightly-1"}]})), State::Paused);
        assert_eq!(state(false, &json!({"conditions": conditions(&[failed])})), State::Failed);
        let running = json!({"active": [{"name": "nightly-1"}], "conditions": conditions(&[failed])});
        assert_eq!(state(false, &running), State::Running);
        for (reason, expected) in [("Refused", State::Stuck), ("Forbidden", State::Scheduled)] {
            let status = json!({"conditions": conditions(&[("Scheduling", "False", reason)])});
            assert_eq!(state(false, &status), expected);
        }
    }
}
