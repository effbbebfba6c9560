//! Nodes and pods without what we do not need: a whole pod takes thirty kilobytes, and a cluster has many.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus, Pod};
use kube::Resource;
use kube::api::ObjectMeta;
use prewarm_plan::ledger::pod::PodFacts;
use serde::Deserialize;

/// A Node's metadata and conditions.
#[derive(Clone, Debug, Deserialize)]
pub struct SlimNode {
    #[serde(default)]
    metadata: ObjectMeta,
    status: Option<SlimNodeStatus>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimNodeStatus {
    conditions: Option<Vec<NodeCondition>>,
}

impl From<SlimNode> for Node {
    fn from(node: SlimNode) -> Self {
        let conditions = node.status.and_then(|status| status.conditions);
        let status = NodeStatus { conditions, ..NodeStatus::default() };
        Self { metadata: node.metadata, status: Some(status), ..Self::default() }
    }
}

/// A Pod's labels, node and phase.
#[derive(Clone, Debug, Deserialize)]
pub struct SlimPod {
    #[serde(default)]
    metadata: ObjectMeta,
    spec: Option<SlimPodSpec>,
    status: Option<SlimPodStatus>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimPodSpec {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimPodStatus {
    phase: Option<String>,
}

impl SlimPod {
    /// Its namespace, its name, and what jobs select by.
    pub fn into_facts(self) -> (String, String, PodFacts) {
        let phase = self.status.and_then(|status| status.phase).unwrap_or_default();
        let has_ended = phase == "Succeeded" || phase == "Failed";
        let node = self.spec.and_then(|spec| spec.node_name).filter(|node| !node.is_empty());
        let facts = PodFacts {
            node: node.map(Into::into),
            is_active: !has_ended && self.metadata.deletion_timestamp.is_none(),
            labels: self.metadata.labels.unwrap_or_default(),
        };
        (self.metadata.namespace.unwrap_or_default(), self.metadata.name.unwrap_or_default(), facts)
    }
}

/// Stands for a kind of Kubernetes.
macro_rules! stands_for {
    ($slim:ty, $whole:ty) => {
        impl Resource for $slim {
            type DynamicType = ();
            type Scope = <$whole as Resource>::Scope;

            fn kind((): &()) -> Cow<'_, str> {
                <$whole as Resource>::kind(&())
            }

            fn group((): &()) -> Cow<'_, str> {
                <$whole as Resource>::group(&())
            }

            fn version((): &()) -> Cow<'_, str> {
                <$whole as Resource>::version(&())
            }

            fn plural((): &()) -> Cow<'_, str> {
                <$whole as Resource>::plural(&())
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

stands_for!(SlimNode, Node);
stands_for!(SlimPod, Pod);
