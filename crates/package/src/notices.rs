//! The licences of all parts that others wrote, with their texts: most of them ask for that.
//!
//! Whoever lets one choose is taken at Apache-2.0, whose text is the same for all; that keeps the file a twentieth of the size.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::parts::{Part, Parts};

const CHOSEN: &str = "Apache-2.0";
/// How the names of files begin that have to go along with a crate, in small letters.
const LICENSES: [&str; 6] = ["license", "licence", "copying", "unlicense", "copyright", "notice"];
/// What that licence asks for besides its text.
const ATTRIBUTION: &str = "notice";
const RULE: &str = "------------------------------------------------------------------------";

/// What no crate brings: the libraries of the compiler and of the system, which are part of the program as well.
const HEAD: &str = "\
The program has in it parts of the standard library of Rust (MIT OR Apache-2.0, https://github.com/rust-lang/rust) and of the
GNU C Library (LGPL-2.1-or-later, https://www.gnu.org/software/libc). Its own source is public, so whoever has another version
of these can link it anew: `cargo xtask image`.

Besides, it is built with these parts, under these licences:

";

/// Where the files of a crate are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    folder: PathBuf,
    /// Crates of one repository have one licence; not all of them bring its text.
    repository: Option<String>,
}

/// The whole document.
pub fn render(parts: &Parts) -> anyhow::Result<String> {
    let sources = sources()?;
    let chosen = fs::read_to_string(crate::root().join("LICENSE")).context("reading LICENSE")?;
    let others: Vec<&Part> = parts.0.values().filter(|part| !part.is_ours).collect();
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for part in &others {
        let key = part.key();
        for text in texts_of(part, &sources, &chosen).with_context(|| format!("the licence of {key}"))? {
            let same =
                texts.iter_mut().find(|(known, _)| known.split_whitespace().eq(text.split_whitespace()));
            match same {
                Some((_, keys)) => keys.push(key.clone()),
                None => texts.push((text, vec![key.clone()])),
            }
        }
    }
    let mut document = String::from(HEAD);
    for part in &others {
        writeln!(document, "{:<40} {}", part.key(), part.license)?;
    }
    for (text, keys) in &texts {
        write!(document, "\n{RULE}\n{}\n{RULE}\n\n{}\n", wrap(keys), text.trim_end())?;
    }
    Ok(document)
}

/// The texts that have to go along with a crate.
fn texts_of(part: &Part, sources: &BTreeMap<String, Source>, chosen: &str) -> anyhow::Result<Vec<String>> {
    let source = sources.get(&part.key()).context("cargo does not know the crate")?;
    if may_be_chosen(&part.license) {
        let mut texts = vec![chosen.to_owned()];
        texts.extend(read(&source.folder, &[ATTRIBUTION])?);
        return Ok(texts);
    }
    let own = read(&source.folder, &LICENSES)?;
    if !own.is_empty() {
        return Ok(own);
    }
    let siblings = sources.values().filter(|other| other.repository == source.repository);
    for sibling in siblings.filter(|other| other.repository.is_some()) {
        let texts = read(&sibling.folder, &LICENSES)?;
        if !texts.is_empty() {
            return Ok(texts);
        }
    }
    bail!("{} has no text of {}", source.folder.display(), part.license)
}

/// Whether that licence alone is enough. Alternatives are joined by OR; whatever has to be kept besides is joined by AND.
fn may_be_chosen(license: &str) -> bool {
    !license.contains(" AND ") && license.split(" OR ").any(|choice| choice.trim() == CHOSEN)
}

/// The texts of the files in a folder whose names begin with one of these.
fn read(folder: &Path, beginnings: &[&str]) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_file() && beginnings.iter().any(|beginning| name.starts_with(beginning)) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let text =
        |path: &PathBuf| fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    paths.iter().map(text).collect()
}

/// Where cargo keeps each crate, by `name@version`.
fn sources() -> anyhow::Result<BTreeMap<String, Source>> {
    let mut command = Command::new("cargo");
    command.current_dir(crate::root()).args(["metadata", "--locked", "--format-version", "1"]);
    let output = command.output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("reading what cargo says")?;
    let source = |package: &Value| {
        let text = |field: &str| package[field].as_str();
        let key = format!("{}@{}", text("name")?, text("version")?);
        let folder = Path::new(text("manifest_path")?).parent()?.to_owned();
        Some((key, Source { folder, repository: text("repository").map(str::to_owned) }))
    };
    Ok(metadata["packages"].as_array().into_iter().flatten().filter_map(source).collect())
}

/// Names, as many in a line as fit.
fn wrap(keys: &[String]) -> String {
    let mut lines = vec![String::new()];
    for key in keys {
        let line = lines.last_mut().expect("there is a first line");
        if line.len() + key.len() > RULE.len() && !line.is_empty() {
            lines.push(key.clone());
        } else {
            *line = if line.is_empty() { key.clone() } else { format!("{line} {key}") };
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_licence_is_enough_where_there_is_a_choice() {
        for license in ["Apache-2.0", "MIT OR Apache-2.0", "Apache-2.0 OR ISC OR MIT"] {
            assert!(may_be_chosen(license), "{license}");
        }
        for license in ["MIT", "Apache-2.0 AND ISC", "(Apache-2.0 OR MIT) AND BSD-3-Clause"] {
            assert!(!may_be_chosen(license), "{license}");
        }
    }

    #[test]
    fn every_part_has_the_text_of_its_licence() {
        let program = "amd64=x86_64-unknown-linux-gnu=prewarm".parse().unwrap();
        let parts = Parts::of_programs(&[program]).unwrap();
        let document = render(&parts).unwrap();
        for part in parts.0.values().filter(|part| !part.is_ours) {
            // In the list, and above a text.
            assert!(document.matches(&part.key()).count() > 1, "{}", part.key());
        }
        // The same text is there once, however many have it.
        assert!(document.len() < 200_000, "{} bytes", document.len());
        assert!(document.contains("Permission is hereby granted, free of charge"));
        assert!(!document.contains("prewarm-controller"));
    }

    #[test]
    fn a_crate_without_a_text_takes_that_of_its_repository() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["one", "two", "three"].map(|name| place.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        fs::write(folders[0].join("LICENSE-MIT"), "Copyright (c) somebody").unwrap();
        let source = |folder: &PathBuf, repository: &str| Source {
            folder: folder.clone(),
            repository: Some(repository.to_owned()),
        };
        let sources = BTreeMap::from([
            ("one@1.0.0".to_owned(), source(&folders[0], "here")),
            ("two@1.0.0".to_owned(), source(&folders[1], "here")),
            ("three@1.0.0".to_owned(), source(&folders[2], "there")),
        ]);
        let part = |name: &str| Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: "MIT".to_owned(),
            is_ours: false,
            checksum: None,
            needs: std::collections::BTreeSet::new(),
        };
        assert_eq!(texts_of(&part("two"), &sources, "").unwrap(), ["Copyright (c) somebody"]);
        let error = texts_of(&part("three"), &sources, "").unwrap_err().to_string();
        assert!(error.contains("has no text of MIT"), "{error}");
    }
}
