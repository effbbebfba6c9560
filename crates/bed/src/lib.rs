//! Where tests with real programs run.
//!
//! A bed is one `unshare` of the network, mount and process namespaces around a whole test binary. Inside it every
//! address is free and no packet leaves; when its first process dies, the kernel ends every other process and drops
//! every mount. Only empty cgroup directories would be left, and a process that outlives the bed removes them.
//!
//! This crate knows the pinned programs ([`programs`]) and how to get into a bed ([`enter`]). It knows nothing of
//! Kubernetes and has no async runtime, because the task runner needs it too. What runs inside a bed is in the test
//! kit.

#![expect(
    clippy::missing_panics_doc,
    reason = "each `expect` states an invariant, so no caller can meet the panic"
)]

pub mod cgroups;
pub mod commands;
pub mod enter;
pub mod inside;
pub mod programs;
mod sweeper;

pub use enter::{Unavailable, enter};
