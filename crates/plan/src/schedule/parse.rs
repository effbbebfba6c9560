//! Reading a line.

use std::ops::Range;

use super::field::{self, Bits, DAY, HOUR, MINUTE, MONTH, WEEKDAY};
use super::zone::Zone;
use super::{Fields, Rule, duration};

/// What is wrong with a line, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The bytes of the line that it is about.
    pub at: Range<usize>,
    /// What is wrong.
    pub what: String,
}

const NANOSECONDS: i64 = 1_000_000_000;

/// Reads a line: when something is due, and the zone, if the line names one.
pub fn parse(line: &str) -> Result<(Rule, Option<Zone>), Fault> {
    let whole = |what: &str| Fault { at: 0..line.len(), what: what.to_owned() };
    if line.is_empty() {
        return Err(whole("there is no schedule"));
    }
    let (zone, at) = parse_zone(line)?;
    // Only what comes after a zone is trimmed: that is how people's schedules are read today.
    let rest = if zone.is_some() { line[at..].trim() } else { line };
    let at = if zone.is_some() { at + (line[at..].len() - line[at..].trim_start().len()) } else { 0 };
    let rule = match rest.strip_prefix('@') {
        Some(_) => parse_descriptor(rest, at)?,
        None => parse_fields(rest, at)?,
    };
    Ok((rule, zone))
}

/// The zone, and where what comes after it begins.
fn parse_zone(line: &str) -> Result<(Option<Zone>, usize), Fault> {
    let Some(name_at) =
        ["TZ=", "CRON_TZ="].iter().find(|prefix| line.starts_with(**prefix)).map(|prefix| prefix.len())
    else {
        return Ok((None, 0));
    };
    let fault = |end: usize, what: String| Fault { at: name_at..end, what };
    let Some(space) = line.find(' ') else {
        return Err(fault(line.len(), "a space has to follow the zone".to_owned()));
    };
    let name = &line[name_at..space];
    match Zone::find(name) {
        Some(zone) => Ok((Some(zone), space)),
        None => Err(fault(space, format!("there is no time zone {name:?}"))),
    }
}

fn parse_descriptor(text: &str, at: usize) -> Result<Rule, Fault> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let place = at + text.len() - duration.len()..at + text.len();
        let nanoseconds = duration::parse(duration)
            .map_err(|what| Fault { at: place, what: format!("{duration:?}: {what}") })?;
        return Ok(Rule::Every((nanoseconds / NANOSECONDS).max(1)));
    }
    let (zero, first) = (1, 2);
    let every = Fields {
        minute: zero,
        hour: Bits::all(&HOUR).values,
        day: Bits::all(&DAY),
        month: Bits::all(&MONTH).values,
        weekday: Bits::all(&WEEKDAY),
    };
    let daily = Fields { hour: zero, ..every };
    let fields = match text {
        "@yearly" | "@annually" => Fields { day: Bits::one(1), month: first, ..daily },
        "@monthly" => Fields { day: Bits::one(1), ..daily },
        "@weekly" => Fields { weekday: Bits::one(0), ..daily },
        "@daily" | "@midnight" => daily,
        "@hourly" => every,
        _ => {
            let what = "no such word: there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and \
                        @every with a duration";
            return Err(Fault { at: at..at + text.len(), what: what.to_owned() });
        }
    };
    Ok(Rule::Fields(fields))
}

fn parse_fields(text: &str, at: usize) -> Result<Rule, Fault> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = words[..] else {
        let what = format!(
            "five fields are needed (minute, hour, day of month, month, day of week), not {}",
            words.len()
        );
        return Err(Fault { at: at..at + text.len(), what });
    };
    let place = |word: &str| at + word.as_ptr() as usize - text.as_ptr() as usize;
    Ok(Rule::Fields(Fields {
        minute: field::parse(minute, place(minute), &MINUTE)?.values,
        hour: field::parse(hour, place(hour), &HOUR)?.values,
        day: field::parse(day, place(day), &DAY)?,
        month: field::parse(month, place(month), &MONTH)?.values,
        weekday: field::parse(weekday, place(weekday), &WEEKDAY)?,
    }))
}
