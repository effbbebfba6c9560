//! Schedules of crons, as Kubernetes' own CronJob understands them (kruise R90, R91).
//!
//! ```text
//! TZ=Europe/Berlin  0  2  *  *  1-5
//! zone              minute hour day month weekday      or @hourly, @daily …, @every 90m
//! ```
//!
//! It is written by hand because people's schedules come from programs that use one Go library, and no crate agrees with
//! that one about `?`, names, steps, day rules, the hours that clocks skip or repeat, or the descriptors. A golden file made
//! by that library decides.

mod duration;
mod field;
mod missed;
mod next;
mod parse;
mod zone;

pub use missed::{MOST_COUNTED, Missed};
pub use parse::Fault;
pub use zone::Zone;

use jiff::Timestamp;

/// When something is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    rule: Rule,
    /// The zone in which the fields are read.
    zone: Zone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// At times that match.
    Fields(Fields),
    /// So many seconds after the time before.
    Every(i64),
}

/// The bits of each field that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    minute: u64,
    hour: u64,
    day: field::Bits,
    month: u64,
    weekday: field::Bits,
}

impl Schedule {
    /// Reads a line. Unless it names a zone itself, its fields are those of this one.
    pub fn read(line: &str, zone: Zone) -> Result<Self, Fault> {
        let (rule, own_zone) = parse::parse(line)?;
        Ok(Self { rule, zone: own_zone.unwrap_or(zone) })
    }

    /// The first time after this one; `None` if none comes within five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let second = after.as_second();
        match &self.rule {
            Rule::Every(seconds) => Timestamp::from_second(second.checked_add(*seconds)?).ok(),
            Rule::Fields(fields) => next::next(fields, second, &self.zone),
        }
    }

    /// Whether its fields match the clocks at this time. What happens again and again matches at no time of its own.
    pub fn matches(&self, at: Timestamp) -> bool {
        match &self.rule {
            Rule::Every(_) => false,
            Rule::Fields(fields) => next::matches(fields, at.as_second(), &self.zone),
        }
    }

    /// The zone in which it is read.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }
}
