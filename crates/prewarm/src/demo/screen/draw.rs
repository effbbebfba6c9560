//! Turns a view into a frame. The same view and size always give the same picture. If the screen is too small for
//! everything, parts are left out.

mod amount;
mod jobs;
mod nodes;
mod palette;
mod rows;

use std::time::Duration;

use ratatui::Frame;
use ratatui::text::{Line, Span, Text};

use super::view::{Event, Mood, View};
pub use palette::Palette;
use rows::{Needs, Rows};

pub fn draw(frame: &mut Frame<'_>, view: &View, palette: &Palette) {
    let area = frame.area();
    let header = header(view, area.width.into(), palette);
    let (nodes, nodes_at_least) = nodes::rows_of_all(view.nodes.len(), area.width.into());
    let needs = Needs { header: header.len(), jobs: view.jobs.len(), nodes, nodes_at_least };
    let rows = Rows::divide(&needs, area.height.into());
    let width = usize::from(area.width);
    let mut lines = header;
    lines.truncate(rows.header);
    lines.extend(scene(view, width, palette).into_iter().take(rows.scene));
    lines.extend(vec![Line::default(); rows.between]);
    lines.extend(jobs::table(&view.jobs, width, rows.jobs, palette).into_iter().take(rows.jobs));
    lines.extend(vec![Line::default(); rows.between]);
    lines.extend(nodes::table(&view.nodes, width, rows.nodes, palette).into_iter().take(rows.nodes));
    lines.extend(vec![Line::default(); rows.between]);
    // Tables may take fewer rows than they have been given; events get the rest.
    let left = usize::from(area.height).saturating_sub(lines.len());
    lines.extend(events(&view.events, width, left, palette));
    frame.render_widget(Text::from(lines), area);
}

/// The title, and how to look at the cluster with other programs.
fn header(view: &View, width: usize, palette: &Palette) -> Vec<Line<'static>> {
    let title = format!("Prewarm demo · {} nodes · {}", view.nodes.len(), clock(view.elapsed));
    let ends = "q ends it";
    let gap = width.saturating_sub(title.chars().count() + ends.len());
    let first = Line::from(vec![
        Span::styled(title, palette.strong),
        Span::raw(" ".repeat(gap)),
        Span::styled(ends, palette.dim),
    ]);
    let look = format!("kubectl --kubeconfig {}", view.kubeconfig);
    let what = "get imagepulljobs,imageprefetches,nodeimages -A";
    let status = format!("prewarm status --kubeconfig {}", view.kubeconfig);
    let hints = if look.len() + 1 + what.len() <= width {
        vec![format!("{look} {what}"), status]
    } else {
        // Two lines that can still be copied as one command.
        vec![format!("{look} \\"), format!("  {what}"), status]
    };
    let hints = hints.into_iter().map(|hint| Line::styled(hint, palette.dim));
    std::iter::once(first).chain(hints).collect()
}

fn scene(view: &View, width: usize, palette: &Palette) -> Vec<Line<'static>> {
    vec![
        Line::default(),
        Line::styled(fit(&view.scene.title, width), palette.strong),
        Line::from(fit(&format!("  {}", view.scene.said), width)),
    ]
}

/// The latest events that fit.
fn events(events: &[Event], width: usize, rows: usize, palette: &Palette) -> Vec<Line<'static>> {
    let shown = events.len().saturating_sub(rows.saturating_sub(1));
    let heading = Line::styled("EVENTS", palette.heading);
    let lines = events[shown..].iter().map(|event| {
        let style = match event.mood {
            Mood::Title => palette.strong,
            Mood::Plain => palette.plain,
            Mood::Good => palette.done,
            Mood::Bad => palette.failed,
        };
        let at = Span::styled(format!("{:6.1} s  ", event.at.as_secs_f64()), palette.dim);
        let text = fit(&event.text, width.saturating_sub(at.width()));
        Line::from(vec![at, Span::styled(text, style)])
    });
    std::iter::once(heading).chain(lines).collect()
}

fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}", seconds / 60, seconds % 60)
}

/// A text of exactly this width; a longer one is cut and marked.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:<width$}");
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.extend((width > 0).then_some('…'));
    cut
}
