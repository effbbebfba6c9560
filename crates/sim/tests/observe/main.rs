//! The dashboard, the alerts and docs/observe.md, held to what the processes really export.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod alerts;
mod dashboard;
mod document;
mod drawing;
mod exported;
mod expression;

use std::path::PathBuf;

/// A file of the tree.
fn read(path: &str) -> String {
    let path = in_tree(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn in_tree(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
