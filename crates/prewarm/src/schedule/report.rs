//! One row for each of the next runs.

use jiff::Timestamp;
use jiff::civil::{DateTime, Weekday};
use prewarm_plan::schedule::{Schedule, Zone};
use serde::{Serialize, Serializer};

use crate::show::{self, Cell, Column, Look, ago, table};

const COLUMNS: [Column; 5] =
    [Column::new("DAY"), Column::new("TIME"), Column::new("ZONE"), Column::new("UTC"), Column::new("IN")];

/// The next times of a schedule.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(serialize_with = "in_utc")]
    next: Vec<Timestamp>,
    #[serde(skip)]
    zone: Zone,
    #[serde(skip)]
    from: Timestamp,
    #[serde(skip)]
    is_cut: bool,
}

impl Report {
    /// At most this number of times after the given one.
    pub fn of(schedule: &Schedule, from: Timestamp, most: usize) -> Self {
        let after = |time: &Timestamp| schedule.next(*time);
        let next: Vec<Timestamp> = std::iter::successors(after(&from), after).take(most).collect();
        let is_cut = next.len() == most;
        Self { next, zone: schedule.zone().clone(), from, is_cut }
    }

    /// The line that is printed if there are fewer times than asked for.
    pub fn remark(&self) -> String {
        match self.next.last() {
            _ if self.is_cut => String::new(),
            None => format!(
                "There is no time within five years after {}; check day and month.\n",
                self.from.strftime("%Y-%m-%dT%H:%M:%SZ")
            ),
            Some(last) => format!("There is no other time within five years after {last}.\n"),
        }
    }

    fn cells(&self, time: Timestamp) -> Vec<Cell> {
        let there = self.zone.show(time);
        vec![
            day(&there).into(),
            there.into(),
            self.zone.name().into(),
            time.to_string().into(),
            ago(self.from, time).into(),
        ]
    }
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        table(&COLUMNS, self.next.iter().map(|time| self.cells(*time)), look)
    }

    fn names(&self) -> Vec<String> {
        self.next.iter().map(Timestamp::to_string).collect()
    }
}

/// The day of the week of a local time.
fn day(there: &str) -> &'static str {
    match there.parse().map(DateTime::weekday) {
        Ok(Weekday::Monday) => "Mon",
        Ok(Weekday::Tuesday) => "Tue",
        Ok(Weekday::Wednesday) => "Wed",
        Ok(Weekday::Thursday) => "Thu",
        Ok(Weekday::Friday) => "Fri",
        Ok(Weekday::Saturday) => "Sat",
        Ok(Weekday::Sunday) => "Sun",
        Err(_) => "-",
    }
}

fn in_utc<S: Serializer>(times: &[Timestamp], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(times.iter().map(Timestamp::to_string))
}

#[cfg(test)]
mod tests {
    use show::Report as _;

    use super::*;

    fn report(line: &str, zone: &str, from: &str, most: usize) -> Report {
        let schedule = Schedule::read(line, Zone::find(zone).unwrap()).unwrap();
        Report::of(&schedule, from.parse().unwrap(), most)
    }

    /// In Berlin, clocks skip the hour after two on this day.
    #[test]
    fn runs_are_shown_in_their_zone_and_in_utc() {
        let report = report("30 3 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3);
        assert_eq!(
            report.text(Look::default()),
            "DAY   TIME                        ZONE            UTC                    IN\n\
             Sat   2026-03-28T03:30:00+01:00   Europe/Berlin   2026-03-28T02:30:00Z   14h\n\
             Sun   2026-03-29T03:30:00+02:00   Europe/Berlin   2026-03-29T01:30:00Z   37h\n\
             Mon   2026-03-30T03:30:00+02:00   Europe/Berlin   2026-03-30T01:30:00Z   2d13h\n"
        );
        assert_eq!(report.remark(), "");
    }

    #[test]
    fn programs_get_times_in_utc() {
        let report = report("@every 90m", "UTC", "2026-11-16T09:00:00.5+01:00", 2);
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(json, r#"{"next":["2026-11-16T09:30:00Z","2026-11-16T11:00:00Z"]}"#);
        assert_eq!(report.names(), ["2026-11-16T09:30:00Z", "2026-11-16T11:00:00Z"]);
    }

    #[test]
    fn a_schedule_without_further_times_says_so() {
        let never = report("0 0 31 2 *", "UTC", "2026-11-16T09:00:00.25Z", 5);
        assert_eq!(serde_json::to_string(&never).unwrap(), r#"{"next":[]}"#);
        assert_eq!(never.text(Look::default()), "");
        assert_eq!(
            never.remark(),
            "There is no time within five years after 2026-11-16T09:00:00Z; check day and month.\n"
        );
        let once = report("0 0 29 2 *", "UTC", "2095-01-01T00:00:00Z", 5);
        assert_eq!(once.remark(), "There is no other time within five years after 2096-02-29T00:00:00Z.\n");
    }
}
