//! The program as it is shipped, for tests and benchmarks that are about it.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Tells tests and benchmarks which program they are about. Without it they take the one that cargo built along with
/// them, which is built otherwise.
pub const PROGRAM_VARIABLE: &str = "PREWARM_BINARY";

/// Builds the program, and says where it is.
pub fn build() -> anyhow::Result<PathBuf> {
    let mut command = crate::cargo::cargo();
    command.args(["build", "--quiet", "--release", "--package", "prewarm"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo build --release: {}", output.status);
    let messages = String::from_utf8(output.stdout).context("cargo printed no text")?;
    messages.lines().find_map(program).context("cargo names no program")
}

/// Reads one message of cargo for the program.
fn program(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_program = message["target"]["kind"][0] == "bin" && message["target"]["name"] == "prewarm";
    is_program.then(|| Some(message["executable"].as_str()?.into()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"prewarm"},
        "executable":"/target/release/prewarm"}"#;

    #[test]
    fn the_program_is_found_among_the_messages() {
        assert_eq!(program(MESSAGE), Some("/target/release/prewarm".into()));
        assert_eq!(program(&MESSAGE.replace("\"bin\"", "\"test\"")), None);
    }
}
