//! How often each suite has run, and what failed: a table on disk, so that runs add up.
//!
//! One line a suite, with tabs: its name, runs, how many of them beside a busy machine, and each failure as
//! `test@seed`, or `test@seed!` beside a busy machine.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

use super::suite::Outcome;

/// Where the table is, below the top of the tree.
const FILE: &str = "target/test-record.tsv";

/// Under what a suite ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    pub seed: u64,
    /// Whether all processors were busy with something else.
    pub is_busy: bool,
}

impl fmt::Display for Round {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let company = if self.is_busy { ", beside a busy machine" } else { "" };
        write!(formatter, "seed {}{company}", self.seed)
    }
}

/// What is known of all suites.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    suites: BTreeMap<String, Row>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    runs: u64,
    busy: u64,
    failures: Vec<String>,
}

impl Record {
    /// What earlier runs left.
    pub fn load() -> anyhow::Result<Self> {
        let text = fs::read_to_string(path()).unwrap_or_default();
        Self::read(&text).with_context(|| format!("{} is not a record of runs; remove it", path().display()))
    }

    /// Adds one run of a suite, and keeps all of it on disk.
    pub fn add(&mut self, suite: &str, round: Round, outcome: &Outcome) -> anyhow::Result<()> {
        self.note(suite, round, &outcome.failed);
        fs::create_dir_all(path().parent().context("the record is in a directory")?)?;
        fs::write(path(), self.to_text()).with_context(|| format!("writing {}", path().display()))
    }

    /// A seed that nobody has had yet: seeds of a test follow each other, so there is room between two rounds.
    pub fn next_seed(&self) -> u64 {
        let rounds = self.suites.values().map(|row| row.runs).max().unwrap_or(0);
        (rounds + 1) * 1000
    }

    fn note(&mut self, suite: &str, round: Round, failed: &[String]) {
        let row = self.suites.entry(suite.to_owned()).or_default();
        row.runs += 1;
        row.busy += u64::from(round.is_busy);
        let mark = if round.is_busy { "!" } else { "" };
        row.failures.extend(failed.iter().map(|test| format!("{test}@{}{mark}", round.seed)));
    }

    fn read(text: &str) -> Option<Self> {
        let mut suites = BTreeMap::new();
        for line in text.lines() {
            let mut cells = line.split('\t');
            let (suite, runs, busy) =
                (cells.next()?, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
            suites.insert(suite.to_owned(), Row { runs, busy, failures: cells.map(str::to_owned).collect() });
        }
        Some(Self { suites })
    }

    fn to_text(&self) -> String {
        let line = |(suite, row): (&String, &Row)| {
            let mut cells = vec![suite.clone(), row.runs.to_string(), row.busy.to_string()];
            cells.extend(row.failures.iter().cloned());
            cells.join("\t") + "\n"
        };
        self.suites.iter().map(line).collect()
    }

    /// For people: every suite, and what failed in it how often.
    pub fn to_table(&self) -> String {
        let head = format!("{:<40} {:>6} {:>6} {:>8}", "suite", "runs", "busy", "failures");
        let rows = self.suites.iter().flat_map(|(suite, row)| {
            let counts = format!("{suite:<40} {:>6} {:>6} {:>8}", row.runs, row.busy, row.failures.len());
            [counts].into_iter().chain(row.failures.iter().map(|failure| format!("    {failure}")))
        });
        [head].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    }
}

fn path() -> PathBuf {
    crate::root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_and_are_read_back() {
        let mut record = Record::default();
        record.note("sim/tests/crash", Round { seed: 1000, is_busy: false }, &[]);
        record.note("sim/tests/crash", Round { seed: 2000, is_busy: true }, &["a_story".to_owned()]);
        record.note("plan", Round { seed: 2000, is_busy: true }, &[]);
        assert_eq!(record.to_text(), "plan\t1\t1\nsim/tests/crash\t2\t1\ta_story@2000!\n");
        assert_eq!(Record::read(&record.to_text()), Some(record));
    }

    #[test]
    fn every_round_has_seeds_of_its_own() {
        let mut record = Record::default();
        assert_eq!(record.next_seed(), 1000);
        record.note("plan", Round { seed: 1000, is_busy: false }, &[]);
        assert_eq!(record.next_seed(), 2000);
    }

    #[test]
    fn another_file_in_its_place_is_noticed() {
        assert_eq!(Record::read("plan\tmany\n"), None);
    }
}
