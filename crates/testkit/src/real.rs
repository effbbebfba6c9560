//! The `main` of a real test binary.
//!
//! It looks like any other test binary from outside: names, filters, `--list` and the closing `test result:` line.
//! Where a bed cannot be made, the tests are skipped with one line that says why; with `CI=true` they fail instead,
//! because a skip that nobody sees is a test that nobody runs.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use prewarm_bed::Unavailable;

/// Gives a `tests/real_*.rs` file its `main`. Each test is an `async fn() -> anyhow::Result<()>`.
///
/// ```text
/// real_tests! { a_config_map_is_stored }
///
/// async fn a_config_map_is_stored() -> anyhow::Result<()> {
///     let server = ApiServer::shared().await?;
///     …
/// }
/// ```
#[macro_export]
macro_rules! real_tests {
    ($($test:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::real::run(vec![$($crate::real::test(stringify!($test), $test)),+])
        }
    };
}

/// One test, run on an async runtime of its own.
pub struct Test {
    name: &'static str,
    run: Box<dyn FnOnce() -> anyhow::Result<()> + Send>,
}

/// Names a test.
pub fn test<F>(name: &'static str, body: impl FnOnce() -> F + Send + 'static) -> Test
where
    F: Future<Output = anyhow::Result<()>>,
{
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(body())
    };
    Test { name, run: Box::new(run) }
}

/// Runs the tests inside a bed, or reports why there can be none.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let arguments = Arguments::from_args();
    // Listing needs no bed, and IDEs list tests all the time.
    let bed = if arguments.list { Ok(()) } else { prewarm_bed::enter() };
    if let Err(reason) = &bed {
        println!("skipped {} real-cluster tests: {reason}", tests.len());
    }
    let trials = tests.into_iter().map(|test| match &bed {
        Ok(()) => Trial::test(test.name, || timed(test)),
        Err(reason) => skipped(test.name, reason),
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Runs a test and prints how long it took, for the task runner's table.
fn timed(test: Test) -> Result<(), Failed> {
    let start = Instant::now();
    let outcome = (test.run)();
    println!("timed: {} {:.1}", test.name, start.elapsed().as_secs_f64());
    outcome.map_err(|error| Failed::from(format!("{error:#}")))
}

fn skipped(name: &str, reason: &Unavailable) -> Trial {
    let reason = reason.to_string();
    Trial::ignorable_test(name, move || {
        if env::var("CI").is_ok_and(|value| value == "true") {
            return Err(Failed::from(format!("cannot be skipped when CI=true: {reason}")));
        }
        Ok(Completion::ignored())
    })
}
