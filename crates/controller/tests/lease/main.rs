//! Leader election on the embedded API, in simulated time: real requests, several candidates, and everything that can
//! go wrong between them. At every step no two of them lead.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod candidate;
mod chaos;
mod faults;
mod hands;
mod turns;
mod world;
