//! The admission corpus: good and bad objects, grouped by rule, each named by what it shows.
//!
//! Three judges get every case and must agree: `prewarm_api::validate`, the embedded API and a real
//! kube-apiserver with the generated definitions. The files are in `cases/`, one folder per kind; `README.md`
//! there says how they are written. The manifests of the guide are cases, too. This crate only reads them: it knows no judge.

mod file;
mod guide;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// One object and the verdict it should get.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file it stands in, relative to `cases/`.
    pub file: String,
    /// The rule that the file is about.
    pub rule: String,
    /// What the case shows.
    pub name: String,
    /// The object, in the version it is sent in.
    pub object: Value,
    /// The object that it replaces, for cases about updates.
    pub old: Option<Value>,
    /// What every judge should say.
    pub verdict: Verdict,
    /// What the server alone says, where it may differ, and why.
    pub difference: Option<Difference>,
}

/// What a judge should say about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The object is taken.
    Accept,
    /// The object is refused, and this path is among the causes.
    Refuse {
        /// Where it is wrong, such as `spec.images[0]`.
        at: String,
    },
}

/// A place where the server is allowed to say something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the server says.
    pub server: Verdict,
    /// Why that is as it should be.
    pub because: String,
}

impl Case {
    /// What the real server should say.
    pub fn server_verdict(&self) -> &Verdict {
        self.difference.as_ref().map_or(&self.verdict, |difference| &difference.server)
    }

    /// The case in one line, for messages.
    pub fn title(&self) -> String {
        let version = self.object.get("apiVersion").and_then(Value::as_str).unwrap_or("no version");
        format!("{} ({}, {version}): {}", self.file, self.rule, self.name)
    }
}

/// All cases, in the order of their files; a case of a kind with two versions appears once in each.
pub fn load() -> Result<Vec<Case>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut files = Vec::new();
    collect(&folder, &mut files).with_context(|| format!("cannot list {}", folder.display()))?;
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        cases.extend(file::parse(&name, &text).with_context(|| format!("cannot use {name}"))?);
    }
    cases.extend(guide::load()?);
    Ok(cases)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}
