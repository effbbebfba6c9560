//! One field of a schedule.

use std::ops::Range;

use super::parse::Fault;

/// What a field can hold.
pub struct Kind {
    pub word: &'static str,
    pub first: u64,
    pub last: u64,
    /// Names that stand for numbers, from `first` on.
    pub names: &'static [&'static str],
}

pub const MINUTE: Kind = Kind { word: "minute", first: 0, last: 59, names: &[] };
pub const HOUR: Kind = Kind { word: "hour", first: 0, last: 23, names: &[] };
pub const DAY: Kind = Kind { word: "day of month", first: 1, last: 31, names: &[] };
pub const MONTH: Kind = Kind {
    word: "month",
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub const WEEKDAY: Kind = Kind {
    word: "day of week",
    first: 0,
    last: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// What a field matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    pub values: u64,
    /// Whether the field leaves the choice to the other one of the two day fields.
    pub is_open: bool,
}

impl Bits {
    /// Everything.
    pub fn all(kind: &Kind) -> Self {
        Self { values: values(kind.first, kind.last, 1), is_open: true }
    }

    /// One value.
    pub fn one(value: u64) -> Self {
        Self { values: 1 << value, is_open: false }
    }
}

/// Reads a field that stands at this place of the line. Nothing between commas is no mistake, and a field of commas alone
/// matches nothing.
pub fn parse(text: &str, at: usize, kind: &Kind) -> Result<Bits, Fault> {
    let mut bits = Bits { values: 0, is_open: false };
    let mut begin = 0;
    for part in text.split(',') {
        if !part.is_empty() {
            let range = parse_range(part, at + begin, kind)?;
            bits = Bits { values: bits.values | range.values, is_open: bits.is_open | range.is_open };
        }
        begin += part.len() + 1;
    }
    Ok(bits)
}

fn parse_range(text: &str, at: usize, kind: &Kind) -> Result<Bits, Fault> {
    let fault = |what: String| Fault { at: at..at + text.len(), what };
    let mut halves = text.split('/');
    let (range, step) = (halves.next().unwrap_or_default(), halves.next());
    let mut ends = range.split('-');
    let (low, high) = (ends.next().unwrap_or_default(), ends.next());
    let is_star = low == "*" || low == "?";
    let (first, mut last) = if is_star {
        (kind.first, kind.last)
    } else {
        let first = number(low, at..at + text.len(), kind)?;
        let last = high.map(|high| number(high, at..at + text.len(), kind)).transpose()?;
        if ends.next().is_some() {
            return Err(fault(format!("{text} has more than one hyphen")));
        }
        (first, last.unwrap_or(first))
    };
    let step = match step {
        None => 1,
        Some(step) => {
            if high.is_none() {
                last = kind.last;
            }
            integer(step).ok_or_else(|| fault(format!("the step {step:?} is no number")))?
        }
    };
    if halves.next().is_some() {
        return Err(fault(format!("{text} has more than one slash")));
    }
    if first < kind.first || last > kind.last {
        let article = if kind.word == "hour" { "an" } else { "a" };
        let Kind { word, first, last, .. } = kind;
        return Err(fault(format!("{text} is out of range: {article} {word} is from {first} to {last}")));
    }
    if first > last {
        return Err(fault(format!("{text} begins after its end")));
    }
    if step == 0 {
        return Err(fault(format!("{text} has a step of 0")));
    }
    Ok(Bits { values: values(first, last, step), is_open: is_star && step == 1 })
}

fn number(text: &str, at: Range<usize>, kind: &Kind) -> Result<u64, Fault> {
    let lower = text.to_lowercase();
    let name = kind.names.iter().position(|name| *name == lower);
    if let Some(place) = name {
        return Ok(kind.first + place as u64);
    }
    integer(text).ok_or_else(|| Fault { at, what: format!("{text:?} is no {}", kind.word) })
}

/// A number that may have a plus sign, as Go reads it.
fn integer(text: &str) -> Option<u64> {
    text.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok())
}

fn values(first: u64, last: u64, step: u64) -> u64 {
    let (mut values, mut value) = (0, first);
    while value <= last {
        values |= 1 << value;
        value = value.saturating_add(step);
    }
    values
}
