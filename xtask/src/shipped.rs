//! The program as it is shipped, for tests and benchmarks that are about it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Tells tests and benchmarks which program they are about. Without it they take the one that cargo built along with
/// them, which is built otherwise.
pub const PROGRAM_VARIABLE: &str = "PREWARM_BINARY";

/// Where the program is kept, beside the directories of the profiles. Benchmarks have a profile of their own whose programs
/// take the names of the release's: what is measured must not be overwritten by whoever measures.
const KEPT: &str = "../shipped";

/// Builds the program, keeps a copy, and says where that is.
pub fn build() -> anyhow::Result<PathBuf> {
    let mut command = crate::cargo::cargo();
    command.args(["build", "--quiet", "--release", "--package", "prewarm"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo build --release: {}", output.status);
    let messages = String::from_utf8(output.stdout).context("cargo printed no text")?;
    keep(&messages.lines().find_map(program).context("cargo names no program")?)
}

/// Copies the program to where only we write. One that runs already keeps its file.
fn keep(program: &Path) -> anyhow::Result<PathBuf> {
    let directory = program.parent().context("a program is in a directory")?.join(KEPT);
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let (kept, fresh) = (directory.join("prewarm"), directory.join("prewarm.new"));
    fs::copy(program, &fresh).with_context(|| format!("copying {}", program.display()))?;
    fs::rename(&fresh, &kept).with_context(|| format!("replacing {}", kept.display()))?;
    kept.canonicalize().context("finding the program again")
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
    fn what_is_measured_stays_when_the_profile_is_built_again() {
        let target = tempfile::tempdir().unwrap();
        let built = target.path().join("release/prewarm");
        fs::create_dir_all(built.parent().unwrap()).unwrap();
        fs::write(&built, "small").unwrap();
        let kept = keep(&built).unwrap();
        fs::write(&built, "fast").unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "small");
    }

    #[test]
    fn the_program_is_found_among_the_messages() {
        assert_eq!(program(MESSAGE), Some("/target/release/prewarm".into()));
        assert_eq!(program(&MESSAGE.replace("\"bin\"", "\"test\"")), None);
    }
}
