//! The registry, whole: real HTTP on loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod registry;
