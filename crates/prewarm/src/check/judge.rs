//! What the facts mean: one function per question, one line with the next step per answer. The cluster is not asked
//! here.

mod agents;
mod controller;
mod definitions;
mod kubernetes;
mod ofen;
mod openkruise;
mod policies;

use k8s_openapi::api::core::v1::PodSpec;

use super::facts::Facts;
use super::report::Report;

/// When a check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before anything is installed.
    Before,
    /// After the installation.
    After,
}

pub fn judge(facts: &Facts, stage: Stage) -> Report {
    let mut findings = kubernetes::judge(facts, stage);
    findings.extend(definitions::judge(facts, stage));
    if stage == Stage::After {
        findings.extend(controller::judge(facts));
        findings.extend(agents::judge(facts));
    }
    Report { findings }
}

/// The arguments of all containers.
fn arguments(pod: &PodSpec) -> impl Iterator<Item = &str> {
    pod.containers.iter().flat_map(|container| container.args.iter().flatten()).map(String::as_str)
}

#[cfg(test)]
mod tests;
