//! The benchmarks: each prints one JSON line per figure with its bar, and fails when a bar is missed.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::image::PLATFORMS;
use crate::{cargo, shipped};

/// One benchmark.
struct Bench {
    name: &'static str,
    package: &'static str,
    shows: &'static str,
    /// Whether it needs the programs of the real cluster.
    is_real: bool,
}

/// Each is a bench target of its name.
const BENCHES: [Bench; 9] = [
    Bench {
        name: "admission",
        package: "prewarm-api",
        shows: "what our rules cost the API server",
        is_real: true,
    },
    Bench {
        name: "agent",
        package: "prewarm",
        shows: "what the agent costs and how fast it is; a part by its name, such as batches",
        is_real: true,
    },
    Bench {
        name: "broadcast",
        package: "prewarm",
        shows: "how fast a BroadcastJob makes a thousand pods",
        is_real: true,
    },
    Bench {
        name: "controller",
        package: "prewarm",
        shows: "how fast the controller is and what it costs; --embedded or --real for a part",
        is_real: true,
    },
    Bench {
        name: "cron",
        package: "prewarm",
        shows: "how fast a thousand AdvancedCronJobs make their runs when all are due at once",
        is_real: false,
    },
    Bench {
        name: "demo",
        package: "prewarm",
        shows: "how soon the demo shows something, what it costs, how often it redraws",
        is_real: false,
    },
    Bench {
        name: "embedded",
        package: "prewarm-embedded",
        shows: "how much the embedded API carries",
        is_real: false,
    },
    Bench {
        name: "prefetch",
        package: "prewarm",
        shows: "what an ImagePrefetch costs on a thousand nodes, and how fast it is on eight with slow links; wide, links or --embedded for a part",
        is_real: true,
    },
    Bench {
        name: "start",
        package: "prewarm",
        shows: "how soon a pod is ready on a warmed node and on a cold one",
        is_real: true,
    },
];

impl Bench {
    /// The program that it measures, as it is shipped: to people who try it, or to clusters.
    fn build(&self) -> Result<PathBuf> {
        if self.name == "demo" {
            shipped::build()
        } else {
            shipped::build_for_clusters(&PLATFORMS[0], cargo::cargo())
        }
    }
}

/// Runs one benchmark on the program as it is shipped, with these flags of its own.
pub fn run(name: &str, flags: &[&str]) -> Result<()> {
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        bail!("there is no benchmark {name:?}; there are:\n{}", list());
    };
    if bench.is_real && !flags.contains(&"--embedded") {
        crate::tools::run().context("this benchmark needs the programs of the real cluster")?;
    }
    let program = bench.build()?;
    let status = crate::cargo::cargo()
        .env(shipped::PROGRAM_VARIABLE, program)
        .args(["bench", "--quiet", "--locked", "--package", bench.package, "--bench", bench.name])
        .arg("--")
        .args(flags)
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("the benchmark {name} missed a bar or could not run ({status})");
    }
    Ok(())
}

/// The benchmarks, one a line.
fn list() -> String {
    let lines: Vec<String> =
        BENCHES.iter().map(|bench| format!("  {:<14} {}", bench.name, bench.shows)).collect();
    lines.join("\n")
}
