//! What the real cluster needs, and the line that says what is skipped without it.

use std::env;

use prewarm_bed::enter;

use super::suite::Suite;
use super::tally::Tally;
use crate::tools::{self, Readiness};

/// Why this machine cannot run real tests, after all has been done that can be.
pub fn obstacle() -> anyhow::Result<Option<String>> {
    // Without root there is no bed, so ten minutes of building would be wasted.
    if enter::is_root()
        && let Readiness::Missing(what) = tools::prepare()?
    {
        return Ok(Some(what));
    }
    Ok(enter::check().err().map(|reason| reason.to_string()))
}

/// Says in one line what is skipped. In CI nobody would read it, so there it fails.
pub fn skip(suites: &[Suite], reason: &str) -> anyhow::Result<Tally> {
    let mut count = 0;
    for suite in suites {
        count += suite.count()?;
    }
    println!("   skipped {count} real-cluster tests: {reason}");
    if env::var("CI").is_ok_and(|value| value == "true") {
        return Ok(Tally { failed: count, ..Tally::default() });
    }
    Ok(Tally { skipped: count, ..Tally::default() })
}
