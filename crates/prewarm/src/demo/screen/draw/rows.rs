//! Which part of the screen gets how many rows. What is most worth knowing is the last to go.

/// The rows of a header that says nothing but what this is.
const TITLE: usize = 1;
/// A line between, the title of the scene, its last words.
const SCENE: usize = 3;
/// From this height on, there is room for hints and a few events.
const TALL: usize = 20;
/// A heading and three events.
const FEW_EVENTS: usize = 4;
/// From this height on, a line stands between two parts.
const SPACIOUS: usize = 30;

/// What would be shown on an endless screen, in rows.
pub struct Needs {
    pub header: usize,
    pub jobs: usize,
    pub nodes: usize,
    /// For nodes in columns as narrow as can be.
    pub nodes_at_least: usize,
}

/// The most rows of each part, headings included. Events have what is left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub header: usize,
    pub scene: usize,
    pub jobs: usize,
    pub nodes: usize,
    /// Before each table.
    pub between: usize,
}

impl Rows {
    /// Divides so many rows.
    pub fn divide(needs: &Needs, height: usize) -> Self {
        let header = if height >= TALL { needs.header } else { TITLE }.min(height);
        let scene = SCENE.min(height - header);
        let rest = height - header - scene;
        let kept = if height >= TALL { FEW_EVENTS.max(rest / 8) } else { 0 };
        let between = usize::from(height >= SPACIOUS);
        let free = rest - kept - 3 * between;
        let spare = free.saturating_sub(with_heading(needs.nodes_at_least));
        let jobs = with_heading(needs.jobs).min(spare.max(free / 3).max(2)).min(free);
        let nodes = with_heading(needs.nodes).min(free - jobs);
        Self { header, scene, jobs, nodes, between }
    }
}

/// Nothing has no heading.
fn with_heading(rows: usize) -> usize {
    if rows == 0 { 0 } else { rows + 1 }
}
