//! The headings, times and sums of a test run.

use std::time::Instant;

use anyhow::bail;

use super::tally::Tally;
use crate::duration::readable;

/// What happened so far.
#[derive(Default)]
pub struct Report {
    sum: Tally,
}

impl Report {
    /// Runs a step that has no tests in it; if it fails it counts as one.
    pub fn check(&mut self, title: &str, step: impl FnOnce() -> anyhow::Result<()>) {
        self.tests(title, || step().map(|()| Tally::default()));
    }

    /// Runs a step and adds up its tests.
    pub fn tests(&mut self, title: &str, step: impl FnOnce() -> anyhow::Result<Tally>) {
        println!("\n== {title}");
        let start = Instant::now();
        let outcome = step();
        let time = readable(start.elapsed());
        match outcome {
            Ok(tally) if tally == Tally::default() => println!("   ok, {time}"),
            Ok(tally) => {
                println!("   {tally}, {time}");
                self.sum += tally;
            }
            Err(error) => {
                println!("   failed, {time}: {error:#}");
                self.sum.failed += 1;
            }
        }
    }

    /// Prints the closing line, and fails if anything did.
    pub fn close(self) -> anyhow::Result<()> {
        println!("\n{}", self.sum);
        if self.sum.failed > 0 {
            bail!("a check or a test failed; see above");
        }
        Ok(())
    }
}
