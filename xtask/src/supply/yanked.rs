//! Whether a crate of `Cargo.lock` was yanked, as the index says.
//!
//! cargo-deny can tell, too, but not without the database of advisories. So cargo brings its copy of the index up to date, in
//! whatever way it is set up to reach crates.io, and each version is looked up in that copy.
//!
//! ```text
//! HOME/registry/index/index.crates.io-1949cf8c6b5b557f/.cache/se/rd/serde
//!   a header ␀ 1.0.0 ␀ {"vers": "1.0.0", "yanked": false, …} ␀ 1.0.1 ␀ {…} ␀
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{Finding, Findings, reason};
use crate::cargo;

/// One version of a crate that is used.
#[derive(Debug, PartialEq, Eq)]
struct Locked<'a> {
    name: &'a str,
    version: &'a str,
}

/// Looks up all crates. A copy that could not be brought up to date is looked at all the same.
pub fn look_up() -> anyhow::Result<Findings> {
    let lock = fs::read_to_string(crate::root().join("Cargo.lock")).context("reading Cargo.lock")?;
    let refreshed = refresh();
    let indexes = indexes(&cargo::home()?);
    let mut findings = judge(&locked(&lock), |path| {
        indexes.iter().filter_map(|index| fs::read(index.join(path)).ok()).collect()
    });
    if let Err(error) = refreshed {
        let line = format!("crates that were yanked lately: the index cannot be had ({error:#})");
        findings.not_looked_at = vec![line];
    }
    Ok(findings)
}

/// Resolving everything anew asks the index for every crate, and a dry run writes nothing but cargo's copy of it.
fn refresh() -> anyhow::Result<()> {
    let output = cargo::cargo().current_dir(crate::root()).args(["update", "--dry-run"]).output();
    let output = output.context("starting cargo")?;
    if !output.status.success() {
        bail!("{}", reason(&String::from_utf8_lossy(&output.stderr)));
    }
    Ok(())
}

/// Cargo's copies of indexes: one, unless cargo was once set up otherwise.
fn indexes(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join("registry/index")).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(".cache")).filter(|cache| cache.is_dir()).collect()
}

/// The crates of a lock file that come from a registry.
fn locked(lock: &str) -> Vec<Locked<'_>> {
    lock.split("[[package]]").filter_map(read).collect()
}

fn read(package: &str) -> Option<Locked<'_>> {
    let field = |name: &str| {
        let mut lines = package.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
    };
    field("source").filter(|source| source.starts_with("registry+"))?;
    Some(Locked { name: field("name")?, version: field("version")? })
}

/// Finds the yanked ones. There may be several entries for a crate, of which any may say so.
fn judge(locked: &[Locked<'_>], entries: impl Fn(&str) -> Vec<Vec<u8>>) -> Findings {
    let mut findings = Findings::default();
    let mut unknown = Vec::new();
    for Locked { name, version } in locked {
        let answers: Vec<bool> =
            entries(&place(name)).iter().filter_map(|entry| is_yanked(entry, version)).collect();
        if answers.contains(&true) {
            let text = format!("{name} {version} was yanked from crates.io: `cargo update {name}`");
            findings.found.push(Finding { code: "yanked".to_owned(), text });
        } else if answers.is_empty() {
            unknown.push(format!("{name} {version}"));
        }
    }
    if let Some(first) = unknown.first() {
        let line =
            format!("whether {} crates were yanked: cargo's copy of the index has no {first}", unknown.len());
        findings.not_looked_at.push(line);
    }
    findings
}

/// Where an index has its entry for a crate.
fn place(name: &str) -> String {
    let name = name.to_lowercase();
    match name.len() {
        length @ (1 | 2) => format!("{length}/{name}"),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    }
}

/// What an entry says of a version, if it has it.
fn is_yanked(entry: &[u8], version: &str) -> Option<bool> {
    let mut parts = entry.split(|byte| *byte == 0);
    parts.find(|part| *part == version.as_bytes())?;
    let release: Value = serde_json::from_slice(parts.next()?).ok()?;
    release["yanked"].as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"version = 4

[[package]]
name = "ours"
version = "0.1.0"
dependencies = [
 "serde",
]

[[package]]
name = "serde"
version = "1.0.2"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"
"#;
    const ENTRY: &[u8] = b"\x03\x02\0\0\0Unknown\x001.0.1\0{\"vers\": \"1.0.1\", \"yanked\": false}\x001.0.2\0{\"vers\": \"1.0.2\", \"yanked\": true}\0";

    #[test]
    fn only_crates_of_a_registry_can_be_yanked() {
        assert_eq!(locked(LOCK), [Locked { name: "serde", version: "1.0.2" }]);
        let ours = fs::read_to_string(crate::root().join("Cargo.lock")).unwrap();
        assert!(locked(&ours).len() > 100);
    }

    #[test]
    fn a_yanked_version_is_a_finding() {
        let findings = judge(&locked(LOCK), |path| {
            assert_eq!(path, "se/rd/serde");
            vec![ENTRY.to_vec()]
        });
        let lines: Vec<String> = findings.found.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["yanked: serde 1.0.2 was yanked from crates.io: `cargo update serde`"]);
        assert!(findings.not_looked_at.is_empty());
    }

    #[test]
    fn another_version_that_was_yanked_is_none() {
        let used = [Locked { name: "serde", version: "1.0.1" }];
        assert_eq!(judge(&used, |_| vec![ENTRY.to_vec()]), Findings::default());
    }

    #[test]
    fn crates_that_the_index_lacks_are_one_line() {
        let used = ["2.0.0", "3.0.0"].map(|version| Locked { name: "serde", version });
        for entries in [vec![ENTRY.to_vec()], vec![b"something else".to_vec()], Vec::new()] {
            let findings = judge(&used, |_| entries.clone());
            assert!(findings.found.is_empty());
            let line = "whether 2 crates were yanked: cargo's copy of the index has no serde 2.0.0";
            assert_eq!(findings.not_looked_at, [line]);
        }
    }

    #[test]
    fn entries_lie_where_the_index_has_them() {
        let places = ["a", "ab", "abc", "Inflector"].map(place);
        assert_eq!(places, ["1/a", "2/ab", "3/a/abc", "in/fl/inflector"]);
    }
}
