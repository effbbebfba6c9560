//! The parts of a program: every crate that is compiled into it, as cargo tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::image::Program;

/// How cargo is asked to write a line: depth, crate, licence.
const FORMAT: &str = "|{p}|{l}";

/// A crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub version: String,
    /// As the crate has it, an SPDX expression; some old ones separate licences by a slash.
    pub license: String,
    /// Whether it is one of the project's own.
    pub is_ours: bool,
    /// The SHA-256 of its archive in the registry.
    pub checksum: Option<String>,
    /// What it is built from, by `name@version`.
    pub needs: BTreeSet<String>,
}

/// All of them by `name@version`. The program itself is among them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parts(pub BTreeMap<String, Part>);

impl Part {
    /// What distinguishes it from all others.
    pub fn key(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

impl Parts {
    /// The parts of these programs, each for its own target.
    pub fn of_programs(programs: &[Program]) -> anyhow::Result<Self> {
        let root = crate::root();
        let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
        let mut parts = Self::default();
        for program in programs {
            parts.read(&tree(&root, &program.target)?)?;
        }
        parts.add_checksums(&lock);
        Ok(parts)
    }

    /// Reads what cargo prints: a crate below the one that needs it, one level deeper.
    fn read(&mut self, tree: &str) -> anyhow::Result<()> {
        let mut above: Vec<String> = Vec::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let mut cells = line.splitn(3, '|');
            let (Some(depth), Some(package), Some(license)) = (cells.next(), cells.next(), cells.next())
            else {
                anyhow::bail!("cargo tree printed {line:?}");
            };
            let depth: usize = depth.parse().with_context(|| format!("cargo tree printed {line:?}"))?;
            let mut words = package.split(' ');
            let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let part = Part {
                name: name.to_owned(),
                version: version.trim_start_matches('v').to_owned(),
                license: license.trim_end_matches(" (*)").replace('/', " OR "),
                is_ours: package.contains("(/"),
                checksum: None,
                needs: BTreeSet::new(),
            };
            let key = part.key();
            self.0.entry(key.clone()).or_insert(part);
            above.truncate(depth);
            if let Some(parent) = above.last().and_then(|parent| self.0.get_mut(parent)) {
                parent.needs.insert(key.clone());
            }
            above.push(key);
        }
        ensure!(!self.0.is_empty(), "cargo tree printed nothing");
        Ok(())
    }

    /// Reads checksums from the lock file, which has a block of `key = "value"` lines for each crate.
    fn add_checksums(&mut self, lock: &str) {
        for block in lock.split("[[package]]").skip(1) {
            let field = |name: &str| {
                let start = format!("{name} = \"");
                let line = block.lines().find_map(|line| line.strip_prefix(&start))?;
                line.strip_suffix('"')
            };
            let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
            if let Some(part) = self.0.get_mut(&format!("{name}@{version}")) {
                part.checksum = field("checksum").map(str::to_owned);
            }
        }
    }
}

fn tree(root: &Path, target: &str) -> anyhow::Result<String> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["tree", "--locked", "--package", "prewarm", "--no-default-features"]);
    command.args(["--edges", "normal", "--prefix", "depth", "--format", FORMAT, "--target", target]);
    let output = command.output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("cargo tree printed no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0|prewarm v0.1.0 (/src/crates/prewarm)|Apache-2.0\n\
                        1|anyhow v1.0.1|MIT OR Apache-2.0\n\
                        1|prewarm-api v0.1.0 (/src/crates/api)|Apache-2.0\n\
                        2|anyhow v1.0.1|MIT OR Apache-2.0 (*)\n\
                        2|old v2.0.0|MIT/Apache-2.0\n";
    const LOCK: &str =
        "version = 4\n\n[[package]]\nname = \"anyhow\"\nversion = \"1.0.1\"\nchecksum = \"ab12\"\n";

    #[test]
    fn a_tree_tells_every_part_and_what_it_is_built_from() {
        let mut parts = Parts::default();
        parts.read(TREE).unwrap();
        parts.add_checksums(LOCK);
        let needs = |key: &str| parts.0[key].needs.iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(parts.0.len(), 4);
        assert_eq!(needs("prewarm@0.1.0"), ["anyhow@1.0.1", "prewarm-api@0.1.0"]);
        assert_eq!(needs("prewarm-api@0.1.0"), ["anyhow@1.0.1", "old@2.0.0"]);
        assert_eq!(parts.0["anyhow@1.0.1"].checksum.as_deref(), Some("ab12"));
        assert_eq!(parts.0["old@2.0.0"].license, "MIT OR Apache-2.0");
        assert!(parts.0["prewarm-api@0.1.0"].is_ours && !parts.0["anyhow@1.0.1"].is_ours);
    }

    #[test]
    fn the_program_for_clusters_has_no_demo_and_no_embedded_api_in_it() {
        let program: Program = "amd64=x86_64-unknown-linux-gnu=prewarm".parse().unwrap();
        let parts = Parts::of_programs(&[program]).unwrap();
        let names: BTreeSet<&str> = parts.0.values().map(|part| part.name.as_str()).collect();
        assert!(names.contains("prewarm-controller") && names.contains("kube"), "{names:?}");
        for left_out in ["prewarm-demo", "prewarm-embedded", "prewarm-image", "rcgen"] {
            assert!(!names.contains(left_out), "{left_out} is part of the program for clusters");
        }
        let known = parts.0.values().filter(|part| !part.is_ours);
        assert!(known.clone().all(|part| part.checksum.is_some() && !part.license.is_empty()));
    }
}
