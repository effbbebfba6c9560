//! Cargo, started from here as from a shell.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A call of cargo. What `cargo run` says about this package is kept from it: build scripts of dependencies ask for such
/// variables, and whatever stands on them would be built anew after each change between this and cargo by hand.
pub fn cargo() -> Command {
    clean(Command::new("cargo"))
}

/// The same, for what may wait for a processor as long as others need one.
pub fn patient() -> Command {
    let mut command = Command::new("nice");
    command.arg("cargo");
    clean(command)
}

fn clean(mut command: Command) -> Command {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_about_package) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs cargo to its end.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let status = cargo().args(arguments).status().context("starting cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments[0]);
    Ok(())
}

/// What cargo says of the workspace's own packages.
pub fn metadata() -> anyhow::Result<Value> {
    let arguments = ["metadata", "--no-deps", "--locked", "--format-version", "1"];
    let output = cargo().current_dir(crate::root()).args(arguments).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("reading what cargo says of the workspace")
}

/// Where cargo builds.
pub fn target_directory() -> anyhow::Result<PathBuf> {
    let metadata = metadata()?;
    Ok(metadata["target_directory"].as_str().context("cargo names no target directory")?.into())
}

/// What a build gave: the messages of cargo about it, one JSON object a line, and what the compiler complains of.
pub struct Built {
    pub messages: Vec<Value>,
    pub complaints: Vec<String>,
}

/// Builds something. What the compiler says is in the result, also of parts that were built before.
pub fn build(command: &mut Command) -> anyhow::Result<Built> {
    command.args(["--quiet", "--locked", "--message-format=json"]);
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    let text = String::from_utf8(output.stdout).context("cargo printed no text")?;
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let complaints: Vec<String> = messages.iter().filter_map(complaint).collect();
    ensure!(output.status.success(), "{}the build failed", complaints.concat());
    Ok(Built { messages, complaints })
}

/// What the compiler complains of in one message, as it would print it.
fn complaint(message: &Value) -> Option<String> {
    let diagnostic = &message["message"];
    let is_complaint = matches!(diagnostic["level"].as_str()?, "warning" | "error");
    // The sum of warnings, which names none.
    let is_sum = diagnostic["spans"].as_array().is_none_or(Vec::is_empty) && diagnostic["code"].is_null();
    (is_complaint && !is_sum).then(|| Some(diagnostic["rendered"].as_str()?.to_owned()))?
}

/// Where cargo keeps its files.
pub fn home() -> anyhow::Result<PathBuf> {
    if let Some(named) = env::var_os("CARGO_HOME") {
        return Ok(named.into());
    }
    Ok(env::home_dir().context("this account has no home directory")?.join(".cargo"))
}

fn is_about_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn complaints_are_warnings_and_errors_at_a_place() {
        let message = |level: &str, spans| {
            json!({"reason": "compiler-message", "message":
            {"level": level, "rendered": "unused", "code": null, "spans": spans}})
        };
        assert_eq!(complaint(&message("warning", json!([{"line_start": 1}]))), Some("unused".to_owned()));
        assert_eq!(complaint(&message("error", json!([{"line_start": 1}]))), Some("unused".to_owned()));
        assert_eq!(complaint(&message("note", json!([{"line_start": 1}]))), None);
        assert_eq!(complaint(&message("warning", json!([]))), None);
        assert_eq!(complaint(&json!({"reason": "build-finished", "success": true})), None);
    }
}
