//! What the demo's cluster is made of besides the embedded API: a registry on loopback, and an image store for each
//! node, which the real agent drives as if it were containerd.
//!
//! Everything that a person could check is real: bytes go over HTTP, digests are verified, and what a node has lies in
//! an OCI image layout. Simulated are only the speeds of links ([`pace`]) and the sizes of disks ([`store`]).

#![warn(missing_docs)]

pub use cluster::Cluster;
pub use luck::Luck;
pub use open_files::allow_many_files;
pub use pace::{Flow, Pace};
pub use registry::Registry;
pub use store::Store;

pub mod cluster;
mod luck;
mod open_files;
pub mod pace;
pub mod registry;
pub mod store;
pub mod story;
