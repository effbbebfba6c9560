//! Test binaries: built by cargo, run one by one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::tally::Tally;
use crate::duration::readable;
use crate::shipped::PROGRAM_VARIABLE;

/// How a test begins a line about how much it ran, which is shown even if all is well.
const COUNTED: &str = "counted: ";

/// One executable full of tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Binary {
    executable: PathBuf,
    /// The folder of its package, in which cargo runs it.
    package: PathBuf,
    /// The name of its target, and whether it is a `tests/*.rs` file.
    target: String,
    is_integration: bool,
}

/// Builds all test binaries of the workspace.
pub fn build_all() -> anyhow::Result<Vec<Binary>> {
    let mut command = crate::cargo::cargo();
    command.args(["test", "--quiet", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo test --no-run: {}", output.status);
    let messages = String::from_utf8(output.stdout).context("cargo printed no text")?;
    let mut binaries: Vec<Binary> = messages.lines().filter_map(parse).collect();
    // Cargo names them in the order in which they happen to be finished.
    binaries.sort_by_key(Binary::title);
    Ok(binaries)
}

/// Reads one message of cargo; most of them are about something else.
fn parse(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    Some(Binary {
        executable: message["executable"].as_str()?.into(),
        package: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        is_integration: message["target"]["kind"][0] == "test",
    })
}

impl Binary {
    /// Whether it needs the real cluster.
    pub fn is_real(&self) -> bool {
        self.is_integration && self.target.starts_with("real_")
    }

    pub fn title(&self) -> String {
        let package = self.package.file_name().unwrap_or_default().to_string_lossy();
        if self.is_integration { format!("{package}/tests/{}", self.target) } else { package.into_owned() }
    }

    /// Runs it and shows what it printed only if something failed, and what it counted.
    pub fn run_quietly(&self) -> anyhow::Result<Tally> {
        let start = Instant::now();
        let mut command = self.command();
        command.env("RUST_TEST_NOCAPTURE", "1").stderr(Stdio::piped());
        let output = command.output().context("starting a test binary")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let tally = self.judge(&text, output.status);
        if tally.failed > 0 {
            println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        }
        println!("   {}: {tally}, {}", self.title(), readable(start.elapsed()));
        for line in text.lines().filter(|line| line.starts_with(COUNTED)) {
            println!("      {line}");
        }
        Ok(tally)
    }

    /// Runs it on this program and shows each line as it comes.
    pub fn run_aloud(&self, program: &Path) -> anyhow::Result<Tally> {
        println!("   {}", self.title());
        let mut child =
            self.command().env(PROGRAM_VARIABLE, program).spawn().context("starting a test binary")?;
        let output = child.stdout.take().expect("its output is a pipe");
        let mut text = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.context("reading what a test binary prints")?;
            println!("   {line}");
            std::io::stdout().flush()?;
            text.push_str(&line);
            text.push('\n');
        }
        Ok(self.judge(&text, child.wait()?))
    }

    /// How many tests it has, without running them.
    pub fn count(&self) -> anyhow::Result<usize> {
        let output = self.command().arg("--list").output().context("starting a test binary")?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.ends_with(": test")).count())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        // As cargo does; the variables of the task runner's own package would mislead.
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Counts the tests. A binary that ends badly without saying which test failed has failed as a whole.
    fn judge(&self, output: &str, status: ExitStatus) -> Tally {
        let mut tally = Tally::of_output(output);
        if !status.success() && tally.failed == 0 {
            println!("   {} ended with {status}", self.title());
            tally.failed = 1;
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"reason":"compiler-artifact","manifest_path":"/src/crates/testkit/Cargo.toml",
        "target":{"kind":["test"],"name":"real_nodes"},"profile":{"test":true},"executable":"/target/real_nodes-1"}"#;

    #[test]
    fn a_test_file_that_starts_with_real_needs_the_cluster() {
        let binary = parse(MESSAGE).unwrap();
        assert!(binary.is_real());
        assert_eq!(binary.title(), "testkit/tests/real_nodes");
    }

    #[test]
    fn a_library_of_that_name_does_not() {
        let binary = parse(&MESSAGE.replace("[\"test\"]", "[\"lib\"]")).unwrap();
        assert!(!binary.is_real());
        assert_eq!(binary.title(), "testkit");
    }

    #[test]
    fn other_messages_name_no_test_binary() {
        assert_eq!(parse(&MESSAGE.replace("\"test\":true", "\"test\":false")), None);
        assert_eq!(parse(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
