//! The `main` of this suite. From outside it looks like any other: names, filters, `--list` and the closing line.
//!
//! Tests run one after the other in the first thread, because the process is copied while they do.

use std::env;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

/// What the task runner asks of every suite; here times are told in any case.
const ASKS_FOR_TIMES: &str = "--report-time";

/// A test: its name, and what it does. It returns lines about what it played.
pub type Test = (&'static str, fn() -> Vec<String>);

pub fn run(tests: &[Test]) -> ExitCode {
    let mut arguments = Arguments::from_iter(env::args().filter(|argument| argument != ASKS_FOR_TIMES));
    arguments.test_threads = Some(1);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let trial = |(name, play): &Test| {
        let (name, play, lines) = (*name, *play, lines.clone());
        Trial::test(name, move || {
            let start = Instant::now();
            let mut played = play();
            played.push(format!("timed: {name} {:.1}", start.elapsed().as_secs_f64()));
            lines.lock().unwrap_or_else(PoisonError::into_inner).extend(played);
            Ok(())
        })
    };
    let conclusion = libtest_mimic::run(&arguments, tests.iter().map(trial).collect());
    // Only now: while a test runs, its name stands in a line that ends with its outcome.
    for line in lines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("{line}");
    }
    conclusion.exit_code()
}
