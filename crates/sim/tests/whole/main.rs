//! The whole controller and agents on the embedded API, in paused time.
//!
//! Tests name what they hold the program to: `T…`, `R…` and `W…` are tests, rules and weaknesses of `OpenKruise` 1.9's
//! controllers. `docs/compatibility.md` says which test shows which of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod clocks;
mod dead_connections;
mod first;
mod granting;
mod idle;
mod jobs;
mod lists;
mod meddling;
mod never;
mod newer_fields;
mod node_life;
mod optional;
mod parallel;
mod secrets;
mod selection;
mod sharing;
mod silence;
mod status;
mod support;
mod table;
mod takeover;
mod tenants;
mod unreadable;
mod waking;
