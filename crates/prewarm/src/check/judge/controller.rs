//! The controller: which process leads and since when, whether it can be scraped.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;

use super::policies;
use crate::check::facts::{Asked, Facts};
use crate::check::report::{Finding, Section};
use crate::reach::SeenLease;
use crate::show;

const SECTION: Section = Section::Controller;

pub fn judge(facts: &Facts) -> Vec<Finding> {
    let now = facts.clocks.1.unwrap_or(facts.clocks.0);
    let mut findings = vec![deployment(&facts.deployments), leader(&facts.lease, &facts.installed_in, now)];
    findings.extend(policies::judge(facts));
    findings.extend(facts.scrapes.iter().map(|(pod, answer)| scrape(SECTION, pod, answer)));
    findings
}

fn deployment(deployments: &Asked<Vec<Deployment>>) -> Finding {
    let deployments = match deployments {
        Ok(deployments) => deployments,
        Err(why) => return Finding::unknown(SECTION, "the controller's Deployment", why),
    };
    let Some(deployment) = deployments.first() else {
        return Finding::bad(
            SECTION,
            "no controller is installed",
            "docs/install.md, or try another --context",
        );
    };
    let (name, namespace) = (deployment.name_any(), deployment.namespace().unwrap_or_default());
    let status = deployment.status.clone().unwrap_or_default();
    let (ready, wanted) = (
        status.ready_replicas.unwrap_or_default(),
        deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
    );
    if ready >= wanted && wanted > 0 {
        return Finding::good(SECTION, format!("{ready} of {wanted} pods of {namespace}/{name} are ready"));
    }
    let why = status.conditions.iter().flatten().find(|condition| condition.status == "False");
    let why =
        why.and_then(|condition| condition.message.clone()).map(|why| format!(": {why}")).unwrap_or_default();
    let what = format!("{ready} of {wanted} pods of {namespace}/{name} are ready{why}");
    let step = format!("kubectl -n {namespace} describe pods -l app.kubernetes.io/name=prewarm-controller");
    if ready == 0 { Finding::bad(SECTION, what, step) } else { Finding::warning(SECTION, what, step) }
}

fn leader(lease: &Asked<SeenLease>, namespace: &str, now: Timestamp) -> Finding {
    let lease = match lease {
        Ok(lease) => lease,
        Err(why) => return Finding::unknown(SECTION, "the Lease", why),
    };
    let spec = lease.now.as_ref().and_then(|lease| lease.spec.as_ref());
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let logs = format!(
        "look at the controllers' logs: kubectl -n {namespace} logs -l app.kubernetes.io/name=prewarm-controller"
    );
    match (holder, lease.has_changed) {
        ("", _) => Finding::bad(SECTION, "no controller leads", logs),
        (holder, true) => {
            let since = spec.and_then(|spec| spec.acquire_time.as_ref()).map(|time| show::ago(time.0, now));
            Finding::good(SECTION, format!("{holder} has been leading for {}", since.unwrap_or_default()))
        }
        (holder, false) => Finding::bad(
            SECTION,
            format!("{holder} holds the Lease and does not renew it; another takes over within 20 s"),
            logs,
        ),
    }
}

/// Whether the metrics of a pod can be had, of either program.
pub fn scrape(section: Section, pod: &str, answer: &Asked<()>) -> Finding {
    match answer {
        Ok(()) => Finding::good(section, format!("{pod} answers a scrape of its metrics")),
        Err(why) => Finding::warning(
            section,
            format!("the metrics of {pod} cannot be reached from the API server: {why}"),
            "a NetworkPolicy may allow only Prometheus; then this is as intended",
        ),
    }
}
