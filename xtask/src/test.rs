//! `cargo xtask test`: all that CI runs, one step after the other.
//!
//! A failed step does not hide the next one. At the very end stands one plain line with the sums.

mod binary;
mod real;
mod report;
mod tally;

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};

use binary::Binary;
use report::Report;
use tally::Tally;

/// How much is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Everything,
    /// For the minute before a commit, and for machines without Go or root.
    WithoutRealCluster,
}

pub fn run(scope: Scope) -> ExitCode {
    let mut report = Report::default();
    report.check("format", || cargo(&["fmt", "--all", "--check"]));
    report.check("clippy", || {
        cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"])
    });
    report.check("generated files", || crate::generate::check(crate::root()));
    let mut binaries = Vec::new();
    report.check("build", || {
        binaries = binary::build_all()?;
        Ok(())
    });
    let (real, ordinary): (Vec<Binary>, Vec<Binary>) = binaries.into_iter().partition(Binary::is_real);
    report.tests("tests", || ordinary.iter().map(Binary::run_quietly).sum());
    report.tests("examples in the documentation", run_documentation);
    if scope == Scope::Everything {
        report.tests("real cluster", || real::run(&real));
    }
    report.close()
}

fn run_documentation() -> anyhow::Result<Tally> {
    let output =
        crate::cargo::cargo().args(["test", "--quiet", "--workspace", "--doc"]).output().context("cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tally = Tally::of_output(&text);
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        ensure!(tally.failed > 0, "cargo test --doc: {}", output.status);
    }
    Ok(tally)
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let status = crate::cargo::cargo().args(arguments).status().context("starting cargo")?;
    if !status.success() {
        bail!("cargo {}: {status}", arguments[0]);
    }
    Ok(())
}
