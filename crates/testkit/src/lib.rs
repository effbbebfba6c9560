//! Test support: the real cluster.
//!
//! A real test is an async function in a `tests/real_*.rs` file with `harness = false`; [`real_tests!`] gives that
//! file its `main`, which enters a bed before the first test. Inside, a test starts what it needs: an
//! [`ApiServer`], [`Node`]s with containerd or CRI-O, a [`Registry`] with generated [`image`]s, or a whole [`Cluster`] on
//! which [`Pod`]s run. All of it can be stopped, killed, frozen and restarted, and all of it is gone when the test binary
//! ends, however it ends.

pub mod api_server;
pub mod binary;
pub mod cluster;
pub mod faulty;
pub mod figure;
pub mod helm;
pub mod install;
pub mod measure;
pub mod node;
pub mod peers;
pub mod pod;
pub mod process;
pub mod real;
pub mod registry;
pub mod wait;
pub mod workload;

mod http;
mod pki;

pub use api_server::ApiServer;
pub use cluster::Cluster;
pub use faulty::Faulty;
pub use node::{Containerd, Disk, Node, Runtime};
pub use peers::PeerMirror;
pub use pod::Pod;
pub use prewarm_image as image;
pub use process::Process;
pub use registry::{FaultProxy, Registry};
