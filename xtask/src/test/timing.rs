//! How long each test took, and which failed, read from what its binary prints.
//!
//! ```text
//! test ledger::a_job_rests ... ok <0.012s>         an ordinary test
//! timed: a_node_pulls_an_image 3.204               a real test, before its own line
//! ```

use std::time::Duration;

/// How a real test begins the line that tells how long it took.
const TIMED: &str = "timed: ";

/// How long one test took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    pub suite: String,
    pub test: String,
    pub time: Duration,
}

/// The times of the tests of a suite.
pub fn of_output(suite: &str, output: &str) -> Vec<Timing> {
    let timing = |(test, seconds): (&str, f64)| Timing {
        suite: suite.to_owned(),
        test: test.to_owned(),
        time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
    };
    output.lines().filter_map(|line| ordinary(line).or_else(|| real(line))).map(timing).collect()
}

/// The names of the tests that failed.
pub fn failed(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
        rest.starts_with("FAILED").then(|| test.trim_end().to_owned())
    };
    output.lines().filter_map(name).collect()
}

fn ordinary(line: &str) -> Option<(&str, f64)> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.split_once('<')?.1.strip_suffix("s>")?;
    Some((test, seconds.parse().ok()?))
}

fn real(line: &str) -> Option<(&str, f64)> {
    let (test, seconds) = line.strip_prefix(TIMED)?.split_once(' ')?;
    Some((test, seconds.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test ledger::a_job_rests ... ok <0.250s>
test ledger::a_job_ends ... FAILED <2.000s>
timed: a_node_pulls_an_image 3.5
test a_node_pulls_an_image ... ok
test a_node_is_cut_off     ... FAILED
";

    #[test]
    fn times_of_both_kinds_of_tests_are_read() {
        let times: Vec<(String, u128)> = of_output("plan", OUTPUT)
            .into_iter()
            .map(|timing| (timing.test, timing.time.as_millis()))
            .collect();
        let wanted =
            [("ledger::a_job_rests", 250), ("ledger::a_job_ends", 2000), ("a_node_pulls_an_image", 3500)];
        assert_eq!(times, wanted.map(|(test, time)| (test.to_owned(), time)));
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(failed(OUTPUT), ["ledger::a_job_ends", "a_node_is_cut_off"]);
    }
}
