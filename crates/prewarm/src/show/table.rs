//! Tables in the style of kubectl: titles in capitals, three spaces between columns, no lines.

use comfy_table::{CellAlignment, Color, ContentArrangement, Table, presets};

use super::Look;

const GAP: u16 = 3;

#[derive(Clone, Copy, Debug)]
pub struct Column {
    title: &'static str,
    is_wide: bool,
}

impl Column {
    /// A column that is always shown.
    pub const fn new(title: &'static str) -> Self {
        Self { title, is_wide: false }
    }

    /// A column that only `-o wide` shows.
    pub const fn wide(title: &'static str) -> Self {
        Self { title, is_wide: true }
    }
}

/// What the colour of a cell says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// In progress.
    Busy,
    /// Not as it should be.
    Bad,
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// A number that is bad unless it is 0.
    pub fn bad_count(count: impl Into<i64>) -> Self {
        let count = count.into();
        Self::toned(count.to_string(), if count == 0 { Tone::Plain } else { Tone::Bad })
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// The text of a table; empty if there are no rows.
pub fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<Cell>>, look: Look) -> String {
    let is_shown = |index: usize| look.is_wide || !columns[index].is_wide;
    let shown: Vec<usize> = (0..columns.len()).filter(|index| is_shown(*index)).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if look.is_coloured {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(shown.iter().map(|index| columns[*index].title));
    for row in rows {
        table.add_row(shown.iter().filter_map(|index| row.get(*index)).map(painted));
    }
    if table.row_count() == 0 {
        return String::new();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP)).set_cell_alignment(CellAlignment::Left);
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

fn painted(cell: &Cell) -> comfy_table::Cell {
    // A line break would look like a row of its own.
    let text = prewarm_api::text::plain(&cell.text);
    let painted = comfy_table::Cell::new(text);
    match cell.tone {
        Tone::Plain => painted,
        Tone::Good => painted.fg(Color::Green),
        Tone::Busy => painted.fg(Color::Cyan),
        Tone::Bad => painted.fg(Color::Red),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::new("NAME"), Column::new("STATE"), Column::wide("ZONE")];

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec!["node-1".into(), Cell::toned("Failed", Tone::Bad), "a".into()],
            vec!["n".into(), "Done\nwell".into(), "b".into()],
        ]
    }

    #[test]
    fn a_table_looks_like_kubectls() {
        assert_eq!(
            table(&COLUMNS, rows(), Look::default()),
            "NAME     STATE\nnode-1   Failed\nn        Done well\n"
        );
    }

    #[test]
    fn a_wide_table_has_all_columns_and_a_coloured_one_colours() {
        let wide = table(&COLUMNS, rows(), Look { is_wide: true, is_coloured: false });
        assert!(wide.starts_with("NAME     STATE       ZONE\n"), "{wide}");
        let coloured = table(&COLUMNS, rows(), Look { is_wide: false, is_coloured: true });
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    }

    #[test]
    fn no_rows_make_no_table() {
        assert_eq!(table(&COLUMNS, [], Look::default()), "");
    }
}
