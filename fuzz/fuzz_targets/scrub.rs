//! Looks for texts in which a credential survives:
//!
//! `cargo +nightly fuzz run scrub -- -max_len=512`
//!
//! A text that it finds becomes a case in `crates/credentials/tests/fuzz.rs`.

#![no_main]

#[path = "../bodies/scrub.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| body::check(text));
