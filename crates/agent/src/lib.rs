//! The node agent: pulls what its NodeImage asks and reports.
//!
//! `run` is the loop; what it decides is in `prewarm-plan`. It observes `watch` (the NodeImage), `pull` (workers), `look`
//! (what waits), `check` (what is finished) and `connection` (the runtime), and writes through `reporter` and `event`.

mod check;
pub mod config;
mod connection;
pub mod disk;
mod event;
mod health;
mod look;
mod metrics;
mod pull;
mod reporter;
mod room;
mod run;
pub mod secrets;

pub use event::{Events, events};
pub use health::Health;
pub use metrics::Metrics;
pub use run::{Agent, run};
