//! Looks for lines that break the reading of schedules:
//!
//! `cargo +nightly fuzz run schedule -- -dict=fuzz/dictionaries/schedule.dict -max_len=128`
//!
//! A line that it finds becomes a line in `crates/plan/tests/schedule.rs`.

#![no_main]

#[path = "../bodies/schedule.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|input: (i64, &str)| body::check(input.1, input.0));
