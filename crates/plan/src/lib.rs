//! Every decision of Prewarm, as pure functions: no clock, no network, no async.

#![warn(missing_docs)]

pub mod agent;
pub mod amount;
pub mod backoff;
pub mod cluster;
pub mod condition;
pub mod demand;
mod hash;
pub mod lease;
pub mod object;
pub mod schedule;
pub mod time;
mod words;

// Test support is one file for the tests in here and those outside, which know the crate by its name.
#[cfg(test)]
extern crate self as prewarm_plan;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
