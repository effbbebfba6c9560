//! Each fault on its own, under tokio's paused time.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "faults/past.rs"]
mod past;
#[path = "faults/plans.rs"]
mod plans;
#[path = "faults/requests.rs"]
mod requests;
#[path = "faults/silence.rs"]
mod silence;
#[path = "faults/steps.rs"]
mod steps;
#[path = "faults/watches.rs"]
mod watches;
