//! Which nodes a pull job takes, and how many of them at once (kruise R40, R50).
//!
//! A selector is read here and nowhere else, so that a job selects the same nodes whether it is looked at from the job
//! or from a node (kruise W8).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use prewarm_api::kruise::NodeSelector;
use prewarm_api::selector::{LabelSelector, LabelSelectorRequirement, SelectorOperator};

/// How many nodes pull at once if the job does not say (kruise R50).
const DEFAULT_PARALLELISM: usize = 1;

/// The nodes that a job takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every node.
    All,
    /// The nodes with these names, as far as they exist.
    Names(BTreeSet<String>),
    /// The nodes with these labels.
    Labels(Requirements),
    /// The nodes on which pods of the job's namespace with these labels run.
    Pods(Requirements),
}

impl Selection {
    /// Reads a job's two selectors, of which it has one at most. An absent selector and `{}` both mean every node; an
    /// empty list of names, which today's schema refuses, means none.
    pub fn of(selector: Option<&NodeSelector>, pod_selector: Option<&LabelSelector>) -> Self {
        if let Some(pods) = pod_selector {
            return Self::Pods(Requirements::of(pods));
        }
        let Some(selector) = selector else { return Self::All };
        if let Some(names) = &selector.names {
            return Self::Names(names.iter().cloned().collect());
        }
        let requirements =
            Requirements::new(selector.match_labels.as_ref(), selector.match_expressions.as_deref());
        if requirements.is_empty() { Self::All } else { Self::Labels(requirements) }
    }

    /// Whether a node takes part. `None` if that depends on the pods that run on it.
    pub fn takes_node(&self, name: &str, labels: &BTreeMap<String, String>) -> Option<bool> {
        match self {
            Self::All => Some(true),
            Self::Names(names) => Some(names.contains(name)),
            Self::Labels(requirements) => Some(requirements.matches(labels)),
            Self::Pods(_) => None,
        }
    }
}

/// What labels must be like. None at all are met by any labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    labels: BTreeMap<String, String>,
    expressions: Vec<LabelSelectorRequirement>,
}

impl Requirements {
    /// Reads a label selector.
    pub fn of(selector: &LabelSelector) -> Self {
        Self::new(selector.match_labels.as_ref(), selector.match_expressions.as_deref())
    }

    /// Reads what the selector of a DaemonSet's pods says: `key=value` and commas.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let labels = parts.map(|part| match part.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() && !value.contains('=') => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(format!("{part:?} is no label; write KEY=VALUE, and commas between several")),
        });
        Ok(Self { labels: labels.collect::<Result<_, _>>()?, expressions: Vec::new() })
    }

    /// Whether labels meet all of them, as Kubernetes understands selectors.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|expression| is_met(expression, labels))
    }

    fn new(
        labels: Option<&BTreeMap<String, String>>,
        expressions: Option<&[LabelSelectorRequirement]>,
    ) -> Self {
        Self {
            labels: labels.cloned().unwrap_or_default(),
            expressions: expressions.unwrap_or_default().to_vec(),
        }
    }

    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }
}

fn is_met(expression: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let label = labels.get(&expression.key);
    let has_listed_value =
        || label.is_some_and(|label| expression.values.iter().flatten().any(|value| value == label));
    match expression.operator {
        SelectorOperator::In => has_listed_value(),
        SelectorOperator::NotIn => !has_listed_value(),
        SelectorOperator::Exists => label.is_some(),
        SelectorOperator::DoesNotExist => label.is_none(),
    }
}

/// How many nodes may pull at once. What is no number, and what is below zero, pauses the job like 0.
pub fn parallelism(value: Option<&IntOrString>) -> usize {
    match value {
        None => DEFAULT_PARALLELISM,
        Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or(0),
        Some(IntOrString::String(text)) => {
            text.parse::<i32>().ok().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests;
