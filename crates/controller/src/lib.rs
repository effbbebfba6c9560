//! The controller: grants jobs to nodes and rolls up what the nodes report.
//!
//! `run` is the loop; what it decides is in `prewarm-plan`. It hears `watch` (everything in the cluster that matters) and
//! writes through `apply`. Of several controllers the one that holds the `lease` leads: see `election`.

mod apply;
mod budget;
pub mod config;
mod content;
mod election;
mod health;
mod lead;
pub mod lease;
mod metrics;
mod rival;
mod run;
mod watch;

pub use election::run;
pub use health::Health;
pub use lead::{Controller, lead};
pub use metrics::Metrics;
