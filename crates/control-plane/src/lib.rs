//! A cluster without nodes in one process: the embedded API and the real controller. In a test under tokio's paused
//! time, hours of it take moments.
//!
//! No agent is part of it, so that a change of the agent affects none of its tests; `prewarm-sim` adds nodes that work.

#![expect(clippy::missing_panics_doc, reason = "each panic states what the cluster could not be brought to")]

mod control_plane;
mod controller;
mod player;
mod wait;

pub use control_plane::ControlPlane;
pub use controller::{Fall, Falls, spawn_until};
pub use player::{Act, Player};
