//! The table of nodes, in as many columns as are needed and fit.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Palette, amount, fit};
use crate::demo::screen::name;
use crate::demo::screen::view::{Activity, Node, fitting};

/// The width of a full column.
const WIDE: usize = 64;
/// The width of a column with short names and no bar.
const NARROW: usize = 40;
/// The gap between two columns.
const GAP: usize = 2;
/// The width of the bar of one pull.
const BAR: u64 = 10;

/// The layout of the nodes.
struct Grid {
    columns: usize,
    /// The width of one column, without the gap.
    width: usize,
    rows: usize,
}

impl Grid {
    /// Wide columns if all nodes fit, otherwise narrow ones.
    fn of(nodes: usize, width: usize, rows: usize) -> Self {
        let wide = (width / WIDE).max(1);
        let narrow = (width / NARROW).max(1);
        let columns = nodes.div_ceil(rows.max(1)).clamp(wide, narrow);
        Self { columns, width: (width / columns).min(WIDE + 16).saturating_sub(GAP), rows }
    }
}

/// The most and the fewest rows that all nodes take: in wide and in narrow columns.
pub fn rows_of_all(nodes: usize, width: usize) -> (usize, usize) {
    let rows = |column: usize| nodes.div_ceil((width / column).max(1));
    (rows(WIDE), rows(NARROW))
}

/// At most this many lines. The order of the nodes runs down each column.
pub fn table(nodes: &[Node], width: usize, rows: usize, palette: &Palette) -> Vec<Line<'static>> {
    let rows = rows.saturating_sub(1);
    let mut grid = Grid::of(nodes.len(), width, rows);
    let is_full = nodes.len() > grid.columns * grid.rows;
    grid.rows -= usize::from(is_full && grid.rows > 0);
    let (shown, left_out) = fitting(nodes, grid.columns * grid.rows);
    // As few rows as possible, so that the columns are filled evenly.
    let rows = shown.len().div_ceil(grid.columns);
    let name_width = nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    let cells = Cells { width: grid.width, name: name_width.clamp(4, 20), palette };
    let used = shown.len().div_ceil(rows.max(1)).max(1);
    let mut lines = vec![Line::styled(vec![cells.heading(); used].join("  "), palette.heading)];
    for row in 0..rows {
        let in_row = shown.iter().skip(row).step_by(rows);
        lines.push(in_row.flat_map(|node| cells.cell(node)).collect());
    }
    if left_out > 0 {
        lines.push(Line::styled(format!("… and {left_out} more"), palette.dim));
    }
    lines
}

/// One node in one column.
struct Cells<'a> {
    width: usize,
    name: usize,
    palette: &'a Palette,
}

impl Cells<'_> {
    fn is_wide(&self) -> bool {
        self.width + GAP >= WIDE
    }

    /// The widths of zone, activity, speed and free space.
    fn widths(&self) -> (usize, usize, usize, usize) {
        let (zone, speed, free) = if self.is_wide() { (6, 8, 7) } else { (1, 5, 5) };
        let spaces = 4;
        (zone, self.width.saturating_sub(self.name + zone + speed + free + spaces), speed, free)
    }

    fn heading(&self) -> String {
        let (zone, activity, speed, free) = self.widths();
        let (zone, activity) = (fit(if zone > 1 { "ZONE" } else { "Z" }, zone), fit("PULLS", activity));
        let per_second = if self.is_wide() { "SPEED" } else { "B/S" };
        format!("{} {zone} {activity} {per_second:>speed$} {:>free$}", fit("NODE", self.name), "FREE")
    }

    fn cell(&self, node: &Node) -> Vec<Span<'static>> {
        let (zone, activity, speed, free) = self.widths();
        let short_zone = node.zone.rsplit('-').next().unwrap_or(&node.zone);
        let shown_zone = if self.is_wide() { &node.zone } else { short_zone };
        let (text, style) = self.activity(&node.activity);
        let unit = if self.is_wide() { "/s" } else { "" };
        let per_second = match node.speed {
            0 => "-".to_owned(),
            bytes => format!("{}{unit}", amount::short(bytes)),
        };
        vec![
            Span::raw(format!("{} {} ", fit(&node.name, self.name), fit(shown_zone, zone))),
            Span::styled(fit(&text, activity), style),
            Span::raw(format!(" {per_second:>speed$} {:>free$}  ", amount::short(node.free))),
        ]
    }

    fn activity(&self, activity: &Activity) -> (String, Style) {
        let shown = |image: &str| if self.is_wide() { image } else { name::shortest(image) }.to_owned();
        match activity {
            Activity::Pulling { image, percent, others } => {
                let others = if *others > 0 { format!(" +{others}") } else { String::new() };
                let bar = if self.is_wide() { format!("{} ", bar(*percent)) } else { String::new() };
                (format!("{bar}{percent:>3} % {}{others}", shown(image)), self.palette.active)
            }
            Activity::Waiting { image, why } if self.is_wide() => {
                (format!("{image} {why}"), self.palette.waiting)
            }
            Activity::Waiting { image, .. } => (format!("waits {}", shown(image)), self.palette.waiting),
            Activity::Idle { present, failed: 0 } => (images(*present), self.palette.dim),
            Activity::Idle { present, failed } if self.is_wide() => {
                (format!("{}, {failed} failed", images(*present)), self.palette.failed)
            }
            Activity::Idle { failed, .. } => (format!("{failed} failed"), self.palette.failed),
        }
    }
}

fn images(count: i32) -> String {
    if count == 1 { "1 image".to_owned() } else { format!("{count} images") }
}

fn bar(percent: u64) -> String {
    let full = usize::try_from(percent.min(100) * BAR / 100).unwrap_or(0);
    let all = usize::try_from(BAR).unwrap_or(0);
    format!("{}{}", "█".repeat(full), "░".repeat(all - full))
}
