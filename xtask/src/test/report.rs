//! The steps of a test run, some of them beside each other: their times, their sums, and the closing table.

use std::cmp::Reverse;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::bars::Bars;
use super::suite::Outcome;
use super::tally::Tally;
use super::timing::Timing;
use crate::duration::readable;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// What happened so far.
pub struct Report {
    start: Instant,
    bars: Bars,
    so_far: Mutex<SoFar>,
}

#[derive(Default)]
struct SoFar {
    steps: Vec<Step>,
    timings: Vec<Timing>,
    sum: Tally,
}

struct Step {
    title: String,
    time: Duration,
    failed: usize,
}

impl Report {
    pub fn begin(bars: Bars) -> Self {
        Self { start: Instant::now(), bars, so_far: Mutex::default() }
    }

    /// Runs a step that has no tests in it; if it fails it counts as one, and there is no value.
    pub fn check<T>(&self, title: &str, step: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
        let mut value = None;
        self.tests(title, || {
            value = Some(step()?);
            Ok(Tally::default())
        });
        value
    }

    /// Runs a step and adds up its tests.
    pub fn tests(&self, title: &str, step: impl FnOnce() -> anyhow::Result<Tally>) {
        println!("== {title}");
        let start = Instant::now();
        let outcome = step();
        let time = start.elapsed();
        let tally = outcome.unwrap_or_else(|error| {
            println!("   {error:#}");
            Tally { failed: 1, ..Tally::default() }
        });
        let result = if tally == Tally::default() { "ok".to_owned() } else { tally.to_string() };
        println!("== {title}: {result}, {}", readable(time));
        let mut so_far = self.so_far();
        so_far.steps.push(Step { title: title.to_owned(), time, failed: tally.failed });
        so_far.sum += tally;
    }

    /// Remembers how long the tests of a suite took.
    pub fn remember(&self, outcome: &Outcome) {
        self.so_far().timings.extend(outcome.timings.iter().cloned());
    }

    /// Prints the tables and the closing line. Nothing may come after it, so only the exit code reports a failure.
    pub fn close(self) -> ExitCode {
        let so_far = self.so_far.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("\n{}", steps(&so_far.steps, &self.bars, self.start.elapsed()));
        println!("{}\n", slowest(so_far.timings));
        let failed: Vec<&str> =
            so_far.steps.iter().filter(|step| step.failed > 0).map(|step| step.title.as_str()).collect();
        if !failed.is_empty() {
            println!("failed: {}", failed.join(", "));
        }
        println!("{}", so_far.sum);
        if so_far.sum.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table of steps. Some run beside each other, so their times add up to more than the whole.
fn steps(steps: &[Step], bars: &Bars, whole: Duration) -> String {
    let row = |title: &str, time: Duration| {
        let (bar, mark) = match bars.of(title) {
            Some(bar) if time > bar * 4 / 3 => (readable(bar), "  ‼ more than a third above its bar"),
            Some(bar) => (readable(bar), ""),
            None => ("–".to_owned(), ""),
        };
        format!("{title:<32} {:>14} {bar:>14}{mark}\n", readable(time))
    };
    let mut table = format!("{:<32} {:>14} {:>14}\n", "step", "time", "bar");
    for step in steps {
        table += &row(&step.title, step.time);
    }
    table + &row("in all", whole)
}

/// The table of the slowest tests.
fn slowest(mut timings: Vec<Timing>) -> String {
    timings.sort_by_key(|timing| Reverse(timing.time));
    let line = |timing: &Timing| format!("{:>14}  {} {}", readable(timing.time), timing.suite, timing.test);
    let lines = timings.iter().take(SLOWEST).map(line);
    ["slowest tests".to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_a_third_slower_than_its_bar_is_marked() {
        let bars = Bars::read("| step | bar |\n|---|---|\n| clippy | 60 s |\n| build | 60 s |\n");
        let step = |title: &str, seconds| Step {
            title: title.to_owned(),
            time: Duration::from_secs(seconds),
            failed: 0,
        };
        let table = steps(&[step("clippy", 80), step("build", 81), step("format", 1)], &bars, Duration::ZERO);
        let marked: Vec<bool> = table.lines().map(|line| line.contains('‼')).collect();
        assert_eq!(marked, [false, false, true, false, false], "{table}");
    }

    #[test]
    fn the_ten_slowest_tests_are_named_slowest_first() {
        let timing = |seconds| Timing {
            suite: "plan".to_owned(),
            test: format!("takes_{seconds}"),
            time: Duration::from_secs(seconds),
        };
        let table = slowest((1..=12).map(timing).collect());
        let names: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(names.first(), Some(&"takes_12"));
        assert_eq!(names.len(), 10);
    }
}
