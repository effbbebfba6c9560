//! What tests of the kernel and of its decisions share, inside the crate and outside: objects, and a small world.

#![allow(dead_code, reason = "every test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

pub mod build;
pub mod prefetch;
pub mod store;
pub mod world;
mod write;
