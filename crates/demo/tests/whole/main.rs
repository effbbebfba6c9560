//! The registry and the store, whole: real HTTP on loopback, real files, and the real client of container runtimes. What
//! every runtime has to do is asked by the contract suite of that client.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agent;
mod contract;
mod limits;
mod pulling;
mod registry;
mod site;
mod trouble;
