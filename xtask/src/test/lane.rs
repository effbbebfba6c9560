//! Suites that run beside each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Run;
use super::suite::Suite;
use super::tally::Tally;

/// The suites that take longest. They begin first, so that none is left to run alone at the end; the demo waits for its own
/// clock, so it begins beside what computes.
const LONGEST: [&str; 13] = [
    "prewarm/tests/demo",
    "sim/tests/crash",
    "prewarm/tests/screen",
    "control-plane/tests/year",
    "sim/tests/cron",
    "tests/real_agent",
    "tests/real_controller",
    "tests/real_cron",
    "tests/real_broadcast",
    "tests/real_kubectl",
    "tests/real_admission",
    "sim/tests/whole",
    "agent/tests/whole",
];

/// What suites are run under, besides their seed.
#[derive(Default)]
pub struct Conditions {
    pub variables: Vec<(&'static str, String)>,
    /// Parts of the names of tests that do not run.
    pub left_out: &'static [&'static str],
}

/// Runs suites, so many at once, and adds up their tests.
pub fn run(run: Run<'_>, suites: &[Suite], at_once: usize, conditions: &Conditions) -> anyhow::Result<Tally> {
    let queue = Mutex::new(longest_first(suites));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || -> anyhow::Result<Tally> {
        let mut sum = Tally::default();
        while let Some(suite) = next() {
            sum += run_one(run, suite, conditions)?;
        }
        Ok(sum)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).sum()
    })
}

fn longest_first(suites: &[Suite]) -> VecDeque<&Suite> {
    let mut queue: Vec<&Suite> = suites.iter().collect();
    queue.sort_by_key(|suite| {
        let title = suite.title();
        LONGEST.iter().position(|long| title.ends_with(long)).unwrap_or(LONGEST.len())
    });
    queue.into()
}

fn run_one(run: Run<'_>, suite: &Suite, conditions: &Conditions) -> anyhow::Result<Tally> {
    let mut variables = vec![
        (prewarm_seed::FIRST, run.round.seed.to_string()),
        // Properties have seeds too, and a run gives the same answer every time.
        ("PROPTEST_RNG_SEED", run.round.seed.to_string()),
    ];
    variables.extend(conditions.variables.iter().cloned());
    let outcome = suite.run(&variables, conditions.left_out)?;
    run.report.remember(&outcome);
    // A part of a suite does not count as a run of it.
    if conditions.left_out.is_empty() {
        let mut record = run.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.add(&suite.title(), run.round, &outcome)?;
    }
    Ok(outcome.tally)
}

/// Keeps all processors busy while something else runs.
pub fn beside_a_busy_machine<T>(is_busy: bool, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(!is_busy);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let value = work();
        is_over.store(true, Ordering::Relaxed);
        value
    })
}
