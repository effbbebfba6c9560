//! When the runs of a cron job are due.

use jiff::Timestamp;
use prewarm_api::kruise::AdvancedCronJobSpec;

use crate::condition::Reason;
use crate::schedule::{Schedule, Zone};

/// Why no run is ever due. What only the parser can refuse is found here: the API server takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// In one word, for the condition and the event.
    pub reason: Reason,
    /// In a sentence.
    pub message: String,
}

/// Reads the schedule in its zone: the one in the line, else `timeZone`, else UTC (kruise R91).
pub fn read(spec: &AdvancedCronJobSpec) -> Result<Schedule, Trouble> {
    let zone = match spec.time_zone.as_deref() {
        None => Zone::utc(),
        Some(name) => Zone::find(name).ok_or_else(|| Trouble {
            reason: Reason::UnknownTimeZone,
            message: format!("there is no time zone {name:?}; write one such as Europe/Berlin or UTC"),
        })?,
    };
    Schedule::read(&spec.schedule, zone).map_err(|fault| Trouble {
        reason: Reason::NotASchedule,
        message: format!(
            "{:?} at character {}: {}",
            spec.schedule,
            place(&spec.schedule, fault.at.start),
            fault.what
        ),
    })
}

/// Where a byte stands in a line, counted in characters from 1.
fn place(line: &str, byte: usize) -> usize {
    line.get(..byte).map_or(0, |before| before.chars().count()) + 1
}

/// The next time after this one, or why there is none.
pub fn next(schedule: &Schedule, line: &str, after: Timestamp) -> Result<Timestamp, Trouble> {
    schedule.next(after).ok_or_else(|| Trouble {
        reason: Reason::NeverDue,
        message: format!("{line:?} has no time within the next five years; check day and month"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(fields: &Value) -> AdvancedCronJobSpec {
        let mut spec = json!({"schedule": "0 10 * * ?", "template": {"jobTemplate": {}}});
        json_patch::merge(&mut spec, fields);
        serde_json::from_value(spec).unwrap()
    }

    fn trouble(fields: &Value) -> (&'static str, String) {
        let Trouble { reason, message } = read(&spec(fields)).unwrap_err();
        (reason.as_str(), message)
    }

    /// kruise R91, T100: without a zone it is UTC, whatever the machine thinks.
    #[test]
    fn the_zone_is_that_of_the_line_or_of_the_field_or_utc() {
        let morning: Timestamp = "2026-11-17T01:00:00Z".parse().unwrap();
        let hour = |fields| read(&spec(&fields)).unwrap().next(morning).unwrap().to_string();
        assert_eq!(hour(json!({})), "2026-11-17T10:00:00Z");
        assert_eq!(hour(json!({"timeZone": "Asia/Shanghai"})), "2026-11-17T02:00:00Z");
        assert_eq!(hour(json!({"schedule": "TZ=Asia/Shanghai 0 10 * * ?"})), "2026-11-17T02:00:00Z");
    }

    /// kruise T106.
    #[test]
    fn what_only_a_parser_can_refuse_is_told_with_its_place() {
        assert_eq!(
            trouble(&json!({"timeZone": "Mars/Olympus"})),
            (
                "UnknownTimeZone",
                "there is no time zone \"Mars/Olympus\"; write one such as Europe/Berlin or UTC".to_owned()
            )
        );
        assert_eq!(
            trouble(&json!({"schedule": "0 20-10 * * *"})),
            ("NotASchedule", "\"0 20-10 * * *\" at character 3: 20-10 begins after its end".to_owned())
        );
    }

    #[test]
    fn a_schedule_that_never_comes_is_told() {
        let spec = spec(&json!({"schedule": "0 0 31 2 *"}));
        let told = next(&read(&spec).unwrap(), &spec.schedule, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(told.reason, Reason::NeverDue);
    }
}
