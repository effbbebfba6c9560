//! Whether a pod fits a node (kruise R114). Readiness is not looked at, and what other pods take is not subtracted: the
//! scheduler waits for both.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity;
use super::shape::Shape;

/// The taint of nodes that take no pods, which a pod may tolerate.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The one field that a node affinity may ask for.
pub const NAME_FIELD: &str = "metadata.name";
/// The resource of which every pod takes one.
pub const PODS: &str = "pods";

/// What a Node says that fitness depends on. Heartbeats change none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Taints that keep pods away.
    pub taints: Vec<NodeTaint>,
    /// Whether it is cordoned.
    pub is_unschedulable: bool,
    /// What it has for pods, in billionths.
    pub allocatable: Arc<BTreeMap<String, i128>>,
}

/// A taint, without the time at which it was put on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTaint {
    key: String,
    value: String,
    effect: String,
}

impl NodeFacts {
    /// Reads a Node. Its labels are handed over, because others hold them, too.
    pub fn read(node: &Node, labels: Arc<BTreeMap<String, String>>) -> Self {
        let spec = node.spec.as_ref();
        let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let amount =
            |(name, Quantity(text)): (&String, &Quantity)| Some((name.clone(), quantity::parse(text)?));
        Self {
            labels,
            taints: taints.iter().filter(|taint| keeps_away(taint)).map(NodeTaint::read).collect(),
            is_unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
            allocatable: Arc::new(allocatable.into_iter().flatten().filter_map(amount).collect()),
        }
    }
}

impl NodeTaint {
    fn read(taint: &Taint) -> Self {
        let value = taint.value.clone().unwrap_or_default();
        Self { key: taint.key.clone(), value, effect: taint.effect.clone() }
    }
}

/// `PreferNoSchedule` only asks.
fn keeps_away(taint: &Taint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
}

/// Why a pod does not fit a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// The template names another node.
    OtherNode,
    /// The node lacks labels of the node selector or of the required affinity.
    Labels,
    /// The node takes no pods.
    Unschedulable,
    /// The node has this taint, and the pod does not tolerate it.
    Taint(String),
    /// The node never has so much of this resource.
    Resource(String),
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherNode => write!(to, "the template's nodeName is another"),
            Self::Labels => write!(to, "labels do not match nodeSelector or node affinity"),
            Self::Unschedulable => write!(to, "unschedulable"),
            Self::Taint(taint) => write!(to, "taint {taint} is not tolerated"),
            Self::Resource(name) => write!(to, "not enough {name}"),
        }
    }
}

/// Why pods of this shape do not fit the node; `None` if they do.
pub fn misfit(shape: &Shape, name: &str, node: &NodeFacts) -> Option<Misfit> {
    let pod = &shape.spec;
    if pod.node_name.as_deref().is_some_and(|wanted| !wanted.is_empty() && wanted != name) {
        return Some(Misfit::OtherNode);
    }
    let has = |(key, value): (&String, &String)| node.labels.get(key) == Some(value);
    if !pod.node_selector.iter().flatten().all(has) || !meets_affinity(pod, name, node) {
        return Some(Misfit::Labels);
    }
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    untolerated(tolerations, node).or_else(|| short_of(shape, node))
}

/// Terms are alternatives; within a term all has to hold. A term that asks nothing matches nothing, as in the scheduler.
fn meets_affinity(pod: &PodSpec, name: &str, node: &NodeFacts) -> bool {
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|one| one.required_during_scheduling_ignored_during_execution.as_ref());
    required
        .is_none_or(|required| required.node_selector_terms.iter().any(|term| meets_term(term, name, node)))
}

fn meets_term(term: &NodeSelectorTerm, name: &str, node: &NodeFacts) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |key: &String| node.labels.get(key).map(String::as_str);
    let field = |key: &String| (key == NAME_FIELD).then_some(name);
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|one| meets(one, label(&one.key)))
        && fields.iter().all(|one| meets(one, field(&one.key)))
}

fn meets(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_listed = |value: &str| values.iter().any(|one| one == value);
    let bound = || values.first().and_then(|one| one.parse::<i64>().ok());
    let number = || value.and_then(|value| value.parse::<i64>().ok()).zip(bound());
    match requirement.operator.as_str() {
        "In" => value.is_some_and(is_listed),
        "NotIn" => !value.is_some_and(is_listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().is_some_and(|(value, bound)| value > bound),
        "Lt" => number().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

fn untolerated(tolerations: &[Toleration], node: &NodeFacts) -> Option<Misfit> {
    let is_tolerated = |taint: &NodeTaint| tolerations.iter().any(|one| tolerates(one, taint));
    let (key, effect) = (UNSCHEDULABLE.to_owned(), "NoSchedule".to_owned());
    if node.is_unschedulable && !is_tolerated(&NodeTaint { key, value: String::new(), effect }) {
        return Some(Misfit::Unschedulable);
    }
    let taint = node.taints.iter().find(|taint| !is_tolerated(taint))?;
    Some(Misfit::Taint(format!("{}:{}", taint.key, taint.effect)))
}

fn tolerates(toleration: &Toleration, taint: &NodeTaint) -> bool {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    let meets_key = key.is_empty() || key == taint.key;
    let meets_effect = effect.is_empty() || effect == taint.effect;
    let meets_value = match text(&toleration.operator).as_str() {
        "Exists" => true,
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == taint.value,
        _ => false,
    };
    meets_key && meets_effect && meets_value
}

/// A resource of which the node has never enough.
fn short_of(shape: &Shape, node: &NodeFacts) -> Option<Misfit> {
    let has = |name: &String| node.allocatable.get(name).copied().unwrap_or(0);
    let short = shape.requests.iter().find(|(name, amount)| **amount > has(name));
    short.map(|(name, _)| Misfit::Resource(name.clone()))
}
