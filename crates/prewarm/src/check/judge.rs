//! What facts mean: each question a function, each answer a line with the next step. Nothing is asked of a cluster here.

mod agents;
mod controller;
mod definitions;
mod kubernetes;

use super::facts::Facts;
use super::report::Report;

/// When a check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before anything is installed.
    Before,
    /// Afterwards.
    After,
}

/// Judges everything that matters at a stage.
pub fn judge(facts: &Facts, stage: Stage) -> Report {
    let mut findings = kubernetes::judge(facts, stage);
    findings.extend(definitions::judge(facts, stage));
    if stage == Stage::After {
        findings.extend(controller::judge(facts));
        findings.extend(agents::judge(facts));
    }
    Report { findings }
}

#[cfg(test)]
mod tests;
