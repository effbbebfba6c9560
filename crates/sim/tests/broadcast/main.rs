//! BroadcastJobs on the embedded API, with the real controller and pods that are played, in paused time.
//!
//! `T…`, `R…` and `W…` are tests, rules and weaknesses of `OpenKruise` 1.9; `docs/compatibility.md` says which test shows
//! which of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod ends;
mod hindrances;
mod idle;
mod matrix;
mod nodes;
mod pauses;
mod support;
