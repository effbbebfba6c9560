//! What the demo's cluster is made of besides the embedded API: a registry on loopback. Simulated are only the speeds of
//! links ([`pace`]).

#![warn(missing_docs)]

pub use pace::{Flow, Pace};
pub use registry::Registry;

pub mod pace;
pub mod registry;
