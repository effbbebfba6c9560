//! The decisions of the node agent: what to pull next, when to try again, what to report and when.

use std::time::Duration;

use jiff::Timestamp;

pub mod assignment;
mod attempt;
pub mod conditions;
pub mod disk;
mod entry;
pub mod inventory;
pub mod kruise;
mod message;
mod pace;
mod queue;
pub mod report;
pub mod source;
pub mod state;
pub mod task;
pub mod wait;
pub mod when;
pub mod worklist;

/// A point in time, twice: as the time since the agent's start, which never jumps and decides, and as the time of day,
/// which is only reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the agent's start.
    pub elapsed: Duration,
    /// Time of day.
    pub wall: Timestamp,
}
