//! A cron job as lines, and its runs as rows.

use prewarm_api::kruise::GROUP;
use serde::Serialize;

use super::run::Run;
use crate::answer::Exit;
use crate::crons::{Ending, Note, Summary};
use crate::show::{self, Cell, Column, Look, counted, table};

/// The most runs that are shown, latest first; JSON and YAML have all.
const MOST_RUNS: usize = 10;
/// The width of the labels.
const LABEL: usize = 15;

const COLUMNS: [Column; 5] = [
    Column::new("RUN"),
    Column::new("SCHEDULED FOR"),
    Column::new("STATE"),
    Column::new("TOOK"),
    Column::new("WHY"),
];

/// The explanation of all cron jobs of one name.
#[derive(Debug, Serialize)]
pub struct Report {
    /// At most one for each namespace.
    pub items: Vec<Item>,
}

/// One cron job.
#[derive(Debug, Serialize)]
pub struct Item {
    #[serde(flatten)]
    summary: Summary,
    runs: Vec<Run>,
}

impl Item {
    /// Takes the runs latest first.
    pub fn of(summary: Summary, runs: Vec<Run>) -> Self {
        Self { summary, runs }
    }

    fn text(&self, look: Look) -> String {
        let title = format!("{}: {:?}\n", self.summary.title(), self.summary.state);
        let lines = self.lines().into_iter().map(|(label, words)| {
            let label = format!("{label}:");
            format!("  {label:LABEL$}{words}\n")
        });
        title + &lines.collect::<String>() + &rows(&self.runs, look)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let summary = &self.summary;
        let mut lines = vec![
            ("Schedule", format!("{} (time zone {})", summary.schedule, summary.zone)),
            ("Makes", summary.makes.unwrap_or("-").to_owned()),
            ("Next run", self.next()),
            ("Last run", self.last()),
        ];
        lines.extend(summary.last_result.as_ref().map(|ending| ("Last result", ended(ending))));
        lines.extend(summary.last_failed_image.clone().map(|image| ("Failed image", image)));
        lines.extend(summary.skips().into_iter().map(|skip| ("Skipped", skip)));
        // The line "Last result" already says how the last run failed.
        let notes = summary.notes.iter().filter(|note| !matches!(note, Note::LastRunFailed(_)));
        lines.extend(notes.map(|note| ("Note", note.to_string())));
        lines
    }

    fn next(&self) -> String {
        let Summary { state, next_run, .. } = &self.summary;
        let (Some(next), Some(until)) = (next_run, self.summary.until_next()) else {
            return format!("none; the cron job is {}", format!("{state:?}").to_lowercase());
        };
        let there = self.summary.there(*next).map(|there| format!(" ({there})")).unwrap_or_default();
        format!("{next}{there}, {until}")
    }

    fn last(&self) -> String {
        match (self.summary.last_run, self.summary.since_last()) {
            (Some(last), Some(since)) => format!("{last}, {since}"),
            _ => "never".to_owned(),
        }
    }
}

fn rows(runs: &[Run], look: Look) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let rows = runs.iter().take(MOST_RUNS).map(|run| {
        vec![
            run.name.clone().into(),
            run.scheduled.map_or("-".to_owned(), |time| time.to_string()).into(),
            Cell::toned(format!("{:?}", run.state), run.state.tone()),
            run.took.clone().unwrap_or_else(|| "-".to_owned()).into(),
            run.why.clone().into(),
        ]
    });
    let more = match runs.len().saturating_sub(MOST_RUNS) {
        0 => String::new(),
        more => format!("… and {}\n", counted(more, "earlier run")),
    };
    format!("\n{}{more}", table(&COLUMNS, rows, look))
}

fn ended(Ending { succeeded, reason, message }: &Ending) -> String {
    let word = if *succeeded { "succeeded" } else { reason };
    format!("{word}: {message}")
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        self.items.iter().map(|item| item.text(look)).collect::<Vec<_>>().join("\n")
    }

    fn names(&self) -> Vec<String> {
        let full_name = |run: &Run| match run.kind {
            "Job" => format!("job.batch/{}", run.name),
            kind => format!("{}.{GROUP}/{}", kind.to_lowercase(), run.name),
        };
        self.items.iter().flat_map(|item| &item.runs).map(full_name).collect()
    }

    fn exit(&self) -> Exit {
        Exit::found(self.items.iter().any(|item| item.summary.state.is_bad()))
    }
}
