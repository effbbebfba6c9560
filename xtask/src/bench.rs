//! The benchmarks: each prints one JSON line per figure with its bar, and fails when a bar is missed.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Name, package and bench target of each benchmark, and what it shows.
const BENCHES: [(&str, &str, &str, &str); 1] =
    [("admission", "prewarm-api", "admission", "what our rules cost the API server")];

/// Runs one benchmark in a release build.
pub fn run(name: &str) -> Result<()> {
    let Some((_, package, target, _)) = BENCHES.iter().find(|(known, ..)| *known == name) else {
        bail!("there is no benchmark {name:?}; there are:\n{}", list());
    };
    crate::tools::run().context("a benchmark needs the programs of the real cluster")?;
    let status = Command::new("cargo")
        .args(["bench", "--quiet", "--package", package, "--bench", target])
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("the benchmark {name} missed a bar or could not run ({status})");
    }
    Ok(())
}

/// The benchmarks, one a line.
pub fn list() -> String {
    let lines: Vec<String> =
        BENCHES.iter().map(|(name, _, _, shows)| format!("  {name:<14} {shows}")).collect();
    lines.join("\n")
}
