//! Counts of tests, read from the line that every test binary ends with.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Tally {
    /// Adds up the closing lines: `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    pub fn of_output(output: &str) -> Self {
        output.lines().filter_map(Self::of_line).sum()
    }

    fn of_line(line: &str) -> Option<Self> {
        let counts = line.trim().strip_prefix("test result: ")?.split_once(". ")?.1;
        let count = |word| {
            let named = counts.split(';').filter_map(|part| part.trim().split_once(' '));
            named.filter(|(_, name)| *name == word).find_map(|(number, _)| number.parse().ok())
        };
        Some(Self { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(formatter, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_added_up() {
        let output = "\
running 4 tests
test a ... ok
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s
";
        assert_eq!(Tally::of_output(output), Tally { passed: 5, failed: 1, skipped: 1 });
    }

    #[test]
    fn skipped_tests_are_named_only_if_there_are_any() {
        assert_eq!(Tally { passed: 5, failed: 1, skipped: 0 }.to_string(), "5 passed, 1 failed");
        assert_eq!(Tally { passed: 0, failed: 0, skipped: 2 }.to_string(), "0 passed, 0 failed, 2 skipped");
    }
}
