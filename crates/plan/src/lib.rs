//! Every decision of Prewarm, as pure functions: no clock, no network, no async.

#![warn(missing_docs)]

pub mod node;
