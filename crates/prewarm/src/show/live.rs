//! Shows a report again when it has changed: in place on a terminal, otherwise only the changed lines, as `kubectl
//! get --watch` does.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use crossterm::terminal;
use jiff::Timestamp;

use super::{Format, Look, Report, render};
use crate::answer::Answer;
use crate::reach::Reader;

/// Reports contain ages, so they are made again even if nothing changes.
const RENEW: Duration = Duration::from_secs(5);

/// Moves to the upper left corner and clears from there; the terminal's history stays.
const HOME: &str = "\u{1b}[H\u{1b}[J";
/// Clears the screen before the first report.
const CLEAR: &str = "\u{1b}[2J";

struct Live {
    format: Format,
    look: Look,
    is_terminal: bool,
    shown: Option<String>,
}

impl Live {
    /// Shows reports on standard output.
    fn new(format: Format) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { format, look: Look::of(format), is_terminal, shown: None }
    }

    /// Shows a report unless it equals the last one. Returns whether the output is still read.
    fn show(&mut self, report: &impl Report) -> bool {
        let text = render(report, self.format, self.look);
        if self.shown.as_ref() == Some(&text) {
            return true;
        }
        let is_text = matches!(self.format, Format::Table | Format::Wide | Format::Name);
        let printed = match &self.shown {
            _ if self.is_terminal && is_text => self.in_place(&text),
            Some(before) if is_text => fresh_lines(before, &text),
            _ => text.clone(),
        };
        self.shown = Some(text);
        let mut stdout = io::stdout().lock();
        stdout.write_all(printed.as_bytes()).and_then(|()| stdout.flush()).is_ok()
    }

    fn in_place(&self, text: &str) -> String {
        let clear = if self.shown.is_none() { CLEAR } else { "" };
        let height = terminal::size().map_or(usize::MAX, |(_, height)| usize::from(height));
        format!("{clear}{HOME}{}", fitting(text, height))
    }
}

/// Shows a report again whenever something has changed, until the output is closed.
pub async fn follow<R: Report>(
    format: Format,
    reader: &mut Reader,
    make: impl Fn(Timestamp) -> anyhow::Result<R>,
) -> anyhow::Result<Answer> {
    let mut live = Live::new(format);
    while live.show(&make(Timestamp::now())?) {
        reader.changed_within(RENEW).await?;
    }
    Ok(Answer::done(String::new()))
}

/// As many lines as fit on the screen, because lines that scroll away cannot be overwritten. The last line is for
/// the cursor.
fn fitting(text: &str, height: usize) -> String {
    let (all, room) = (text.lines().count(), height.saturating_sub(2));
    if all <= room {
        return text.to_owned();
    }
    let shown = text.lines().take(room.saturating_sub(1)).flat_map(|line| [line, "\n"]);
    let left_out = all - room.saturating_sub(1);
    shown.collect::<String>() + &format!("… and {left_out} more lines\n")
}

fn fresh_lines(before: &str, text: &str) -> String {
    let known: HashSet<&str> = before.lines().collect();
    text.lines().filter(|line| !known.contains(line)).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_on_the_screen_is_counted() {
        assert_eq!(fitting("a\nb\n", 4), "a\nb\n");
        assert_eq!(fitting("a\nb\nc\n", 4), "a\n… and 2 more lines\n");
        assert_eq!(fitting("a\nb\nc\n", 0), "… and 3 more lines\n");
    }

    #[test]
    fn only_what_has_changed_is_printed_again() {
        assert_eq!(fresh_lines("NAME\na   1\nb   2\n", "NAME\na   1\nb   3\nc   1\n"), "b   3\nc   1\n");
    }
}
