//! Every decision of Prewarm, as pure functions: no clock, no network, no async.

#![warn(missing_docs)]

pub mod condition;
pub mod node;
pub mod pull_policy;
pub mod selection;
