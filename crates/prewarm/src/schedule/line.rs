//! Reads a schedule from the command line; a mistake is shown as the line with a mark under the wrong place.

use std::fmt;
use std::ops::Range;

use prewarm_api::kruise::{ADVANCED_CRON_JOB, API_VERSION};
use prewarm_api::validate::{Inspection, inspect};
use prewarm_plan::schedule::{Fault, Schedule, Zone};
use serde_json::json;

/// The message for a zone that does not exist.
const ADVICE: &str = "write its IANA name, such as Europe/Berlin or UTC";
/// The API accepts no longer line, and a mark under a longer one would be of little use.
const MOST_OF_LINE: usize = 512;

/// Why a line is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    what: String,
    /// The line, and which of its bytes are wrong.
    place: Option<(String, Range<usize>)>,
}

impl Mistake {
    fn found(line: &str, Fault { at, what }: Fault) -> Self {
        let names_zone = line.get(..at.start).is_some_and(|before| before.ends_with("TZ="));
        let is_unknown_zone =
            names_zone && line.get(at.clone()).is_some_and(|name| Zone::find(name).is_none());
        let what = if is_unknown_zone { format!("{what}; {ADVICE}") } else { what };
        Self { what, place: Some((line.to_owned(), at)) }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        match &self.place {
            Some((line, place)) if !line.is_empty() => {
                write!(formatter, "\n  {}\n  {}", shown(line).trim_end(), mark(line, place))
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Mistake {}

/// Reads a line in a zone, by default UTC, and refuses what the API refuses.
pub fn read(line: &str, zone: Option<&str>) -> Result<Schedule, Mistake> {
    let length = line.chars().count();
    if length > MOST_OF_LINE {
        let what = format!("the schedule has {length} characters; at most {MOST_OF_LINE} are allowed");
        return Err(Mistake { what, place: None });
    }
    // As in the API (kruise V41), the letters `TZ` count wherever they are.
    if let Some(place) = line.find("TZ").filter(|_| zone.is_some()) {
        let end = line[place..].find(' ').map_or(line.len(), |space| place + space);
        let what = "the zone is given twice: remove --zone or the TZ= prefix of the schedule".to_owned();
        return Err(Mistake { what, place: Some((line.to_owned(), 0..end)) });
    }
    let found = zone.map_or(Ok(Zone::utc()), find_zone)?;
    let schedule = Schedule::read(line, found).map_err(|fault| Mistake::found(line, fault))?;
    judge(line, zone)?;
    Ok(schedule)
}

/// The zone of this name. `Local` is refused: it depends on the machine, and a schedule is read on many.
fn find_zone(name: &str) -> Result<Zone, Mistake> {
    let found = Zone::find(name).filter(|_| !matches!(name, "" | "Local"));
    found.ok_or_else(|| Mistake { what: format!("there is no time zone {name:?}; {ADVICE}"), place: None })
}

/// Applies the rules that only the API has.
fn judge(line: &str, zone: Option<&str>) -> Result<(), Mistake> {
    let mut spec = json!({"schedule": line, "template": {"jobTemplate": {}}});
    if let Some(zone) = zone {
        spec["timeZone"] = json!(zone);
    }
    let object = json!({"apiVersion": API_VERSION, "kind": ADVANCED_CRON_JOB, "metadata": {"name": "any"}, "spec": spec});
    let Inspection::Ours(violations) = inspect(&object) else { return Ok(()) };
    match violations.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(Mistake { what: first.message, place: Some((line.to_owned(), 0..line.len())) }),
    }
}

/// The line with one character for each of its characters, so that the mark is below the right one.
fn shown(line: &str) -> String {
    line.chars().map(|one| if one.is_whitespace() || one.is_control() { ' ' } else { one }).collect()
}

/// Carets under the wrong bytes, at least one.
fn mark(line: &str, place: &Range<usize>) -> String {
    let count = |bytes: Range<usize>| line.get(bytes).map_or(0, |part| part.chars().count());
    let wrong = count(place.clone());
    " ".repeat(count(0..place.start)) + &"^".repeat(wrong.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: &str, zone: Option<&str>) -> String {
        read(line, zone).unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_is_marked_below_the_line() {
        assert_eq!(
            mistake("0 2 * * 1-9", None),
            "1-9 is out of range: a day of week is from 0 to 6\n  0 2 * * 1-9\n          ^^^"
        );
        assert_eq!(
            mistake("0,60,1\t2 * * *", None),
            "60 is out of range: a minute is from 0 to 59\n  0,60,1 2 * * *\n    ^^"
        );
        assert_eq!(
            mistake("TZ=Mars/Olympus 0 2 * * *", None),
            "there is no time zone \"Mars/Olympus\"; write its IANA name, such as Europe/Berlin or UTC\n  TZ=Mars/Olympus 0 2 * * *\n     ^^^^^^^^^^^^"
        );
    }

    #[test]
    fn a_mark_counts_characters_and_not_bytes() {
        assert_eq!(mistake("ä é * * *", None), "\"ä\" is no minute\n  ä é * * *\n  ^");
        assert_eq!(mistake("0 é * * *", None), "\"é\" is no hour\n  0 é * * *\n    ^");
    }

    #[test]
    fn empty_and_overlong_schedules_are_refused_without_showing_them() {
        assert_eq!(mistake("", None), "there is no schedule");
        assert_eq!(
            mistake(&"*".repeat(513), None),
            "the schedule has 513 characters; at most 512 are allowed"
        );
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_typed_is_read_or_marked_within_the_line(
            line in "(CRON_)?(TZ=[A-Zé/]{0,4} ?)?[0-9*?,/@a-zé \\t\u{a0}-]{0,24}",
            zone in proptest::option::of("[A-Za-z/é]{0,6}"),
        ) {
            if let Err(mistake) = read(&line, zone.as_deref()) {
                let message = mistake.to_string();
                if let [_, shown, mark] = message.lines().collect::<Vec<_>>()[..] {
                    proptest::prop_assert!(mark.trim_start().chars().all(|one| one == '^'), "{message}");
                    // A missing part at the end is marked behind the line.
                    let most = 2 + line.chars().count() + 1;
                    proptest::prop_assert!(mark.chars().count() <= most && shown.chars().count() < most, "{message}");
                }
            }
        }
    }

    #[test]
    fn a_zone_has_to_exist_and_may_be_given_once() {
        for zone in ["Mars/Olympus", "Local", "local", "", "europe/berlin"] {
            let message = mistake("0 2 * * *", Some(zone));
            assert!(message.ends_with("write its IANA name, such as Europe/Berlin or UTC"), "{message}");
        }
        for line in ["TZ=UTC 0 2 * * *", "CRON_TZ=UTC 0 2 * * *"] {
            let message = mistake(line, Some("UTC"));
            assert!(
                message.starts_with("the zone is given twice: remove --zone or the TZ= prefix"),
                "{message}"
            );
        }
    }

    #[test]
    fn rules_that_only_the_api_has_apply_here_too() {
        // The parser accepts any white space, the pattern in the definition does not.
        let message = mistake("0 2\u{a0}* * *", None);
        assert!(message.starts_with("not a schedule: write five fields"), "{message}");
    }
}
