//! How long each step may take, as `docs/testing.md` says. A step that takes longer is marked, not failed: machines differ.

use std::collections::BTreeMap;
use std::time::Duration;

const PAGE: &str = include_str!("../../../docs/testing.md");
/// The head of the table.
const HEAD: &str = "| step | bar |";

/// The bars of steps by their titles.
#[derive(Debug, Default)]
pub struct Bars(BTreeMap<String, Duration>);

impl Bars {
    /// The bars of a whole run.
    pub fn usual() -> Self {
        Self::read(PAGE)
    }

    /// Reads the first table of bars of a page: `| clippy | 90 s | …`.
    pub fn read(page: &str) -> Self {
        let rows = page.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
        Self(rows.take_while(|line| line.starts_with('|')).filter_map(row).collect())
    }

    pub fn of(&self, title: &str) -> Option<Duration> {
        self.0.get(title).copied()
    }
}

fn row(line: &str) -> Option<(String, Duration)> {
    let mut cells = line.trim_matches('|').split('|').map(str::trim);
    let (title, bar) = (cells.next()?, cells.next()?);
    let (number, unit) = bar.split_once(' ')?;
    let seconds: u64 = number.parse().ok()?;
    Some((title.to_owned(), Duration::from_secs(if unit == "min" { seconds * 60 } else { seconds })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_page_is_a_bar() {
        let rows = PAGE.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
        let rows = rows.take_while(|line| line.starts_with('|')).count();
        assert!(rows > 3, "{rows} rows");
        assert_eq!(Bars::usual().0.len(), rows);
    }

    #[test]
    fn seconds_and_minutes_are_read() {
        let bars = Bars::read(
            "text\n| step | bar | what |\n|---|---|---|\n| one | 90 s | x |\n| all | 25 min | y |\n\n",
        );
        assert_eq!(bars.of("one"), Some(Duration::from_secs(90)));
        assert_eq!(bars.of("all"), Some(Duration::from_mins(25)));
    }
}
