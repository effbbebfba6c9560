//! When a cron job runs next, counted as the controller counts: from the last time that was settled, which is the
//! time of its last run, of the last skipped run, or of its creation.

use jiff::{SignedDuration, Timestamp};
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_plan::cluster::advanced_cron_job::due::settled_until;
use prewarm_plan::cluster::advanced_cron_job::timetable::{self, Trouble};
use prewarm_plan::schedule::{Schedule, Zone};

/// The time in which a controller starts a run or counts it as skipped.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// The next time in the future.
    pub next: Timestamp,
    /// A time that has passed without a run or a skip.
    pub overdue: Option<Timestamp>,
    pub zone: Zone,
}

impl Times {
    /// The times of a cron job, or why it has none.
    pub fn of(cron: &AdvancedCronJob, now: Timestamp) -> Result<Self, Trouble> {
        let schedule: Schedule = timetable::read(&cron.spec)?;
        let settled = settled_until(cron);
        let missed = schedule.missed(settled, now);
        // `@every` counts from the previous run, not from the present.
        let before = missed.map_or(settled, |missed| missed.latest);
        let next = timetable::next(&schedule, &cron.spec.schedule, before)?;
        let overdue = missed.map(|missed| missed.latest).filter(|due| now.duration_since(*due) > GRACE);
        Ok(Self { next, overdue, zone: schedule.zone().clone() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-17T10:10:00Z";

    fn times(line: &str, status: &Value) -> Result<(String, Option<String>), String> {
        let cron: AdvancedCronJob = serde_json::from_value(json!({
            "metadata": {"name": "nightly", "creationTimestamp": "2026-11-16T20:00:00Z"},
            "spec": {"schedule": line, "template": {"jobTemplate": {}}},
            "status": status,
        }))
        .unwrap();
        let times =
            Times::of(&cron, NOW.parse().unwrap()).map_err(|trouble| trouble.reason.as_str().to_owned())?;
        Ok((times.next.to_string(), times.overdue.map(|due| due.to_string())))
    }

    fn at(next: &str) -> (String, Option<String>) {
        (next.to_owned(), None)
    }

    #[test]
    fn the_next_run_comes_after_now_and_after_the_last_one() {
        let last = |time: &str| json!({"lastScheduleTime": time});
        assert_eq!(times("0 * * * *", &last("2026-11-17T10:00:00Z")), Ok(at("2026-11-17T11:00:00Z")));
        // The controller's clock is ahead.
        assert_eq!(times("0 * * * *", &last("2026-11-17T11:00:00Z")), Ok(at("2026-11-17T12:00:00Z")));
    }

    #[test]
    fn an_interval_counts_from_the_last_run() {
        let last = |time: &str| json!({"lastScheduleTime": time});
        assert_eq!(times("@every 90m", &last("2026-11-17T10:00:00Z")), Ok(at("2026-11-17T11:30:00Z")));
        let skipped = json!([{"reason": "Missed", "count": 2, "lastTime": "2026-11-17T10:05:00Z"}]);
        let status = json!({"lastScheduleTime": "2026-11-17T07:05:00Z", "skippedRuns": skipped});
        assert_eq!(times("@every 90m", &status), Ok(at("2026-11-17T11:35:00Z")));
    }

    #[test]
    fn a_past_time_without_a_run_or_skip_is_overdue() {
        let (next, due) = times("0 * * * *", &json!({"lastScheduleTime": "2026-11-17T08:00:00Z"})).unwrap();
        assert_eq!((next.as_str(), due.as_deref()), ("2026-11-17T11:00:00Z", Some("2026-11-17T10:00:00Z")));
        let moment = json!({"lastScheduleTime": "2026-11-17T10:09:45Z"});
        assert_eq!(times("* * * * *", &moment), Ok(at("2026-11-17T10:11:00Z")));
    }

    #[test]
    fn a_schedule_without_times_says_why() {
        assert_eq!(times("0 0 31 2 *", &json!(null)), Err("NeverDue".to_owned()));
        assert_eq!(times("0 20-10 * * *", &json!(null)), Err("NotASchedule".to_owned()));
    }
}
