//! Which packages depend on what has changed since the last commit on the main branch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::cargo;

/// The branch that changes are counted from.
const MAIN: &str = "main";

/// Files outside of all packages, and the package whose tests read them. Others are read by every package or by none.
const READ_BY: [(&str, &str); 11] = [
    ("tools/", "prewarm-bed"),
    ("deploy/", "prewarm-generate"),
    ("ARCHITECTURE.md", "xtask"),
    ("CONTRIBUTING.md", "xtask"),
    ("docs/compatibility.md", "prewarm-sim"),
    ("docs/dashboard.svg", "prewarm-sim"),
    ("docs/guide.md", "prewarm-corpus"),
    ("docs/observe.md", "prewarm-sim"),
    ("docs/security.md", "prewarm-sim"),
    ("docs/spec/ofen.md", "prewarm-sim"),
    ("docs/testing.md", "xtask"),
];
/// Packages whose tests read what is installed, without depending on what generates it.
const READ_INSTALLED: [&str; 5] =
    ["prewarm-api", "prewarm", "prewarm-package", "prewarm-sim", "prewarm-testkit"];
/// No test reads these.
const READ_BY_NOBODY: [&str; 3] = [".md", "LICENSE", "deny.toml"];

/// The packages of the workspace.
pub struct Workspace {
    /// Each by its name: its folder below the top, and the packages of the workspace that it is built from.
    packages: BTreeMap<String, (PathBuf, BTreeSet<String>)>,
}

/// Looks at the tree: the folders of the packages whose suites have to run.
pub fn affected(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    Ok(Workspace::of(root)?.affected_by(&changed_files(root)?))
}

/// Paths below the top: committed on another branch, not committed yet, or not even added.
fn changed_files(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = git(root, &["diff", "--name-only", MAIN])?;
    files.extend(git(root, &["ls-files", "--others", "--exclude-standard"])?);
    Ok(files)
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git").current_dir(root).args(arguments).output().context("starting git")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), complaint.trim());
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

impl Workspace {
    fn of(root: &Path) -> anyhow::Result<Self> {
        Self::read(root, &cargo::metadata()?)
    }

    fn read(root: &Path, metadata: &Value) -> anyhow::Result<Self> {
        let packages = metadata["packages"].as_array().context("a workspace has packages")?;
        let read = |package: &Value| {
            let name = package["name"].as_str()?.to_owned();
            let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
            let parts = package["dependencies"].as_array()?.iter();
            let parts =
                parts.filter(|part| part["path"].is_string()).filter_map(|part| part["name"].as_str());
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
            Some((name, (folder, parts.map(str::to_owned).collect())))
        };
        Ok(Self { packages: packages.iter().filter_map(read).collect() })
    }

    /// The folders of the packages that these files are part of, and of those that are built from them.
    fn affected_by(&self, files: &[String]) -> BTreeSet<PathBuf> {
        let mut affected = BTreeSet::new();
        for file in files {
            match self.touched(file) {
                Some(packages) => affected.extend(packages),
                None => affected.extend(self.packages.keys().cloned()),
            }
        }
        loop {
            let grown: BTreeSet<String> = self
                .packages
                .iter()
                .filter(|(name, (_, parts))| affected.contains(*name) || !parts.is_disjoint(&affected))
                .map(|(name, _)| name.clone())
                .collect();
            if grown == affected {
                break;
            }
            affected = grown;
        }
        affected.iter().filter_map(|name| Some(self.packages.get(name)?.0.clone())).collect()
    }

    /// The packages that a file is part of or read by; `None` stands for all.
    fn touched(&self, file: &str) -> Option<BTreeSet<String>> {
        let owner = self.packages.iter().find(|(_, (folder, _))| Path::new(file).starts_with(folder));
        if let Some((name, _)) = owner {
            return Some(BTreeSet::from([name.clone()]));
        }
        if let Some((_, reader)) = READ_BY.iter().find(|(beginning, _)| file.starts_with(beginning)) {
            let mut readers = BTreeSet::from([(*reader).to_owned()]);
            if file.starts_with("deploy/") {
                readers.extend(READ_INSTALLED.map(str::to_owned));
            }
            return Some(readers);
        }
        READ_BY_NOBODY.iter().any(|end| file.ends_with(end)).then(BTreeSet::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected_by(files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let folders = Workspace::of(crate::root()).unwrap().affected_by(&files);
        folders.iter().map(|folder| folder.display().to_string()).collect()
    }

    #[test]
    fn the_program_is_built_into_nothing_else() {
        assert_eq!(affected_by(&["crates/prewarm/src/main.rs"]), ["crates/prewarm"]);
    }

    #[test]
    fn whatever_runs_agents_depends_on_the_agent() {
        let wanted = ["crates/agent", "crates/demo", "crates/prewarm", "crates/sim"];
        assert_eq!(affected_by(&["crates/agent/src/run.rs"]), wanted);
    }

    #[test]
    fn a_dependency_of_tests_counts() {
        assert!(affected_by(&["crates/testkit/src/lib.rs"]).contains(&"crates/runtime".to_owned()));
    }

    #[test]
    fn what_belongs_to_nobody_belongs_to_everybody() {
        let all = Workspace::of(crate::root()).unwrap().packages.len();
        assert_eq!(affected_by(&["Cargo.lock"]).len(), all);
        assert_eq!(affected_by(&["README.md"]), Vec::<String>::new());
        for document in
            ["docs/compatibility.md", "docs/observe.md", "docs/dashboard.svg", "docs/spec/ofen.md"]
        {
            assert_eq!(affected_by(&[document]), ["crates/sim"], "{document}");
        }
        assert_eq!(affected_by(&["ARCHITECTURE.md", "CONTRIBUTING.md"]), ["xtask"]);
    }
}
