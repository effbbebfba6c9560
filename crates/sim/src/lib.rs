//! A whole cluster in one process: the embedded API, the real controller, and real agents on fake runtimes. In a test
//! under tokio's paused time, hours of it take moments.
//!
//! Everything between the parts is real: requests are built, sent, parsed and answered. Only time, the runtimes behind
//! the agents, and the faults in front of the API are simulated.

#![expect(clippy::missing_panics_doc, reason = "each panic states what the cluster could not be brought to")]

mod cluster;
mod node;
mod paused;

pub use cluster::Cluster;
pub use node::Node;
pub use paused::on_paused_time;
pub use prewarm_control_plane::{Act, Fall, Player};
