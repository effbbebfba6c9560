//! What every long-running process of Prewarm has: a log, answers to probes and scrapes, events that people read, and
//! watches that go on through outages.
//!
//! Each program decides what it logs, answers and reports. This crate decides how, and within which bounds.

pub mod event;
pub mod http;
pub mod log;
pub mod pulse;
pub mod wake;
pub mod watch;
