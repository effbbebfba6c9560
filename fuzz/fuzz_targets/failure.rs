//! Looks for texts of failures that break the promises of their classes:
//!
//! `cargo +nightly fuzz run failure -- -dict=fuzz/dictionaries/failure.dict -max_len=256`
//!
//! A text that it finds becomes a line in `crates/runtime/tests/fuzz.rs`.

#![no_main]

#[path = "../bodies/failure.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| body::check(text));
