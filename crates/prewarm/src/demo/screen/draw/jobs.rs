//! The table of jobs, with one line and one bar each.

use prewarm_demo::story::Counts;
use ratatui::text::{Line, Span};

use super::{Palette, amount, fit};
use crate::demo::screen::view::{Job, Time};

/// The width of the columns to the right of the bar: done, active, failed, time.
const FIGURES: usize = 8 + 8 + 8 + 11;
/// The widest bar. A wider one would show no more and move the figures away from the name.
const LONGEST_BAR: usize = 60;

/// The widths of the flexible columns.
struct Widths {
    name: usize,
    image: usize,
    bar: usize,
}

/// At most this many lines.
pub fn table(jobs: &[Job], width: usize, rows: usize, palette: &Palette) -> Vec<Line<'static>> {
    let widths = Widths::of(jobs, width);
    let places = rows.saturating_sub(1);
    let shown = if jobs.len() > places { places.saturating_sub(1) } else { jobs.len() };
    let mut lines = vec![heading(&widths, palette)];
    lines.extend(jobs.iter().take(shown).map(|job| line(job, &widths, palette)));
    if jobs.len() > shown {
        lines.push(Line::styled(format!("… and {} more", jobs.len() - shown), palette.dim));
    }
    lines
}

impl Widths {
    fn of(jobs: &[Job], width: usize) -> Self {
        let room = width.saturating_sub(FIGURES);
        let longest = |text: fn(&Job) -> &str| jobs.iter().map(|job| text(job).chars().count()).max();
        let name = longest(|job| &job.name).unwrap_or(0).clamp(3, 30).min(room / 4);
        let image = longest(|job| &job.image).unwrap_or(0).clamp(5, 40).min(room * 2 / 5);
        Self { name, image, bar: room.saturating_sub(name + image + 2).min(LONGEST_BAR) }
    }
}

fn heading(widths: &Widths, palette: &Palette) -> Line<'static> {
    let (name, image, bar) = (fit("JOB", widths.name), fit("IMAGE", widths.image), fit("NODES", widths.bar));
    let text = format!("{name} {image} {bar}{:>8}{:>8}{:>8}{:>11}", "DONE", "ACTIVE", "FAILED", "TIME");
    Line::styled(text, palette.heading)
}

fn line(job: &Job, widths: &Widths, palette: &Palette) -> Line<'static> {
    let Counts { desired, active, succeeded, failed } = job.counts;
    let names = format!("{} {} ", fit(&job.name, widths.name), fit(&job.image, widths.image));
    let done = format!("{succeeded}/{desired}");
    let mut spans = vec![Span::raw(names)];
    spans.extend(bar(job.counts, widths.bar, palette));
    spans.push(Span::raw(format!("{done:>8}{active:>8}")));
    let failing = if failed > 0 { palette.failed } else { palette.plain };
    spans.push(Span::styled(format!("{failed:>8}"), failing));
    spans.push(Span::raw(format!("{:>11}", time(job.time))));
    Line::from(spans)
}

fn time(time: Time) -> String {
    match time {
        Time::Took(took) => format!("took {}", amount::time(took)),
        Time::Left(left) => format!("{} left", amount::time(left)),
        Time::Unknown => "-".to_owned(),
    }
}

/// The nodes of a job as one bar: present, failed, pulling, the rest.
fn bar(counts: Counts, width: usize, palette: &Palette) -> Vec<Span<'static>> {
    let parts = [
        (counts.succeeded, '█', palette.done),
        (counts.failed, '×', palette.failed),
        (counts.active, '▒', palette.active),
    ];
    let all = usize::try_from(counts.desired).unwrap_or(0);
    let (mut nodes, mut drawn) = (0, 0);
    let mut spans = Vec::new();
    for (count, sign, style) in parts {
        nodes += usize::try_from(count).unwrap_or(0);
        // Positions are rounded instead of lengths, so that the parts always add up.
        let end = (nodes * width).checked_div(all).unwrap_or(0).min(width).max(drawn);
        spans.push(Span::styled(sign.to_string().repeat(end - drawn), style));
        drawn = end;
    }
    spans.push(Span::styled("░".repeat(width - drawn), palette.dim));
    spans
}
