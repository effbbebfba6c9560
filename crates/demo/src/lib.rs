//! The parts of the demo's cluster besides the embedded API: a registry on loopback, an image store for each node, which
//! the real agent drives as if it were containerd, and the nodes' mirrors.
//!
//! Everything that a person could check is real: bytes go over HTTP, digests are verified, and the images of a node are
//! in an OCI image layout. Only the speeds of links ([`pace`]) and the sizes of disks ([`store`]) are simulated.

pub use choices::Choices;
pub use cluster::Cluster;
pub use mirrors::Mirrors;
pub use open_files::allow_many_files;
pub use pace::{Flow, Pace};
pub use registry::Registry;
pub use store::Store;

mod choices;
pub mod cluster;
pub mod mirrors;
mod open_files;
pub mod pace;
pub mod registry;
mod serve;
pub mod store;
pub mod story;
