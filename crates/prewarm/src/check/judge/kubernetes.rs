//! The cluster itself: its version, the user's rights, the namespace, clocks, runtimes.

use std::collections::{BTreeMap, BTreeSet};

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
/// A heartbeat cannot come from the future; if it seems to, by more than this, the node's clock is ahead.
const MOST_AHEAD: SignedDuration = SignedDuration::from_secs(60);
/// A node renews its Lease every ten seconds, and stays ready for up to fifty more after it has stopped doing so. If a
/// ready node's Lease is older than this, its clock is behind.
const MOST_BEHIND: SignedDuration = SignedDuration::from_secs(90);
/// The most names that are listed.
const MOST_NAMES: usize = 5;
const SECTION: Section = Section::Kubernetes;
/// The label that sets which pods a namespace admits.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

pub fn judge(facts: &Facts, stage: Stage) -> Vec<Finding> {
    let mut findings = vec![version(&facts.version)];
    if stage == Stage::Before {
        findings.push(rights(&facts.rights));
    }
    findings.push(namespace(&facts.namespace, &facts.agents_in, stage));
    findings.push(runtimes(&facts.nodes));
    findings.push(own_clock(facts.clocks));
    findings.push(node_clocks(&facts.heartbeats, &facts.nodes, facts.clocks.1.unwrap_or(facts.clocks.0)));
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
fn namespace(namespace: &Asked<Option<Namespace>>, name: &str, stage: Stage) -> Finding {
    let namespace = match (namespace, stage) {
        (Err(why), _) => return Finding::unknown(SECTION, &format!("namespace {name}"), why),
        (Ok(Some(namespace)), _) => namespace,
        (Ok(None), Stage::Before) => {
            let what = format!(
                "namespace {name} does not exist yet; install.yaml creates it with the label {ENFORCE}=privileged, and for Helm \
                 docs/install.md says how"
            );
            return Finding::good(SECTION, what);
        }
        (Ok(None), Stage::After) => {
            let what = format!("namespace {name} does not exist");
            return Finding::bad(
                SECTION,
                what,
                "docs/install.md, or name another one: -n, --agent-namespace",
            );
        }
    };
    let step = format!("kubectl label namespace {name} --overwrite {ENFORCE}=privileged");
    match namespace.labels().get(ENFORCE).map(String::as_str) {
        Some("privileged") => Finding::good(SECTION, format!("namespace {name} admits the agents' pods")),
        None if stage == Stage::After => {
            Finding::good(SECTION, format!("namespace {name} enforces no pod security level of its own"))
        }
        None => Finding::warning(
            SECTION,
            format!(
                "namespace {name} has no label {ENFORCE}; if the cluster's default is stricter than privileged, it refuses the agents' pods"
            ),
            step,
        ),
        Some(level) => Finding::bad(
            SECTION,
            format!(
                "namespace {name} refuses the agents' pods: they mount the runtime's directory, and its level is {level}"
            ),
            step,
        ),
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
fn node_clocks(heartbeats: &Asked<Vec<Lease>>, nodes: &Asked<Vec<Node>>, now: Timestamp) -> Finding {
    let (heartbeats, nodes) = match (heartbeats, nodes) {
        (Ok(heartbeats), Ok(nodes)) => (heartbeats, nodes),
        (Err(why), _) | (_, Err(why)) => return Finding::unknown(SECTION, "the nodes' clocks", why),
    };
    let ready: BTreeSet<String> = nodes.iter().filter(|node| is_ready(node)).map(Node::name_any).collect();
    let wrong = |lease: &Lease| {
        let ahead = lease.spec.as_ref()?.renew_time.as_ref()?.0.duration_since(now);
        let (name, seconds) = (lease.name_any(), ahead.abs().as_secs());
        // The heartbeat of a node that is not ready may be old because the node is dead.
        let is_behind = -ahead > MOST_BEHIND && ready.contains(&name);
        if ahead > MOST_AHEAD {
            return Some(format!("{name} ({seconds} s ahead)"));
        }
        is_behind.then(|| format!("{name} ({seconds} s behind)"))
    };
    let wrong: Vec<String> = heartbeats.iter().filter_map(wrong).collect();
    if wrong.is_empty() {
        return Finding::good(SECTION, "the nodes' clocks agree with the server's");
    }
    Finding::warning(
        SECTION,
        format!("the clocks of these nodes are wrong: {}", show::names(&wrong, MOST_NAMES)),
        "synchronise them with a time server; deadlines and ages of pulls there are wrong by as much",
    )
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
