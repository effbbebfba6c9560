//! What is known of a cron job: when it runs, how its runs ended, and why some did not happen.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use prewarm_api::kruise::{ADVANCED_CRON_JOB, AdvancedCronJob, GROUP, SkippedRuns, TemplateKind};
use prewarm_api::names::condition::LAST_RUN_SUCCEEDED;
use prewarm_plan::schedule::Zone;
use serde::Serialize;

use super::times::Times;
use super::{Note, State, condition, words};
use crate::show::ago;

/// A cron job as commands show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub state: State,
    pub schedule: String,
    pub zone: String,
    /// The kind of its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub makes: Option<&'static str>,
    /// The time for which its last run was scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<Timestamp>,
    /// The result of the run that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_result: Option<Ending>,
    /// The image that failed last; it stays when later runs succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed_image: Option<String>,
    /// The time of its next run; none if it is paused or has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run: Option<Timestamp>,
    pub active: Vec<String>,
    /// Runs that did not happen, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedRuns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    /// What a person has to know or do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    #[serde(skip)]
    now: Timestamp,
    #[serde(skip)]
    zone_of_times: Option<Zone>,
}

/// The result of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    pub succeeded: bool,
    /// The reason in one word.
    pub reason: String,
    /// A sentence with the name of the run.
    pub message: String,
}

impl Summary {
    pub fn of(cron: &AdvancedCronJob, now: Timestamp) -> Self {
        let status = cron.status.clone().unwrap_or_default();
        let times = Times::of(cron, now);
        let state = State::of(cron, times.is_ok());
        let named_zone = cron.spec.time_zone.clone().unwrap_or_else(|| "UTC".to_owned());
        let has_next = !matches!(state, State::Paused | State::Deleting);
        Self {
            kind: ADVANCED_CRON_JOB,
            namespace: cron.namespace().unwrap_or_default(),
            name: cron.name_any(),
            state,
            schedule: cron.spec.schedule.clone(),
            zone: times.as_ref().map_or(named_zone, |times| times.zone.name().to_owned()),
            makes: cron.spec.template.kind().map(TemplateKind::as_str),
            last_run: status.last_schedule_time.as_ref().map(|Time(time)| *time),
            last_result: condition(cron, LAST_RUN_SUCCEEDED).map(|condition| Ending {
                succeeded: condition.status == "True",
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            }),
            last_failed_image: status.last_failed_image,
            next_run: times.as_ref().ok().map(|times| times.next).filter(|_| has_next),
            active: status.active.into_iter().flatten().filter_map(|run| run.name).collect(),
            skipped: status.skipped_runs.unwrap_or_default(),
            created: cron.creation_timestamp().map(|Time(time)| time),
            notes: Note::all(cron, state, &times),
            now,
            zone_of_times: times.ok().map(|times| times.zone),
        }
    }

    /// Its kind and name as users write them.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }

    /// Its name in the output of kubectl.
    pub fn full_name(&self) -> String {
        format!("{}.{GROUP}/{}", self.kind.to_lowercase(), self.name)
    }

    pub fn age(&self) -> String {
        self.created.map_or("-".to_owned(), |created| ago(created, self.now))
    }

    /// How long ago its last run was due.
    pub fn since_last(&self) -> Option<String> {
        self.last_run.map(|last| format!("{} ago", ago(last, self.now)))
    }

    /// How long it is until its next run.
    pub fn until_next(&self) -> Option<String> {
        self.next_run.map(|next| format!("in {}", ago(self.now, next)))
    }

    /// A time in the zone of the schedule, unless that is UTC.
    pub fn there(&self, time: Timestamp) -> Option<String> {
        let zone = self.zone_of_times.as_ref().filter(|zone| zone.name() != "UTC")?;
        Some(format!("{} in {}", zone.show(time), zone.name()))
    }

    /// A sentence for each reason why runs did not happen.
    pub fn skips(&self) -> Vec<String> {
        self.skipped.iter().map(words::skipped).collect()
    }

    pub fn skipped_count(&self) -> i64 {
        self.skipped.iter().fold(0, |sum, runs| sum.saturating_add(runs.count))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn notes(line: &str, status: &Value) -> Vec<String> {
        let cron = json!({
            "metadata": {"name": "nightly", "creationTimestamp": "2026-11-16T20:00:00Z"},
            "spec": {"schedule": line, "template": {"jobTemplate": {}}},
            "status": status,
        });
        let now = "2026-11-17T10:10:00Z".parse().unwrap();
        let summary = Summary::of(&serde_json::from_value(cron).unwrap(), now);
        summary.notes.iter().map(Note::to_string).collect()
    }

    #[test]
    fn an_overdue_run_is_noted() {
        let due = "a run has been due since 2026-11-17T10:00:00Z and has not started; check that `prewarm controller` is running";
        assert_eq!(notes("@hourly", &json!({"lastScheduleTime": "2026-11-17T02:00:00Z"})), [due]);
        assert_eq!(notes("@hourly", &json!({"lastScheduleTime": "2026-11-17T10:00:00Z"})), [""; 0]);
        let new = "no controller has looked at the cron job yet; check that `prewarm controller` is running";
        assert_eq!(notes("@hourly", &json!(null)), [new]);
    }

    #[test]
    fn the_reason_why_no_run_starts_is_noted_once() {
        let condition = json!({"type": "Scheduling", "status": "False", "reason": "NeverDue", "message": "never",
            "lastTransitionTime": "2026-11-17T10:00:00Z"});
        let status = json!({"conditions": [condition]});
        let note = "\"0 0 31 2 *\" has no time within the next five years; check day and month";
        assert_eq!(notes("0 0 31 2 *", &status), [note]);
        assert_eq!(notes("@hourly", &status), ["never"]);
    }
}
