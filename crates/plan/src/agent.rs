//! The decisions of the node agent: what to pull next, when to try again, what to report and when.

use std::time::Duration;

use jiff::Timestamp;

pub mod asking;
pub mod assignment;
mod attempt;
pub mod conditions;
pub mod disk;
mod doubt;
mod entry;
pub mod inventory;
pub mod kruise;
mod message;
pub mod node_runtime;
mod pace;
mod places;
mod queue;
pub mod report;
pub mod runtime;
pub mod source;
pub mod stall;
pub mod state;
pub mod task;
pub mod wait;
pub mod when;
pub mod worklist;

pub use places::KEPT as KEPT_PLACES;

/// A point in time, twice: as the time since the agent's start, which never jumps and decides, and as the time of day,
/// which is only reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the agent's start.
    pub elapsed: Duration,
    /// Time of day.
    pub wall: Timestamp,
}
