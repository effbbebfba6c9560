//! Looks for texts that break the promises of image references:
//!
//! `cargo +nightly fuzz run reference -- -dict=fuzz/dictionaries/reference.dict -max_len=512`
//!
//! A text that it finds becomes a line in `crates/api/tests/reference.rs`.

#![no_main]

#[path = "../bodies/reference.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| body::check(text));
