//! Which suites run: those that are asked for by name, and those that depend on what has changed.
//!
//! Everything is built all the same: for a part, cargo would build other features of the dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::changed;
use super::options::{Options, Scope};
use super::suite::{Built, Suite};

pub struct Selection {
    /// A part of their names.
    only: Option<String>,
    /// The folders of the packages that something has changed for, if that matters.
    affected: Option<BTreeSet<PathBuf>>,
}

impl Selection {
    pub fn of(options: &Options) -> anyhow::Result<Self> {
        let affected = match options.scope {
            Scope::Changed => Some(changed::affected(crate::root())?),
            // Whoever has changed nothing wants to see whether all is well.
            Scope::Fast => Some(changed::affected(crate::root())?).filter(|affected| !affected.is_empty()),
            Scope::Everything => None,
        };
        Ok(Self { only: options.only.clone(), affected })
    }

    /// Whether suites are asked for by name.
    pub fn is_named(&self) -> bool {
        self.only.is_some()
    }

    /// Whether all of them run.
    pub fn is_everything(&self) -> bool {
        self.only.is_none() && self.affected.is_none()
    }

    /// A name that no suite has is a mistake.
    pub fn check(&self, built: Built) -> anyhow::Result<Built> {
        let part = self.only.as_deref().unwrap_or_default();
        ensure!(
            built.suites.iter().any(|suite| suite.title().contains(part)),
            "no suite has {part:?} in its name"
        );
        Ok(built)
    }

    /// Those that run.
    pub fn select(&self, mut suites: Vec<Suite>) -> Vec<Suite> {
        suites.retain(|suite| self.has_suite(suite));
        suites
    }

    /// The same, and names the others.
    pub fn name_rest(&self, suites: Vec<Suite>) -> Vec<Suite> {
        let rest = suites.iter().filter(|suite| !self.has_suite(suite)).map(Suite::title);
        let rest: Vec<String> = rest.collect();
        if !rest.is_empty() {
            println!("   not run: {}", rest.join(", "));
        }
        self.select(suites)
    }

    fn has_suite(&self, suite: &Suite) -> bool {
        let package = suite.package();
        self.has(&suite.title(), package.strip_prefix(crate::root()).unwrap_or(package))
    }

    fn has(&self, title: &str, folder: &Path) -> bool {
        let is_asked_for = self.only.as_deref().is_none_or(|part| title.contains(part));
        is_asked_for && self.affected.as_ref().is_none_or(|affected| affected.contains(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_selected_by_name() {
        let selection = Selection { only: Some("real_agent".to_owned()), affected: None };
        assert!(selection.has("prewarm/tests/real_agent", Path::new("crates/prewarm")));
        assert!(!selection.has("plan", Path::new("crates/plan")));
    }

    #[test]
    fn suites_are_selected_by_what_has_changed() {
        let affected = Some(BTreeSet::from(["crates/sim".into()]));
        let selection = Selection { only: None, affected };
        assert!(selection.has("sim/tests/whole", Path::new("crates/sim")));
        assert!(!selection.has("plan", Path::new("crates/plan")));
    }
}
