//! Times as they stand in objects: without fractions of a second, and chosen by whoever wrote the object.

use std::time::Duration;

use jiff::Timestamp;

/// The moment as an object has it, so that what was written compares equal to what is read.
pub fn stamp(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

/// So much later, or the last moment there is: what stands in an object may lie near the end of time.
pub fn after(moment: Timestamp, time: Duration) -> Timestamp {
    moment.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// The earlier of two moments, if there is any.
pub(crate) fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
