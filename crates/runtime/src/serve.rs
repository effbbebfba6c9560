//! The serving half: the calls of CRI and of containerd, answered over a pipe in memory by a backend.
//!
//! A [`Backend`] deals in plain values. How they look on the wire, and in which words containerd refuses, is decided
//! here, so that a fake and a real store answer alike.

mod backend;
mod containerd;
mod cri;
mod inventory;
mod refusal;
mod wire;

pub use backend::{Backend, Content, Ingest, PullCall};
pub use inventory::{Identity, Inventory};
pub use refusal::{Refusal, Request};
pub use tonic::{Status, async_trait};
pub use wire::Wire;
