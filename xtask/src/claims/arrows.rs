//! The dependencies between crates: as drawn in ARCHITECTURE.md, and as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;

use crate::cargo;

pub const PAGE: &str = "ARCHITECTURE.md";
/// The prefix of our packages' names, which the drawing leaves out.
const OURS: &str = "prewarm-";

/// Each crate and its dependencies, without those that only its tests need.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Reads them from the workspace.
pub fn gather(root: &Path) -> anyhow::Result<Arrows> {
    let metadata = cargo::metadata()?;
    let packages = metadata["packages"].as_array().context("a workspace has packages")?;
    let is_inside = |path: &str| Path::new(path).starts_with(root.join("crates"));
    let short = |name: &str| name.strip_prefix(OURS).unwrap_or(name).to_owned();
    let mut arrows = Arrows::new();
    for package in packages.iter().filter(|package| package["manifest_path"].as_str().is_some_and(is_inside))
    {
        let parts = package["dependencies"].as_array().into_iter().flatten();
        let parts = parts.filter(|part| part["kind"].is_null() && part["path"].is_string());
        let parts = parts.filter_map(|part| part["name"].as_str()).map(short).collect();
        arrows.insert(short(package["name"].as_str().unwrap_or_default()), parts);
    }
    Ok(arrows)
}

/// A line for every arrow that is missing in the drawing or in the workspace.
pub fn judge(page: &str, arrows: &Arrows) -> Vec<String> {
    let drawn = read(page);
    let mut wrong = Vec::new();
    let none = BTreeSet::new();
    for name in drawn.keys().chain(arrows.keys()).collect::<BTreeSet<_>>() {
        let (drawn, there) = (drawn.get(name).unwrap_or(&none), arrows.get(name).unwrap_or(&none));
        wrong.extend(
            there.difference(drawn).map(|part| format!("{PAGE} draws no arrow from {name} to {part}")),
        );
        wrong.extend(
            drawn
                .difference(there)
                .map(|part| format!("{PAGE} draws an arrow from {name} to {part}, and there is none")),
        );
    }
    wrong
}

/// Reads lines such as `plan → api clock`.
fn read(page: &str) -> Arrows {
    let arrow = |line: &str| {
        let (name, parts) = line.split_once(" → ")?;
        let is_name = |word: &str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        let name = name.trim_end();
        let parts: BTreeSet<String> = parts.split_whitespace().map(str::to_owned).collect();
        (is_name(name) && parts.iter().all(|part| is_name(part))).then(|| (name.to_owned(), parts))
    };
    page.lines().filter_map(arrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(parts: &[&str]) -> Arrows {
        BTreeMap::from([("plan".to_owned(), parts.iter().map(|part| (*part).to_owned()).collect())])
    }

    #[test]
    fn what_is_drawn_and_what_there_is_have_to_agree() {
        let page = "Some text → with an arrow.\n\nplan       → api clock\n";
        assert_eq!(judge(page, &arrows(&["api", "clock"])), Vec::<String>::new());
        assert_eq!(
            judge(page, &arrows(&["api", "clock", "runtime"])),
            ["ARCHITECTURE.md draws no arrow from plan to runtime"]
        );
        assert_eq!(
            judge(page, &arrows(&["api"])),
            ["ARCHITECTURE.md draws an arrow from plan to clock, and there is none"]
        );
    }
}
