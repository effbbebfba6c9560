//! The program under test, for tests of crates that do not build it.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;

/// Names the program to test, for example a release build.
pub const BINARY_VARIABLE: &str = "PREWARM_BINARY";

/// The program that the variable names, or else the one that cargo built with the calling crate:
/// `env!("CARGO_BIN_EXE_prewarm")`, which is never out of date.
pub fn given_or(built: &str) -> PathBuf {
    env::var_os(BINARY_VARIABLE).map_or_else(|| built.into(), PathBuf::from)
}

/// The path of `prewarm`: the program that the variable names, or the one that was built with the running test. For
/// callers outside of the crate that builds it.
pub fn prewarm() -> anyhow::Result<PathBuf> {
    if let Some(given) = env::var_os(BINARY_VARIABLE) {
        return Ok(given.into());
    }
    let test = env::current_exe().context("a running program has a path")?;
    let built = test.ancestors().skip(1).take(2).map(|directory| directory.join("prewarm"));
    built.into_iter().find(|path| path.is_file()).with_context(|| {
        format!("prewarm is not built: run `cargo build --package prewarm`, or let {BINARY_VARIABLE} name it")
    })
}
