//! The whole agent on the embedded API and the fake runtime, in simulated time. Real requests and real gRPC calls are
//! made; only the two programs at the ends and the clock are ours.
//!
//! Tests name the rules that they hold the agent to: `D…`, `T…` and `W…` are behaviours, tests and weaknesses of
//! `OpenKruise` 1.9's daemon, `S…` are what must hold at every moment.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod bad;
mod chaos;
mod credentials;
mod crio;
mod dead_connections;
mod disk;
mod doubt;
mod events;
mod eviction;
mod lifecycle;
mod mirrors;
mod node;
mod operations;
mod outages;
mod pace;
mod pulling;
mod queue;
mod reports;
mod restarts;
mod rivals;
mod runtime;
mod several_runtimes;
mod sources;
mod stalls;
mod tasks;
mod timelines;
