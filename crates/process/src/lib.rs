//! What every long-running process of Prewarm has: a log, answers to probes and scrapes, events that people read, and
//! clients and watches that go on through outages. And what is watched of Nodes and pods, for those who ask what a controller
//! would see.
//!
//! Each program decides what it logs, answers and reports. This crate decides how, and within which bounds.

pub mod client;
pub mod event;
pub mod http;
pub mod log;
pub mod metrics;
pub mod pulse;
pub mod slim;
pub mod wake;
pub mod watch;
