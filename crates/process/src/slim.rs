//! Nodes and pods without what decisions do not need: a whole pod takes thirty kilobytes, and a cluster has many.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Pod, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use prewarm_plan::cluster::demands::pod::PodFacts;
use prewarm_plan::object::ObjectKey;
use serde::Deserialize;

/// A Node's metadata, conditions, container runtime, and what decides whether a pod fits it.
#[derive(Clone, Debug, Deserialize)]
pub struct SlimNode {
    #[serde(default)]
    metadata: ObjectMeta,
    spec: Option<SlimNodeSpec>,
    status: Option<SlimNodeStatus>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimNodeSpec {
    taints: Option<Vec<Taint>>,
    unschedulable: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct SlimNodeStatus {
    conditions: Option<Vec<NodeCondition>>,
    allocatable: Option<BTreeMap<String, Quantity>>,
    #[serde(rename = "nodeInfo")]
    node_info: Option<SlimNodeInfo>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimNodeInfo {
    #[serde(default)]
    container_runtime_version: String,
}

impl From<SlimNode> for Node {
    fn from(node: SlimNode) -> Self {
        let SlimNodeStatus { conditions, allocatable, node_info } = node.status.unwrap_or_default();
        let node_info = node_info.map(|SlimNodeInfo { container_runtime_version }| NodeSystemInfo {
            container_runtime_version,
            ..NodeSystemInfo::default()
        });
        let spec = node.spec.map(|SlimNodeSpec { taints, unschedulable }| NodeSpec {
            taints,
            unschedulable,
            ..NodeSpec::default()
        });
        let status = NodeStatus { conditions, allocatable, node_info, ..NodeStatus::default() };
        Self { metadata: node.metadata, spec, status: Some(status) }
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
    /// Its name, and what jobs select by.
    pub fn into_facts(self) -> (ObjectKey, PodFacts) {
        let key = ObjectKey::of(&self.metadata);
        let phase = self.status.and_then(|status| status.phase).unwrap_or_default();
        let has_ended = phase == "Succeeded" || phase == "Failed";
        let node = self.spec.and_then(|spec| spec.node_name).filter(|node| !node.is_empty());
        let facts = PodFacts {
            node: node.map(Into::into),
            is_active: !has_ended && self.metadata.deletion_timestamp.is_none(),
            labels: self.metadata.labels.unwrap_or_default(),
        };
        (key, facts)
    }
}

/// Lets a struct with `metadata` stand for a kind of Kubernetes.
#[macro_export]
macro_rules! stands_for {
    ($slim:ty, $whole:ty) => {
        impl ::kube::Resource for $slim {
            type DynamicType = ();
            type Scope = <$whole as ::kube::Resource>::Scope;

            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                <$whole as ::kube::Resource>::kind(&())
            }

            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                <$whole as ::kube::Resource>::group(&())
            }

            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                <$whole as ::kube::Resource>::version(&())
            }

            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                <$whole as ::kube::Resource>::plural(&())
            }

            fn meta(&self) -> &::kube::api::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ::kube::api::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

stands_for!(SlimNode, Node);
stands_for!(SlimPod, Pod);
