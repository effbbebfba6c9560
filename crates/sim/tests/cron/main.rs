//! AdvancedCronJobs on the embedded API, with the real controller, in paused time.
//!
//! `T…`, `R…` and `W…` are tests, rules and weaknesses of `OpenKruise` 1.9; `docs/compatibility.md` says which test shows
//! which of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod history;
mod policies;
mod support;
mod templates;
mod troubles;
