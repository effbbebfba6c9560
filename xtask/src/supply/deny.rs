//! Calls of cargo-deny, and what it says. Warnings count as errors, so that `deny.toml` names nothing that is gone.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::{Finding, reason};

/// What `refused.json` is refused for: a licence, a crate and a source that nobody may use.
const REFUSALS: [&str; 3] = ["rejected", "banned", "source-not-allowed"];

/// The program.
pub struct Deny {
    pub program: PathBuf,
}

impl Deny {
    /// Licences, bans and sources.
    pub fn judge(&self) -> anyhow::Result<Vec<Finding>> {
        self.check(&["--locked"], &["licenses", "bans", "sources"])
    }

    /// Fails if the rules let a package through that breaks them. A guard that lets everything through would look the same
    /// as a tree without faults.
    pub fn refuses_what_it_should(&self) -> anyhow::Result<()> {
        let package = crate::root().join("xtask/src/supply/refused.json");
        let package = package.to_str().context("the path of the tree is no text")?;
        let flags = ["--offline", "--metadata-path", package];
        let found = self.check(&flags, &["licenses", "bans", "sources"])?;
        for code in REFUSALS {
            ensure!(
                found.iter().any(|finding| finding.code == code),
                "deny.toml lets through what is {code}"
            );
        }
        Ok(())
    }

    /// Brings the database of advisories up to date. The error says in one line why that is impossible.
    pub fn fetch_advisories(&self) -> anyhow::Result<()> {
        let mut command = self.command(&[]);
        // Without a terminal, git would fail only after it has asked for a name.
        let output = command.args(["fetch", "db"]).env("GIT_TERMINAL_PROMPT", "0").output();
        let output = output.context("starting cargo-deny")?;
        if !output.status.success() {
            bail!("{}", reason(&String::from_utf8_lossy(&output.stderr)));
        }
        Ok(())
    }

    /// Advisories, by the database as it was fetched. Yanked crates are looked up by other means in any case.
    pub fn advisories(&self) -> anyhow::Result<Vec<Finding>> {
        self.check(
            &["--locked", "--offline"],
            &["--allow", "yanked", "--allow", "index-failure", "advisories"],
        )
    }

    fn check(&self, flags: &[&str], what: &[&str]) -> anyhow::Result<Vec<Finding>> {
        let mut command = self.command(&["--format", "json"]);
        command.args(flags).args(["check", "--deny", "warnings"]).args(what);
        let output = command.output().context("starting cargo-deny")?;
        let found = findings(&String::from_utf8_lossy(&output.stderr))?;
        ensure!(output.status.success() || !found.is_empty(), "cargo-deny failed and did not say why");
        Ok(found)
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(crate::root()).stdin(Stdio::null()).args(["--color", "never"]).args(flags);
        command
    }
}

/// Reads what it says, one JSON object a line. At the end stands a summary, unless it could not do its work.
fn findings(output: &str) -> anyhow::Result<Vec<Finding>> {
    let messages: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !messages.iter().any(|message| message["type"] == "summary") {
        let logged = messages.iter().rev().find_map(|message| message["fields"]["message"].as_str());
        bail!("cargo-deny could not finish: {}", logged.map_or_else(|| reason(output), str::to_owned));
    }
    let diagnostics = messages.iter().filter(|message| message["type"] == "diagnostic");
    Ok(diagnostics.filter_map(|message| finding(&message["fields"])).collect())
}

fn finding(fields: &Value) -> Option<Finding> {
    if fields["severity"] != "error" {
        return None;
    }
    let mut parts = vec![fields["message"].as_str()?.to_owned()];
    parts.extend(fields["advisory"]["id"].as_str().map(str::to_owned));
    // What a person would see underlined: a licence, a source, a line of deny.toml.
    for label in fields["labels"].as_array().into_iter().flatten() {
        let (what, place) = (label["message"].as_str()?, label["span"].as_str()?);
        if !what.is_empty() {
            parts.push(format!("{what}: {}", place.replace('\n', ", ")));
        }
    }
    parts.extend(fields["graphs"].as_array().into_iter().flatten().map(way));
    let code = fields["code"].as_str().unwrap_or("error").to_owned();
    Some(Finding { code, text: parts.join("; ") })
}

/// One of the ways by which a crate got into the tree: `ring 0.17.14 ← rustls 0.23.46 ← prewarm 0.1.0`.
fn way(graph: &Value) -> String {
    let krate = &graph["Krate"];
    let name = |field: &str| krate[field].as_str().unwrap_or_default().to_owned();
    let here = format!("{} {}", name("name"), name("version"));
    match graph["parents"].as_array().and_then(|parents| parents.first()) {
        Some(parent) => format!("{here} ← {}", way(parent)),
        None => here,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REJECTED: &str = r#"{"type":"diagnostic","fields":{"code":"rejected","severity":"error","message":"failed to satisfy license requirements","labels":[{"message":"","span":"GPL-3.0-only"},{"message":"rejected: license is not explicitly allowed","span":"GPL-3.0-only"}],"graphs":[{"Krate":{"name":"copyleft","version":"1.0.0"},"parents":[{"Krate":{"name":"between","version":"2.0.0"},"parents":[{"Krate":{"name":"ours","version":"0.1.0"}}]}]}]}}"#;
    const ACCEPTED: &str = r#"{"type":"diagnostic","fields":{"code":"accepted","severity":"help","message":"license requirements satisfied","labels":[]}}"#;
    const SUMMARY: &str = r#"{"type":"summary","fields":{"licenses":{"errors":1}}}"#;
    const LOG: &str = r#"{"type":"log","fields":{"level":"ERROR","message":"failed to open deny.toml"}}"#;

    #[test]
    fn a_finding_says_what_and_by_which_way_it_came() {
        let found = findings(&[REJECTED, ACCEPTED, SUMMARY].join("\n")).unwrap();
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        let wanted = "rejected: failed to satisfy license requirements; rejected: license is not explicitly allowed: \
                      GPL-3.0-only; copyleft 1.0.0 ← between 2.0.0 ← ours 0.1.0";
        assert_eq!(lines, [wanted]);
    }

    #[test]
    fn an_advisory_is_named_by_its_number() {
        let advisory = r#"{"type":"diagnostic","fields":{"code":"vulnerability","severity":"error","message":"It folds too much","labels":[],"advisory":{"id":"RUSTSEC-2099-0001"}}}"#;
        let found = findings(&[advisory, SUMMARY].join("\n")).unwrap();
        assert_eq!(found[0].to_string(), "vulnerability: It folds too much; RUSTSEC-2099-0001");
    }

    #[test]
    fn a_tree_without_faults_has_no_findings() {
        assert_eq!(findings(&[ACCEPTED, LOG, SUMMARY].join("\n")).unwrap(), []);
    }

    #[test]
    fn without_a_summary_nothing_was_judged() {
        let failure = |output: &str| findings(output).unwrap_err().to_string();
        assert_eq!(failure(LOG), "cargo-deny could not finish: failed to open deny.toml");
        assert_eq!(failure("error: no such flag"), "cargo-deny could not finish: error: no such flag");
    }
}
