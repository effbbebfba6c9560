//! The headings, times and sums of a test run.

use std::process::ExitCode;
use std::time::Instant;

use super::tally::Tally;
use crate::duration::readable;

/// What happened so far.
#[derive(Default)]
pub struct Report {
    sum: Tally,
    failed_steps: Vec<String>,
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
        let tally = outcome.unwrap_or_else(|error| {
            println!("   {error:#}");
            Tally { failed: 1, ..Tally::default() }
        });
        if tally == Tally::default() {
            println!("   ok, {time}");
        } else {
            println!("   {tally}, {time}");
        }
        if tally.failed > 0 {
            self.failed_steps.push(title.to_owned());
        }
        self.sum += tally;
    }

    /// Prints the closing line. Nothing may come after it, so failure is told by the exit code alone.
    pub fn close(self) -> ExitCode {
        println!();
        if !self.failed_steps.is_empty() {
            println!("failed: {}", self.failed_steps.join(", "));
        }
        println!("{}", self.sum);
        if self.sum.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
