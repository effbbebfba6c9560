//! The manifests of the guide: what people copy from it has to be taken.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{Case, Verdict};

const FILE: &str = "docs/guide.md";

/// Each block of YAML in the guide, as a case named by the heading above it.
pub(crate) fn load() -> Result<Vec<Case>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    let cases: Vec<Case> = blocks(&text).map(case).collect::<Result<_>>()?;
    ensure!(!cases.is_empty(), "{FILE} has no manifests");
    Ok(cases)
}

fn case((heading, block): (&str, &str)) -> Result<Case> {
    let mut object: Value =
        serde_saphyr::from_str(block).with_context(|| format!("{FILE}, below {heading:?}"))?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // Judges have a namespace of their own.
        metadata.remove("namespace");
    }
    Ok(Case {
        file: FILE.to_owned(),
        rule: "the guide".to_owned(),
        name: heading.to_owned(),
        object,
        old: None,
        verdict: Verdict::Accept,
        difference: None,
    })
}

/// The blocks of YAML, each with the last heading before it.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("\n```yaml\n").filter_map(|(at, fence)| {
        let rest = &text[at + fence.len()..];
        let heading = text[..at].rsplit("\n## ").next()?.lines().next()?;
        Some((heading, &rest[..rest.find("\n```")?]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_of_the_guide_has_its_manifest() {
        let names: Vec<String> = load().unwrap().into_iter().map(|case| case.name).collect();
        let numbers: Vec<&str> = names.iter().filter_map(|name| name.split('.').next()).collect();
        assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "6", "6"]);
    }
}
