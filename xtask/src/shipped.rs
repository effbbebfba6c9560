//! The program as it is shipped, for tests and benchmarks that are about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::image::Platform;
use crate::{cargo, cross};

/// Tells tests and benchmarks which program they are about. Without it they take the one that cargo built along with
/// them, which is built otherwise.
pub const PROGRAM_VARIABLE: &str = "PREWARM_BINARY";

/// Builds the program and says where it is. Its profile has a directory of its own, so that nothing that measures it can
/// overwrite it.
pub fn build() -> anyhow::Result<PathBuf> {
    let mut command = cargo::cargo();
    command.args(["build", "--profile", "dist", "--package", "prewarm"]);
    let built = cargo::build(&mut command)?;
    ensure!(built.complaints.is_empty(), "{}", built.complaints.concat());
    built.messages.iter().find_map(program).context("cargo names no program")
}

/// Builds the program as clusters run it: without demo, embedded API and faults, and without any library but what is in it,
/// since the image has none. The same commit gives the same bytes, wherever it is built: nothing names a directory of the
/// machine. `command` is a call of cargo.
pub fn build_for_clusters(platform: &Platform, mut command: Command) -> anyhow::Result<PathBuf> {
    command.args(["build", "--profile", "dist", "--package", "prewarm", "--no-default-features"]);
    command.args(["--target", platform.target]).env("CARGO_ENCODED_RUSTFLAGS", flags(platform)?);
    cross::prepare(&mut command, platform)?;
    let built = cargo::build(&mut command)?;
    ensure!(built.complaints.is_empty(), "{}", built.complaints.concat());
    built.messages.iter().find_map(program).context("cargo names no program")
}

/// Flags for the compiler, as cargo reads them: a path may have spaces in it.
fn flags(platform: &Platform) -> anyhow::Result<String> {
    let (crates, target) = (cargo::home()?, cargo::target_directory()?);
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        // A panic is a mistake of ours. A process that ends is started anew and goes on from what the cluster says; one that goes on
        // without the task that panicked would wait for it for ever. Without unwinding the program is also smaller.
        "-Cpanic=abort".to_owned(),
        remap(crate::root(), "/src"),
        remap(&crates, "/cargo"),
        // Last, because the last one that fits counts: generated code is here, wherever that is.
        remap(&target, "/src/target"),
    ];
    flags.extend(platform.link_flags.iter().map(|flag| format!("-Clink-arg=-Wl,{flag}")));
    Ok(flags.join("\u{1f}"))
}

/// Reads one message of cargo for the program.
fn program(message: &Value) -> Option<PathBuf> {
    let is_program = message["target"]["kind"][0] == "bin" && message["target"]["name"] == "prewarm";
    is_program.then(|| Some(message["executable"].as_str()?.into()))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages() {
        let message = |kind| {
            json!({"reason": "compiler-artifact", "executable": "/target/dist/prewarm",
            "target": {"kind": [kind], "name": "prewarm"}})
        };
        assert_eq!(program(&message("bin")), Some("/target/dist/prewarm".into()));
        assert_eq!(program(&message("test")), None);
    }
}
