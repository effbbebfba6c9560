//! What a check found, line by line.

use std::fmt::Write as _;

use serde::Serialize;

use crate::answer::Exit;
use crate::show::{self, Look};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub section: Section,
    pub verdict: Verdict,
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, but somebody should know.
    Warning,
    /// It does not work.
    Bad,
}

/// The subject of a finding, in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// The cluster itself.
    Kubernetes,
    /// The definitions, and whatever interferes with them.
    Definitions,
    /// The controller.
    Controller,
    /// The agents and their nodes.
    Agents,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Kubernetes => "Kubernetes",
            Self::Definitions => "Definitions",
            Self::Controller => "Controller",
            Self::Agents => "Agents",
        }
    }
}

impl Finding {
    pub fn good(section: Section, what: impl Into<String>) -> Self {
        Self { section, verdict: Verdict::Good, what: what.into(), next_step: None }
    }

    pub fn warning(section: Section, what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { section, verdict: Verdict::Warning, what: what.into(), next_step: Some(next_step.into()) }
    }

    pub fn bad(section: Section, what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { section, verdict: Verdict::Bad, what: what.into(), next_step: Some(next_step.into()) }
    }

    /// A fact that could not be read.
    pub fn unknown(section: Section, what: &str, why: &str) -> Self {
        let next_step = "ask a user with the rights, or try another --context";
        Self::warning(section, format!("{what} could not be read: {why}"), next_step)
    }
}

#[derive(Debug, Serialize)]
pub struct Report {
    /// In the order of the output.
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn worst(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Good)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

impl show::Report for Report {
    fn text(&self, look: Look) -> String {
        let mut text = String::new();
        let mut section = None;
        for finding in &self.findings {
            if section.replace(finding.section) != Some(finding.section) {
                let gap = if text.is_empty() { "" } else { "\n" };
                let _infallible = writeln!(text, "{gap}{}", finding.section.title());
            }
            let _infallible = writeln!(text, "{} {}", mark(finding.verdict, look), finding.what);
            if let Some(step) = &finding.next_step {
                let _infallible = writeln!(text, "    → {step}");
            }
        }
        let [good, warnings, bad] =
            [Verdict::Good, Verdict::Warning, Verdict::Bad].map(|verdict| self.count(verdict));
        let _infallible = writeln!(text, "\n{good} ✓  {warnings} ‼  {bad} ✗");
        text
    }

    fn names(&self) -> Vec<String> {
        self.findings.iter().filter(|it| it.verdict != Verdict::Good).map(|it| it.what.clone()).collect()
    }

    fn exit(&self) -> Exit {
        Exit::found(self.worst() == Verdict::Bad)
    }
}

fn mark(verdict: Verdict, look: Look) -> String {
    let (mark, colour) = match verdict {
        Verdict::Good => ('✓', 32),
        Verdict::Warning => ('‼', 33),
        Verdict::Bad => ('✗', 31),
    };
    if look.is_coloured { format!("\u{1b}[{colour}m{mark}\u{1b}[0m") } else { mark.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::Report as _;

    #[test]
    fn findings_stand_under_their_sections_with_the_next_step_below() {
        let findings = vec![
            Finding::good(Section::Kubernetes, "the server answers"),
            Finding::warning(Section::Agents, "one is late", "wait"),
            Finding::bad(Section::Agents, "one is dead", "look at its log"),
        ];
        let report = Report { findings };
        let text = "Kubernetes\n✓ the server answers\n\nAgents\n‼ one is late\n    → wait\n✗ one is dead\n    → look at \
                    its log\n\n1 ✓  1 ‼  1 ✗\n";
        assert_eq!(report.text(Look::default()), text);
        assert_eq!(report.worst(), Verdict::Bad);
        assert_eq!(report.names(), ["one is late", "one is dead"]);
    }
}
