//! The agents: on how many nodes they are ready, and why not on the others.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec, Taint, Toleration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt as _, ResourceExt as _};
use prewarm_api::names::{LINUX, OS_LABEL};
use prewarm_api::ofen::ImagePrefetch;
use prewarm_api::permission::AGENT;

use super::arguments;
use super::controller::scrape;
use crate::agent::LOADING_PLUGINS;
use crate::check::facts::{Asked, Facts};
use crate::check::report::{Finding, Section};
use crate::show;

const SECTION: Section = Section::Agents;
/// The most names that are listed.
const MOST_NAMES: usize = 5;

pub fn judge(facts: &Facts) -> Vec<Finding> {
    let parts = (&facts.daemon_sets, &facts.nodes, &facts.pods);
    let (daemon_sets, nodes, pods) = match parts {
        (Ok(daemon_sets), Ok(nodes), Ok(pods)) => (daemon_sets, nodes, pods),
        (Err(why), _, _) | (_, Err(why), _) | (_, _, Err(why)) => {
            return vec![Finding::unknown(SECTION, "the agents", why)];
        }
    };
    let Some(daemon_set) = daemon_sets.first() else {
        let what = "no agents are installed, so nothing is pulled";
        return vec![Finding::bad(SECTION, what, "docs/install.md, or try another --context")];
    };
    let places = places(daemon_set, nodes, pods, &facts.probes);
    let mut findings = readiness(daemon_set, &places);
    findings.push(without_agent(&facts.node_images, &places));
    findings.push(plugins(daemon_set, pods));
    findings.extend(mirrors(daemon_set, nodes, &facts.definitions));
    findings.extend(facts.agent_scrapes.iter().map(|(pod, answer)| scrape(SECTION, pod, answer)));
    findings
}

/// The agent of one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Ready,
    /// The node is not supposed to have an agent, for this reason.
    Elsewhere(String),
    /// The node is supposed to have an agent, which is not ready for this reason.
    Missing(String),
}

fn places(
    daemon_set: &DaemonSet,
    nodes: &[Node],
    pods: &[Pod],
    probes: &BTreeMap<String, Asked<String>>,
) -> BTreeMap<String, Place> {
    let template = daemon_set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let of_node = |name: &str| {
        pods.iter().find(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(name))
    };
    let place = |node: &Node| {
        let name = node.name_any();
        let place = match (elsewhere(node, template), of_node(&name)) {
            (Some(reason), None) => Place::Elsewhere(reason),
            (_, Some(pod)) if is_ready(pod) => Place::Ready,
            (_, Some(pod)) => Place::Missing(trouble(pod, probes)),
            (None, None) => match untolerated(node, template) {
                Some(taint) => Place::Missing(format!("taint {taint} is not tolerated")),
                None => Place::Missing("its pod has not been created yet".to_owned()),
            },
        };
        (name, place)
    };
    nodes.iter().map(place).collect()
}

/// Why the DaemonSet does not cover a node.
fn elsewhere(node: &Node, template: Option<&PodSpec>) -> Option<String> {
    let labels = node.labels();
    if let Some(system) = labels.get(OS_LABEL).filter(|system| *system != LINUX) {
        return Some(format!("operating system {system}"));
    }
    let wanted = template.and_then(|template| template.node_selector.as_ref()).into_iter().flatten();
    let lacking = wanted
        .filter(|(key, value)| labels.get(*key) != Some(value))
        .map(|(key, value)| format!("{key}={value}"));
    let lacking: Vec<String> = lacking.collect();
    (!lacking.is_empty()).then(|| format!("no label {}", lacking.join(",")))
}

fn untolerated(node: &Node, template: Option<&PodSpec>) -> Option<String> {
    let tolerations = template.and_then(|template| template.tolerations.clone()).unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let keeps_away = |taint: &&Taint| {
        taint.effect != "PreferNoSchedule"
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    };
    taints.iter().find(keeps_away).map(|taint| format!("{}:{}", taint.key, taint.effect))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let is_same = |wanted: &Option<String>, have: &str| {
        wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == have)
    };
    let exists = toleration.operator.as_deref() == Some("Exists");
    is_same(&toleration.effect, &taint.effect)
        && is_same(&toleration.key, &taint.key)
        && (exists || toleration.value.clone().unwrap_or_default() == taint.value.clone().unwrap_or_default())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The agent's own message first, then the kubelet's, then the scheduler's.
fn trouble(pod: &Pod, probes: &BTreeMap<String, Asked<String>>) -> String {
    if let Some(Ok(words)) = probes.get(&pod.name_any()) {
        return words.lines().collect::<Vec<_>>().join("; ");
    }
    let status = pod.status.clone().unwrap_or_default();
    let waiting = status
        .container_statuses
        .iter()
        .flatten()
        .find_map(|container| container.state.as_ref()?.waiting.as_ref());
    if let Some(waiting) = waiting {
        let message = last_words(pod).or_else(|| waiting.message.clone());
        let message = message.map(|message| format!(": {message}")).unwrap_or_default();
        return format!("{}{message}", waiting.reason.as_deref().unwrap_or("waiting"));
    }
    let unscheduled = status.conditions.iter().flatten().find(|condition| condition.status == "False");
    let reason =
        unscheduled.and_then(|condition| condition.message.clone().or_else(|| condition.reason.clone()));
    reason.unwrap_or_else(|| "its pod is not ready yet".to_owned())
}

/// The last line of a container that has ended, which says why.
fn last_words(pod: &Pod) -> Option<String> {
    let containers = pod.status.as_ref()?.container_statuses.iter().flatten();
    let ends = containers.flat_map(|container| [container.state.as_ref(), container.last_state.as_ref()]);
    let words = ends.flatten().find_map(|state| state.terminated.as_ref()?.message.as_deref())?;
    words.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

fn readiness(daemon_set: &DaemonSet, places: &BTreeMap<String, Place>) -> Vec<Finding> {
    let (name, namespace) = (AGENT.name, daemon_set.namespace().unwrap_or_default());
    let ready = places.values().filter(|place| **place == Place::Ready).count();
    let elsewhere = places.values().filter(|place| matches!(place, Place::Elsewhere(_))).count();
    let meant = places.len() - elsewhere;
    let mut findings = Vec::new();
    if ready == meant {
        findings
            .push(Finding::good(SECTION, format!("{ready} of {} are ready", show::counted(meant, "agent"))));
    }
    for (reason, nodes) in grouped(places, |place| match place {
        Place::Missing(reason) => Some(reason),
        _ => None,
    }) {
        let what = format!(
            "{ready} of {} are ready; no agent is ready on {}: {reason}",
            show::counted(meant, "agent"),
            show::names(&nodes, MOST_NAMES)
        );
        let step = format!(
            "kubectl -n {namespace} get pods -l app.kubernetes.io/name={name} -o wide, then describe or logs of one that is not \
             ready"
        );
        let finding = if ready == 0 {
            Finding::bad(SECTION, what, step)
        } else {
            Finding::warning(SECTION, what, step)
        };
        findings.push(finding);
    }
    for (reason, nodes) in grouped(places, |place| match place {
        Place::Elsewhere(reason) => Some(reason),
        _ => None,
    }) {
        let what = format!(
            "{} without an agent ({reason}): {}; no job counts them",
            show::counted(nodes.len(), "node"),
            show::names(&nodes, MOST_NAMES)
        );
        findings.push(Finding::good(SECTION, what));
    }
    findings
}

/// Nodes by their common reason.
fn grouped(
    places: &BTreeMap<String, Place>,
    reason: impl Fn(&Place) -> Option<&String>,
) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (node, place) in places {
        if let Some(reason) = reason(place) {
            groups.entry(reason.clone()).or_default().push(node.clone());
        }
    }
    groups
}

fn without_agent(node_images: &Asked<Vec<String>>, places: &BTreeMap<String, Place>) -> Finding {
    let node_images = match node_images {
        Ok(names) => names,
        Err(why) => return Finding::unknown(SECTION, "NodeImages", why),
    };
    let meant: BTreeSet<&String> = places
        .iter()
        .filter(|(_, place)| !matches!(place, Place::Elsewhere(_)))
        .map(|(name, _)| name)
        .collect();
    let idle: Vec<String> = node_images.iter().filter(|name| !meant.contains(name)).cloned().collect();
    if idle.is_empty() {
        return Finding::good(SECTION, "every NodeImage has a node that an agent runs on");
    }
    Finding::warning(
        SECTION,
        format!("these NodeImages have no agent: {}", show::names(&idle, MOST_NAMES)),
        "a running controller deletes them unless they have the label of fake ones; jobs that name them wait",
    )
}

fn plugins(daemon_set: &DaemonSet, pods: &[Pod]) -> Finding {
    if let Some(words) = pods.iter().filter_map(last_words).find(|words| words.contains(LOADING_PLUGINS)) {
        return Finding::bad(
            SECTION,
            format!("agents do not start because of their credential plugins: {words}"),
            "correct credentialProvider.binDirectory and credentialProvider.configFile or .config; docs/agent.md",
        );
    }
    let has = |flag: &str| has_argument(daemon_set, flag);
    match (has("--image-credential-provider-config"), has("--image-credential-provider-bin-dir")) {
        (false, false) => {
            Finding::good(SECTION, "no credential plugins; pull secrets are used as jobs name them")
        }
        (true, true) => Finding::good(SECTION, "credential plugins are configured"),
        _ => Finding::bad(
            SECTION,
            "credential plugins are only half configured: they need a configuration and a directory",
            "give both --image-credential-provider-config and --image-credential-provider-bin-dir, or neither",
        ),
    }
}

/// ImagePrefetches need mirrors, which agents know only from a directory of the host. Without containerd it would be of no use.
fn mirrors(
    daemon_set: &DaemonSet,
    nodes: &[Node],
    definitions: &BTreeMap<String, Asked<Option<CustomResourceDefinition>>>,
) -> Option<Finding> {
    let is_defined = matches!(definitions.get(ImagePrefetch::crd_name()), Some(Ok(Some(_))));
    if !is_defined || !nodes.iter().any(has_containerd) || has_argument(daemon_set, "--containerd-host-dir") {
        return None;
    }
    let what = "agents do not know the nodes' mirrors, so an ImagePrefetch brings images only to the nodes that ask the registry";
    let step = "set mirrors.hostDirectory, or kinds.imagePrefetch=false if nobody needs them: docs/install.md, Mirrors";
    Some(Finding::warning(SECTION, what, step))
}

fn has_containerd(node: &Node) -> bool {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.is_some_and(|info| info.container_runtime_version.starts_with("containerd://"))
}

fn has_argument(daemon_set: &DaemonSet, flag: &str) -> bool {
    let pod = daemon_set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.is_some_and(|pod| arguments(pod).any(|argument| argument.starts_with(flag)))
}
