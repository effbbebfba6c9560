//! What every long-running process of Prewarm has: a log, answers to probes and scrapes, and events that people read.
//!
//! What is logged, answered and told is each program's own; here is only how, and within which bounds.

pub mod event;
pub mod http;
pub mod log;
pub mod wake;
