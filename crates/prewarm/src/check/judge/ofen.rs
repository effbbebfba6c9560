//! What is there of ofen, whose kinds Prewarm serves, too. Both must not run at once (`docs/compatibility.md`).

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::ResourceExt as _;

use super::Stage;
use crate::check::facts::Facts;
use crate::check::report::{Finding, Section};
use crate::reach::SeenLease;

const SECTION: Section = Section::Definitions;
/// The group of its kinds.
pub const GROUP: &str = "ofen.cybozu.io";
const GUIDE: &str = "docs/compatibility.md";

pub fn judge(facts: &Facts) -> Vec<Finding> {
    let controller = match (&facts.ofen_deployments, &facts.ofen_lease) {
        (Err(why), _) | (_, Err(why)) => Some(Finding::unknown(SECTION, "ofen's controller", why)),
        (Ok(deployments), Ok(lease)) => controller(deployments, lease),
    };
    let daemons = match &facts.ofen_daemons {
        // The line about daemons of others says so.
        Err(_) => None,
        Ok(daemons) => daemons.first().map(daemon),
    };
    let findings: Vec<Finding> = controller.into_iter().chain(daemons).collect();
    if findings.is_empty() {
        return vec![Finding::good(SECTION, "neither controller nor agent of ofen is running")];
    }
    findings
}

fn controller(deployments: &[Deployment], lease: &SeenLease) -> Option<Finding> {
    let wants_pods = |deployment: &&Deployment| {
        deployment.spec.as_ref().and_then(|spec| spec.replicas).is_none_or(|replicas| replicas > 0)
    };
    let running = deployments.iter().find(wants_pods);
    let why = "it and Prewarm's controller undo each other's NodeImageSets, and both must not run at once";
    match running {
        Some(deployment) => {
            let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
            Some(Finding::warning(
                SECTION,
                format!("ofen's controller {namespace}/{name} is installed: {why}"),
                format!("kubectl -n {namespace} scale deployment {name} --replicas 0; {GUIDE}"),
            ))
        }
        None if lease.has_changed => Some(Finding::warning(
            SECTION,
            format!("ofen's controller leads as {}: {why}", lease.holder()),
            format!("find its pod and stop what runs it; {GUIDE}"),
        )),
        None => None,
    }
}

fn daemon(daemon: &DaemonSet) -> Finding {
    let (namespace, name) = (daemon.namespace().unwrap_or_default(), daemon.name_any());
    Finding::warning(
        SECTION,
        format!(
            "the daemons of {namespace}/{name} pull what NodeImageSets say, as the agents do; both must not run at once"
        ),
        format!("kubectl -n {namespace} delete daemonset {name}; {GUIDE}"),
    )
}

/// Its kinds, if they are not defined. Nothing else needs them.
pub fn left_out(kinds: &[String], stage: Stage) -> Option<Finding> {
    let all = kinds.join(" and ");
    match (kinds, stage) {
        ([], _) => None,
        (_, Stage::Before) => Some(Finding::good(SECTION, format!("optional, and not installed yet: {all}"))),
        ([_, _, ..], Stage::After) => Some(Finding::good(SECTION, format!("optional, and left out: {all}"))),
        ([_], Stage::After) => Some(Finding::warning(
            SECTION,
            format!("{all} is not defined and the other kind of ofen's is; nothing acts on that one alone"),
            "prewarm crds imageprefetches nodeimagesets | kubectl apply --server-side -f -",
        )),
    }
}
