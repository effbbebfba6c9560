//! What the documents claim about the tree: which crate depends on which, how long files and functions are, where modules are, which
//! words are used, and which functions the path of a job has. `cargo xtask check` reports every claim that is not true.

mod arrows;
pub mod figures;
mod path;
mod sizes;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// A file of the tree that is written by hand.
struct Source {
    /// Below the top.
    path: PathBuf,
    text: String,
}

/// Fails with a line for every claim that is not true.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let mut sources = sources(root)?;
    let mut wrong: Vec<String> = sources.iter().flat_map(sizes::judge).collect();
    wrong.extend(sources.iter().filter_map(|source| misplaced(&source.path)));
    let page = fs::read_to_string(root.join(arrows::PAGE)).context("reading the architecture")?;
    wrong.extend(arrows::judge(&page, &arrows::gather(root)?));
    wrong.extend(words::judge_glossary(&page));
    wrong.extend(path::judge(&page, &sources));
    sources.extend(pages(root)?);
    wrong.extend(sources.iter().flat_map(words::judge));
    for folder in words::clean_folders(&sources) {
        println!(
            "{folder} has no banned word any more: remove it from the list in xtask/src/claims/words.rs"
        );
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Everything that is written by hand in Rust.
fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in ["crates", "xtask"] {
        gather(root, Path::new(folder), &mut sources)?;
    }
    Ok(sources)
}

fn gather(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> anyhow::Result<()> {
    let entries = fs::read_dir(root.join(folder)).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                gather(root, &path, sources)?;
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(entry.path())?;
            sources.push(Source { path, text });
        }
    }
    Ok(())
}

/// The pages at the top and in `docs`. The specifications quote other programs, so they are not among them.
fn pages(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut pages = Vec::new();
    for folder in ["", "docs"] {
        for entry in fs::read_dir(root.join(folder)).with_context(|| format!("reading {folder:?}"))? {
            let path = Path::new(folder).join(entry?.file_name());
            if path.extension().is_some_and(|end| end == "md") {
                let text = fs::read_to_string(root.join(&path))?;
                pages.push(Source { path, text });
            }
        }
    }
    Ok(pages)
}

/// A module is `name.rs`, its parts in `name/`. Only below `tests` a `mod.rs` is needed: cargo takes other files there for tests,
/// and some of them share a module.
fn misplaced(path: &Path) -> Option<String> {
    let is_below_tests = path.iter().any(|part| part == "tests");
    let is_wrong = path.file_name()? == "mod.rs" && !is_below_tests;
    is_wrong.then(|| format!("{}: a module lies beside the folder of its parts, not in it", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_as_the_documents_claim() {
        check(crate::root()).unwrap();
    }

    #[test]
    fn a_module_in_its_own_folder_is_found() {
        assert!(misplaced(Path::new("crates/plan/src/node/mod.rs")).is_some());
        assert!(misplaced(Path::new("crates/plan/src/node.rs")).is_none());
        assert!(misplaced(Path::new("crates/plan/tests/support/mod.rs")).is_none());
    }
}
