//! `cargo xtask supply`: whether dependencies are what `deny.toml` wants them to be. It is a step of the tests, too.
//!
//! Licences, bans and sources need no network once the crates are there. Whether a crate was yanked is in the index of
//! crates.io, and advisories are in a database on github.com: what cannot be had is named in one line, and is no failure.

mod deny;
mod yanked;

use std::env;
use std::fmt;

use anyhow::{Context as _, bail};

use crate::tools;
use deny::Deny;

/// Something about a dependency that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// A short fixed word for its kind, such as `rejected`.
    code: String,
    text: String,
}

/// What came of a look at the dependencies.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    found: Vec<Finding>,
    /// One line each: what could not be looked at, and why.
    not_looked_at: Vec<String>,
}

pub fn check() -> anyhow::Result<()> {
    let mut findings = yanked::look_up()?;
    match tools::deny::prepare() {
        Ok(program) => look(&Deny { program }, &mut findings)?,
        Err(error) => findings.add_missing(&format!("{error:#}"), is_ci()),
    }
    findings.conclude()
}

/// All that cargo-deny looks at.
fn look(deny: &Deny, findings: &mut Findings) -> anyhow::Result<()> {
    deny.refuses_what_it_should().context("trying the rules on a package that breaks them")?;
    findings.found.extend(deny.judge()?);
    match deny.fetch_advisories() {
        Ok(()) => findings.found.extend(deny.advisories()?),
        Err(error) => {
            findings.not_looked_at.push(format!("advisories: their database cannot be had ({error:#})"));
        }
    }
    Ok(())
}

fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

impl Findings {
    /// There is no cargo-deny. In CI nobody would read a line about it, so there it fails.
    fn add_missing(&mut self, why: &str, is_ci: bool) {
        let text = format!("licences, bans, sources and advisories: {why}");
        if is_ci {
            self.found.push(Finding { code: "not looked at".to_owned(), text });
        } else {
            self.not_looked_at.push(text);
        }
    }

    fn conclude(self) -> anyhow::Result<()> {
        for line in &self.not_looked_at {
            println!("   not looked at: {line}");
        }
        if self.found.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = self.found.iter().map(ToString::to_string).collect();
        bail!("{}", lines.join("\n   "))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.text)
    }
}

/// The line that says most in what cargo or git complains of: the innermost cause, or else the last error.
pub fn reason(complaints: &str) -> String {
    let lines: Vec<&str> = complaints.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let cause = lines.iter().rposition(|line| *line == "Caused by:").and_then(|place| lines.get(place + 1));
    let is_error = |line: &&&str| line.starts_with("error") || line.starts_with("fatal");
    let line = cause.or_else(|| lines.iter().rfind(is_error)).or(lines.last());
    line.map_or_else(|| "it did not say why".to_owned(), |line| (*line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_looked_at_is_no_failure() {
        let not_looked_at = vec!["advisories: their database cannot be had".to_owned()];
        assert!(Findings { found: Vec::new(), not_looked_at }.conclude().is_ok());
    }

    #[test]
    fn every_finding_is_named_in_the_failure() {
        let finding = |code: &str| Finding { code: code.to_owned(), text: "a 1.0.0".to_owned() };
        let found = vec![finding("rejected"), finding("yanked")];
        let failure = Findings { found, ..Findings::default() }.conclude().unwrap_err();
        assert_eq!(failure.to_string(), "rejected: a 1.0.0\n   yanked: a 1.0.0");
    }

    #[test]
    fn a_machine_without_cargo_deny_says_so_in_one_line_and_fails_in_ci() {
        let text = "licences, bans, sources and advisories: no registry".to_owned();
        let missing = |is_ci| {
            let mut findings = Findings::default();
            findings.add_missing("no registry", is_ci);
            findings
        };
        assert_eq!(missing(false), Findings { not_looked_at: vec![text.clone()], ..Findings::default() });
        let failure = missing(true).conclude().unwrap_err();
        assert_eq!(failure.to_string(), format!("not looked at: {text}"));
    }

    #[test]
    fn the_reason_is_the_innermost_cause_or_the_last_error() {
        let cargo = "error: failed to get config\n\nCaused by:\n  download failed\n\nCaused by:\n  [6] no such host\n";
        assert_eq!(reason(cargo), "[6] no such host");
        let git = "Cloning into 'advisory-db'...\nfatal: unable to access github.com\n\n";
        assert_eq!(reason(git), "fatal: unable to access github.com");
        let install = "error: failed to compile cargo-deny\nTo reuse those artifacts, set a variable.\n";
        assert_eq!(reason(install), "error: failed to compile cargo-deny");
        assert_eq!(reason(" \n"), "it did not say why");
    }
}
