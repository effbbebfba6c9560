//! The tests that need the real cluster.

use std::env;

use prewarm_bed::{cgroups, enter};

use super::binary::Binary;
use super::tally::Tally;
use crate::shipped;
use crate::tools::{self, Readiness};

/// Runs the binaries one after the other; each makes its own bed.
pub fn run(binaries: &[Binary]) -> anyhow::Result<Tally> {
    if let Some(reason) = obstacle()? {
        return skip(binaries, &reason);
    }
    let program = shipped::build()?;
    let mut sum = Tally::default();
    for binary in binaries {
        sum += binary.run_aloud(&program)?;
    }
    // Each bed removes its own; one that was killed could not.
    cgroups::sweep_stale(enter::NAME_PREFIX);
    Ok(sum)
}

/// Why this machine cannot run them, after all has been done that can be.
fn obstacle() -> anyhow::Result<Option<String>> {
    // Without root there is no bed, so ten minutes of building would be wasted.
    if enter::is_root()
        && let Readiness::Missing(what) = tools::prepare()?
    {
        return Ok(Some(what));
    }
    Ok(enter::check().err().map(|reason| reason.to_string()))
}

/// Says in one line what is skipped. In CI nobody would read it, so there it fails.
fn skip(binaries: &[Binary], reason: &str) -> anyhow::Result<Tally> {
    let mut count = 0;
    for binary in binaries {
        count += binary.count()?;
    }
    println!("   skipped {count} real-cluster tests: {reason}");
    if env::var("CI").is_ok_and(|value| value == "true") {
        return Ok(Tally { failed: count, ..Tally::default() });
    }
    Ok(Tally { skipped: count, ..Tally::default() })
}
