//! Divides the rows of the screen among its parts. The most important part is the last to be cut.

/// The rows of a header with nothing but the title.
const TITLE: usize = 1;
/// A blank line, the title of the scene, its last words.
const SCENE: usize = 3;
/// From this height on, there are hints and a few events.
const TALL: usize = 20;
/// A heading and three events.
const FEW_EVENTS: usize = 4;
/// From this height on, there is a blank line between parts.
const SPACIOUS: usize = 30;

/// The rows that each part would take on an endless screen.
pub struct Needs {
    pub header: usize,
    pub jobs: usize,
    pub nodes: usize,
    /// The rows of the nodes in the narrowest columns.
    pub nodes_at_least: usize,
}

/// The most rows of each part, including headings. Events get the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub header: usize,
    pub scene: usize,
    pub jobs: usize,
    pub nodes: usize,
    /// Blank lines before each table.
    pub between: usize,
}

impl Rows {
    /// Divides this number of rows.
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

/// An empty part has no heading.
fn with_heading(rows: usize) -> usize {
    if rows == 0 { 0 } else { rows + 1 }
}
