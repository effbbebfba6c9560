//! The registry and the store as a whole: real HTTP on loopback, real files, and the real client of container runtimes.
//! The contract suite of that client checks what every runtime has to do.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agent;
mod contract;
mod limits;
mod mirrors;
mod pulling;
mod registry;
mod site;
mod trouble;
