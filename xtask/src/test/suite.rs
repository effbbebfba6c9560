//! Suites: test binaries, built by cargo, run one by one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

use super::tally::Tally;
use super::timing::{self, Timing};
use crate::cargo;
use crate::duration::readable;

/// How the names of suites begin that need the real cluster.
const REAL: &str = "real_";
/// The suites that are about the image.
const ABOUT_IMAGE: [&str; 2] = ["package/tests/real_image", "package/tests/real_install"];
/// The program that makes a release.
const MAKER: &str = "prewarm-package";
/// How much garbage the programs of the real cluster, which are written in Go, let pile up: a bed has memory to spare, and
/// processors are what a test run lacks.
const GARBAGE_PERCENT: &str = "400";
/// How a test begins a line about how much it ran, which is shown even if all is well.
const COUNTED: &str = "counted: ";

/// One executable full of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    executable: PathBuf,
    /// The folder of its package, in which cargo runs it.
    package: PathBuf,
    /// The name of its target.
    target: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The tests in a library.
    Library,
    /// The tests in a program.
    Program,
    /// A `tests/*.rs` file.
    File,
}

/// What became of a suite.
pub struct Outcome {
    pub tally: Tally,
    pub time: Duration,
    pub timings: Vec<Timing>,
    /// The names of the tests that failed, or of the suite if it ended without naming one.
    pub failed: Vec<String>,
}

/// Suites, and what clippy says of the code in them.
pub struct Built {
    pub suites: Vec<Suite>,
    /// What makes a release, if it was built.
    pub maker: Option<PathBuf>,
    pub lints: Vec<String>,
}

/// What is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Everything, for long simulations: libraries are optimized a little.
    Whole,
    /// What needs no real cluster, so that it is there soon after a change: each crate is compiled only as far as it changed.
    Fast,
}

impl Build {
    pub fn profile(self) -> &'static str {
        match self {
            Self::Whole => "suites",
            Self::Fast => "dev",
        }
    }

    /// Which targets, as flags of cargo. It has no way to leave some out, so all others are named.
    fn targets(self) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Whole => Ok(vec!["--all-targets".to_owned()]),
            Self::Fast => Ok(without_real(&cargo::metadata()?)),
        }
    }
}

fn without_real(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let names: BTreeSet<&str> = tests.filter_map(|target| target["name"].as_str()).collect();
    let names = names.into_iter().filter(|name| !name.starts_with(REAL));
    let tests = names.flat_map(|name| ["--test".to_owned(), name.to_owned()]);
    ["--lib", "--bins"].map(str::to_owned).into_iter().chain(tests).collect()
}

/// Compiles with clippy's compiler, which finds faults and makes programs in one go: apart from each other they would check
/// everything twice.
pub fn with_clippy(command: &mut Command) -> &mut Command {
    command.env("RUSTC_WORKSPACE_WRAPPER", crate::root().join("xtask/compile-tests"))
}

/// Builds the suites of the workspace; with all of them benchmarks, for the sake of what clippy says.
pub fn build(kind: Build) -> anyhow::Result<Built> {
    let mut command = cargo::cargo();
    with_clippy(&mut command).args(["test", "--profile", kind.profile(), "--workspace", "--no-run"]);
    let built = cargo::build(command.args(kind.targets()?))?;
    let maker = built.messages.iter().find_map(maker);
    Ok(Built { suites: suites(&built), maker, lints: built.complaints })
}

fn suites(built: &cargo::Built) -> Vec<Suite> {
    let mut suites: Vec<Suite> = built.messages.iter().filter_map(parse).collect();
    // Cargo names them in the order in which they happen to be finished.
    suites.sort_by_key(Suite::title);
    suites
}

/// Reads one message of cargo for the program that makes a release.
fn maker(message: &Value) -> Option<PathBuf> {
    let is_maker = message["target"]["kind"][0] == "bin" && message["target"]["name"] == MAKER;
    let is_program = message["reason"] == "compiler-artifact" && message["profile"]["test"] == false;
    (is_maker && is_program).then(|| Some(message["executable"].as_str()?.into()))?
}

/// Reads one message of cargo; most of them are about something else.
fn parse(message: &Value) -> Option<Suite> {
    let kind = message["target"]["kind"][0].as_str()?;
    if message["reason"] != "compiler-artifact"
        || message["profile"]["test"] != true
        || ["bench", "example"].contains(&kind)
    {
        return None;
    }
    Some(Suite {
        executable: message["executable"].as_str()?.into(),
        package: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        kind: match kind {
            "test" => Kind::File,
            "bin" => Kind::Program,
            _ => Kind::Library,
        },
    })
}

impl Suite {
    /// Whether it needs the real cluster.
    pub fn is_real(&self) -> bool {
        self.kind == Kind::File && self.target.starts_with(REAL)
    }

    /// Whether it needs the image.
    pub fn is_about_image(&self) -> bool {
        ABOUT_IMAGE.contains(&self.title().as_str())
    }

    /// Whether it computes in simulated time, so that it may wait for a processor as long as others need one. What happens in
    /// a real cluster beside it has to be answered in time.
    fn is_patient(&self) -> bool {
        ["crates/sim", "crates/control-plane"].iter().any(|folder| self.package.ends_with(folder))
    }

    pub fn title(&self) -> String {
        let package = self.package.file_name().unwrap_or_default().to_string_lossy();
        match self.kind {
            Kind::Library => package.into_owned(),
            Kind::Program => format!("{package}/main"),
            Kind::File => format!("{package}/tests/{}", self.target),
        }
    }

    /// The folder of its package.
    pub fn package(&self) -> &Path {
        &self.package
    }

    /// Runs it with these variables, without the tests that have these in their names, and shows what it counted, and what it printed if something failed.
    pub fn run(&self, variables: &[(&str, String)], left_out: &[&str]) -> anyhow::Result<Outcome> {
        let start = Instant::now();
        let mut command = self.command();
        command.args(self.flags()).args(left_out.iter().flat_map(|part| ["--skip", part]));
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        // The library of tests asks for it before it tells how long each took.
        command.env("RUSTC_BOOTSTRAP", "1").stderr(Stdio::piped());
        let output = command.output().with_context(|| format!("starting {}", self.title()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let outcome = self.judge(&text, output.status, start.elapsed());
        let mut lines = vec![format!("   {}: {}, {}", self.title(), outcome.tally, readable(outcome.time))];
        lines.extend(
            text.lines().filter(|line| line.starts_with(COUNTED)).map(|line| format!("      {line}")),
        );
        if outcome.tally.failed > 0 {
            lines.push(format!("{text}{}", String::from_utf8_lossy(&output.stderr)));
        }
        // In one piece: other suites run beside it.
        println!("{}", lines.join("\n"));
        Ok(outcome)
    }

    /// How many tests it has, without running them.
    pub fn count(&self) -> anyhow::Result<usize> {
        let output = self.command().arg("--list").output().context("starting a test binary")?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.ends_with(": test")).count())
    }

    fn command(&self) -> Command {
        let mut command = if self.is_patient() {
            let mut command = Command::new("nice");
            command.arg(&self.executable);
            command
        } else {
            Command::new(&self.executable)
        };
        if self.is_real() {
            command.env("GOGC", GARBAGE_PERCENT);
        }
        // As cargo does; the variables of the task runner's own package would mislead.
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Real suites have a `main` of their own, which tells times by itself and keeps no output back.
    fn flags(&self) -> &'static [&'static str] {
        if self.is_real() { &[] } else { &["--show-output", "-Zunstable-options", "--report-time"] }
    }

    /// A suite that ends badly without saying which test failed has failed as a whole.
    fn judge(&self, output: &str, status: ExitStatus, time: Duration) -> Outcome {
        let (mut tally, mut failed) = (Tally::of_output(output), timing::failed(output));
        if !status.success() && tally.failed == 0 {
            println!("   {} ended with {status}", self.title());
            tally.failed = 1;
        }
        if tally.failed > 0 && failed.is_empty() {
            failed.push(format!("{} as a whole", self.title()));
        }
        Outcome { tally, time, timings: timing::of_output(&self.title(), output), failed }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use serde_json::json;

    use super::*;

    fn message(kind: &str, is_test: bool) -> Value {
        json!({"reason": "compiler-artifact", "manifest_path": "/src/crates/testkit/Cargo.toml",
            "target": {"kind": [kind], "name": "real_nodes"}, "profile": {"test": is_test},
            "executable": "/target/real_nodes-1"})
    }

    #[test]
    fn a_test_file_that_starts_with_real_needs_the_cluster() {
        let suite = parse(&message("test", true)).unwrap();
        assert!(suite.is_real());
        assert_eq!(suite.title(), "testkit/tests/real_nodes");
    }

    #[test]
    fn only_simulations_give_way_to_others() {
        let suite =
            |package: &str| Suite { package: package.into(), ..parse(&message("test", true)).unwrap() };
        assert_eq!(suite("/src/crates/sim").command().get_program(), "nice");
        assert_eq!(suite("/src/crates/control-plane").command().get_program(), "nice");
        assert_eq!(suite("/src/crates/testkit").command().get_program(), "/target/real_nodes-1");
    }

    #[test]
    fn a_library_of_that_name_does_not() {
        let suite = parse(&message("lib", true)).unwrap();
        assert!(!suite.is_real());
        assert_eq!(suite.title(), "testkit");
    }

    #[test]
    fn the_maker_of_images_is_found_among_the_messages() {
        let mut program = message("bin", false);
        program["target"]["name"] = MAKER.into();
        assert_eq!(maker(&program), Some("/target/real_nodes-1".into()));
        program["profile"]["test"] = true.into();
        assert_eq!(maker(&program), None);
        assert_eq!(maker(&message("bin", false)), None);
    }

    #[test]
    fn a_program_is_not_counted_as_its_library() {
        assert_eq!(parse(&message("bin", true)).unwrap().title(), "testkit/main");
    }

    #[test]
    fn other_messages_name_no_test_binary() {
        assert_eq!(parse(&message("test", false)), None);
        assert_eq!(parse(&message("bench", true)), None);
        assert_eq!(parse(&message("example", true)), None);
        assert_eq!(parse(&json!({"reason": "build-finished", "success": true})), None);
    }

    #[test]
    fn a_fast_build_names_all_suites_but_the_real_ones() {
        let test = |name: &str| json!({"kind": ["test"], "name": name});
        let targets = [test("whole"), test("real_nodes"), json!({"kind": ["bench"], "name": "start"})];
        let metadata = json!({"packages": [{"targets": targets}, {"targets": [test("whole")]}]});
        assert_eq!(without_real(&metadata), ["--lib", "--bins", "--test", "whole"]);
    }

    #[test]
    fn a_suite_that_is_killed_has_failed_as_a_whole() {
        let suite = parse(&message("test", true)).unwrap();
        let outcome = suite.judge("running 4 tests\n", ExitStatus::from_raw(9), Duration::ZERO);
        assert_eq!(outcome.tally, Tally { failed: 1, ..Tally::default() });
        assert_eq!(outcome.failed, ["testkit/tests/real_nodes as a whole"]);
    }
}
