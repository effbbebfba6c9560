//! The cluster itself: its version, the user's rights, the namespace, clocks, runtimes.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::ResourceExt as _;

use super::Stage;
use crate::check::facts::{Asked, Facts, Right};
use crate::check::report::{Finding, Section};
use crate::show;

/// The oldest Kubernetes version that is supported.
const OLDEST: (u32, u32) = (1, 30);
/// Clocks may differ by at most this.
const MOST_SKEW: SignedDuration = SignedDuration::from_secs(10);
/// A node's Lease is renewed every ten seconds. If its time is further away than this, the node is dead or has
/// another clock.
const MOST_HEARTBEAT_SKEW: SignedDuration = SignedDuration::from_secs(60);
/// The most names that are listed.
const MOST_NAMES: usize = 5;
const SECTION: Section = Section::Kubernetes;
/// The label that sets which pods a namespace admits.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

pub fn judge(facts: &Facts, stage: Stage) -> Vec<Finding> {
    let mut findings = vec![version(&facts.version)];
    if stage == Stage::Before {
        findings.push(rights(&facts.rights));
        findings.push(namespace(&facts.namespace));
    }
    findings.push(runtimes(&facts.nodes));
    findings.push(own_clock(facts.clocks));
    findings.push(node_clocks(&facts.heartbeats, facts.clocks.1.unwrap_or(facts.clocks.0)));
    findings
}

fn version(version: &Asked<String>) -> Finding {
    let text = match version {
        Ok(text) => text,
        Err(why) => return Finding::unknown(SECTION, "the version", why),
    };
    let number =
        |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>();
    let parsed =
        text.split_once('.').and_then(|(major, minor)| Some((number(major).ok()?, number(minor).ok()?)));
    match parsed {
        Some(parsed) if parsed >= OLDEST => Finding::good(SECTION, format!("Kubernetes {text}")),
        Some(_) => Finding::bad(
            SECTION,
            format!(
                "Kubernetes {text} is too old: the policy that restricts agents to their own nodes needs 1.30"
            ),
            "upgrade the cluster first",
        ),
        None => Finding::warning(
            SECTION,
            format!("the version {text:?} cannot be read"),
            "make sure that it is 1.30 or newer",
        ),
    }
}

fn rights(rights: &[Right]) -> Finding {
    let lacking: Vec<&str> = rights
        .iter()
        .filter(|right| right.is_allowed == Ok(false))
        .map(|right| right.what.as_str())
        .collect();
    if let Some((what, why)) =
        rights.iter().find_map(|right| Some((&right.what, right.is_allowed.as_ref().err()?)))
    {
        return Finding::unknown(SECTION, &format!("whether you may {what}"), why);
    }
    if lacking.is_empty() {
        return Finding::good(SECTION, "you may install everything");
    }
    Finding::bad(
        SECTION,
        format!("you may not {}", lacking.join(", ")),
        "install as a user who may, such as a cluster-admin",
    )
}

/// Agents mount a directory of the host, which only the privileged level admits.
fn namespace(namespace: &Asked<Option<Namespace>>) -> Finding {
    match namespace {
        Err(why) => Finding::unknown(SECTION, "the namespace", why),
        Ok(None) => Finding::good(
            SECTION,
            "the namespace does not exist yet; install.yaml and `helm --create-namespace` make it",
        ),
        Ok(Some(namespace)) => {
            let name = namespace.name_any();
            match namespace.labels().get(ENFORCE).map(String::as_str) {
                None => Finding::good(
                    SECTION,
                    format!(
                        "namespace {name} admits the agents' pods, unless the cluster's default is stricter"
                    ),
                ),
                Some("privileged") => {
                    Finding::good(SECTION, format!("namespace {name} admits the agents' pods"))
                }
                Some(level) => Finding::bad(
                    SECTION,
                    format!(
                        "namespace {name} refuses the agents' pods: they mount the runtime's directory, and its level is {level}"
                    ),
                    format!("kubectl label namespace {name} --overwrite {ENFORCE}=privileged"),
                ),
            }
        }
    }
}

fn runtimes(nodes: &Asked<Vec<Node>>) -> Finding {
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(why) => return Finding::unknown(SECTION, "the nodes", why),
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for info in nodes.iter().filter_map(|node| node.status.as_ref()?.node_info.as_ref()) {
        *counts.entry(info.container_runtime_version.as_str()).or_default() += 1;
    }
    let listed: Vec<String> = counts.iter().map(|(runtime, count)| format!("{runtime} on {count}")).collect();
    let known = |runtime: &&str| runtime.starts_with("containerd://") || runtime.starts_with("cri-o://");
    let strange: Vec<&str> = counts.keys().copied().filter(|runtime| !known(runtime)).collect();
    let all = show::counted(nodes.len(), "node");
    if strange.is_empty() {
        return Finding::good(SECTION, format!("{all}: {}", listed.join(", ")));
    }
    Finding::warning(
        SECTION,
        format!("{all}: {}; only containerd and CRI-O are known to work", listed.join(", ")),
        format!("try one node with {} first", strange.join(" or ")),
    )
}

fn own_clock((here, there): (Timestamp, Option<Timestamp>)) -> Finding {
    let Some(there) = there else {
        return Finding::unknown(SECTION, "the server's clock", "its answer has no date");
    };
    let skew = here.duration_since(there).abs();
    if skew <= MOST_SKEW {
        return Finding::good(SECTION, "this machine's clock agrees with the server's");
    }
    Finding::warning(
        SECTION,
        format!("this machine's clock and the server's differ by {} s", skew.as_secs()),
        "ages that `prewarm` shows are wrong by as much; correct one of the clocks",
    )
}

/// Deadlines and reports contain times of nodes.
fn node_clocks(heartbeats: &Asked<Vec<Lease>>, now: Timestamp) -> Finding {
    let heartbeats = match heartbeats {
        Ok(heartbeats) => heartbeats,
        Err(why) => return Finding::unknown(SECTION, "the nodes' clocks", why),
    };
    // A heartbeat in the past may come from a dead node; one in the future shows a fast clock.
    let is_ahead = |lease: &&Lease| {
        let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
        renewed.is_some_and(|time| time.0.duration_since(now) > MOST_HEARTBEAT_SKEW)
    };
    let fast: Vec<String> = heartbeats.iter().filter(is_ahead).map(kube::ResourceExt::name_any).collect();
    if fast.is_empty() {
        return Finding::good(SECTION, "no node's clock is ahead of the server's");
    }
    Finding::warning(
        SECTION,
        format!("the clocks of these nodes are more than a minute ahead: {}", show::names(&fast, MOST_NAMES)),
        "synchronise them with a time server; pulls there may look as if they had not ended",
    )
}
