//! Looks for docker configs that break the promises of keyrings:
//!
//! `cargo +nightly fuzz run docker_config -- -dict=fuzz/dictionaries/docker_config.dict -max_len=2048`
//!
//! A config that it finds becomes a case in `crates/credentials/tests/fuzz.rs`.

#![no_main]

#[path = "../bodies/docker_config.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check(bytes));
