//! Every decision of Prewarm, as pure functions: no clock, no network, no async.

#![warn(missing_docs)]

pub mod advanced_cron_job;
pub mod agent;
pub mod amount;
pub mod backoff;
pub mod broadcast_job;
pub mod condition;
mod hash;
pub mod image_list_pull_job;
pub mod image_pull_job;
pub mod lease;
pub mod ledger;

pub mod node_image;
pub mod object;
pub mod pull_policy;
pub mod schedule;
pub mod secret;
pub mod selection;
pub mod time;

// Test support is one file for the tests in here and those outside, which know the crate by its name.
#[cfg(test)]
extern crate self as prewarm_plan;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
