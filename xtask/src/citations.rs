//! Whether every rule that is cited exists: `kruise R45` in a comment means that `docs/spec/kruise.md` has an R45.
//!
//! Each page of `docs/spec` is cited by the name of its file. It is a step of the tests and a part of `cargo xtask check`.

mod number;
mod page;
mod reader;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use page::Pages;
use reader::{Citation, Source};

/// Where the rules are.
const PAGES: &str = "docs/spec";
/// The page whose rules may be cited without its name, outside of the other pages.
const USUAL_PAGE: &str = "kruise";

/// Fails if a number is cited that its page does not have.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let pages = Pages::read(&root.join(PAGES))?;
    let (count, dangling) = find(root, &pages)?;
    if !dangling.is_empty() {
        bail!("{}\nwrite the rule down there, or correct its number", dangling.join("\n"));
    }
    ensure!(count > 0, "nothing is cited at all: citations are not found");
    println!("{count} citations of {} rules and sections exist", pages.len());
    Ok(())
}

/// A line for every citation without a target.
pub fn dangling(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(find(root, &Pages::read(&root.join(PAGES))?)?.1)
}

/// How much is cited, and a line for every citation without a target.
fn find(root: &Path, pages: &Pages) -> anyhow::Result<(usize, Vec<String>)> {
    let (mut count, mut dangling) = (0, Vec::new());
    for path in files(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let place = path.strip_prefix(root).unwrap_or(&path);
        let citations = reader::read(&text, &source(place), pages);
        // A page's own numbers would count for as many.
        count += if place.starts_with(PAGES) { 0 } else { citations.len() };
        dangling.extend(citations.iter().filter_map(|citation| complaint(place, citation, pages)));
    }
    Ok((count, dangling))
}

/// What is wrong with a citation, if anything.
fn complaint(place: &Path, citation: &Citation, pages: &Pages) -> Option<String> {
    let Citation { line, page, number } = citation;
    let place = place.display();
    (!pages.has(page, number)).then(|| format!("{place}:{line}: {PAGES}/{page}.md has no {number}"))
}

/// How the numbers of a file are to be understood.
fn source(place: &Path) -> Source<'_> {
    let own = place.starts_with(PAGES).then(|| place.file_stem().and_then(|stem| stem.to_str())).flatten();
    Source {
        usual_page: own.unwrap_or(USUAL_PAGE),
        is_code: place.extension().is_some_and(|end| end == "rs"),
    }
}

/// Every file of the tree that may cite something, in order.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path)?);
            }
        } else if [".rs", ".md", ".yaml"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
    Ok(found)
}
