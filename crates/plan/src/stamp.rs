//! Times as they stand in objects: without fractions of a second.

use jiff::Timestamp;

/// The moment as an object has it, so that what was written compares equal to what is read.
pub fn stamp(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}
