//! Pods of BroadcastJobs, without what we do not need.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, ContainerStatus, Pod as PodObject, PodCondition};
use kube::api::ObjectMeta;
use prewarm_api::kruise::BROADCAST_JOB;
use prewarm_api::names::BROADCAST_JOB_UID_LABEL;
use prewarm_plan::cluster::broadcast_job::fitness::NAME_FIELD;
use prewarm_plan::cluster::broadcast_job::pod::{Phase, Pod};
use prewarm_plan::cluster::{Kind, Object};
use prewarm_plan::object::ObjectKey;
use prewarm_process::stands_for;
use serde::Deserialize;

use super::Watched;

/// A pod, as far as its job needs it.
#[derive(Clone, Debug, Deserialize)]
pub struct BroadcastPod {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    restart_policy: Option<String>,
    affinity: Option<Affinity>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    conditions: Option<Vec<PodCondition>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

impl BroadcastPod {
    /// What its job counts.
    fn into_pod(self) -> Pod {
        let phase = match self.status.phase.as_deref() {
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            _ => Phase::Unfinished,
        };
        Pod {
            node: self.spec.node().into(),
            owner: owner(&self.metadata).into(),
            restarts: if self.spec.restart_policy.as_deref() == Some("OnFailure") {
                self.status.restarts()
            } else {
                0
            },
            unschedulable: self.status.unschedulable().filter(|_| phase == Phase::Unfinished),
            phase,
            is_terminating: self.metadata.deletion_timestamp.is_some(),
            name: self.metadata.name.unwrap_or_default().into(),
            uid: self.metadata.uid.unwrap_or_default().into(),
            resource_version: self.metadata.resource_version.unwrap_or_default(),
        }
    }
}

/// The UID of its job: label and controller have to agree (kruise R113). Empty if it has none.
fn owner(metadata: &ObjectMeta) -> &str {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(BROADCAST_JOB_UID_LABEL));
    let mut owners = metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true) && owner.kind == BROADCAST_JOB);
    controller.map(|owner| &owner.uid).filter(|uid| Some(*uid) == label).map_or("", String::as_str)
}

impl Spec {
    /// The node that it is on, or that the scheduler is asked for (kruise T110).
    fn node(&self) -> &str {
        self.node_name.as_deref().filter(|name| !name.is_empty()).or_else(|| self.asked()).unwrap_or_default()
    }

    fn asked(&self) -> Option<&str> {
        let affinity = self.affinity.as_ref()?.node_affinity.as_ref()?;
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
        let mut fields = required.node_selector_terms.iter().flat_map(|term| &term.match_fields).flatten();
        let field = fields.find(|field| field.key == NAME_FIELD && field.operator == "In")?;
        field.values.as_ref()?.first().map(String::as_str)
    }
}

impl Status {
    fn restarts(&self) -> i32 {
        let statuses = [&self.init_container_statuses, &self.container_statuses];
        let counts = statuses.into_iter().flatten().flatten().map(|status| status.restart_count);
        counts.fold(0, i32::saturating_add)
    }

    fn unschedulable(&self) -> Option<Arc<str>> {
        let mut conditions = self.conditions.iter().flatten();
        let scheduled = conditions.find(|condition| condition.type_ == "PodScheduled")?;
        let has_no_place =
            scheduled.status == "False" && scheduled.reason.as_deref() == Some("Unschedulable");
        has_no_place.then(|| scheduled.message.as_deref().unwrap_or("the scheduler does not say why").into())
    }
}

impl Watched for BroadcastPod {
    const KIND: Kind = Kind::BroadcastPod;

    fn into_object(self) -> Object {
        let key = ObjectKey::of(&self.metadata);
        (key, self.into_pod()).into()
    }
}

stands_for!(BroadcastPod, PodObject);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: &Value, status: &Value) -> Pod {
        let owner = json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob", "name": "sweep",
            "uid": "job-1", "controller": true}]);
        let labels = json!({"broadcastjob-name": "sweep", "broadcastjob-controller-uid": "job-1"});
        let metadata =
            json!({"name": "sweep-1", "namespace": "default", "labels": labels, "ownerReferences": owner});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        serde_json::from_value::<BroadcastPod>(object).unwrap().into_pod()
    }

    fn asks(node: &str) -> Value {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
        ]}}})
    }

    /// kruise T110.
    #[test]
    fn a_pod_is_on_the_node_that_it_names_or_asks_for() {
        let nodes =
            [json!({"nodeName": "a", "affinity": asks("b")}), json!({"affinity": asks("b")}), json!({})];
        assert_eq!(nodes.map(|spec| read(&spec, &json!({})).node.to_string()), ["a", "b", ""]);
    }

    #[test]
    fn restarts_count_for_pods_that_are_restarted_on_failure() {
        let container =
            |count| json!({"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": count});
        let status = json!({"initContainerStatuses": [container(1)], "containerStatuses": [container(2), container(3)]});
        assert_eq!(read(&json!({"restartPolicy": "OnFailure"}), &status).restarts, 6);
        assert_eq!(read(&json!({"restartPolicy": "Never"}), &status).restarts, 0);
    }

    #[test]
    fn a_pod_belongs_to_the_job_that_label_and_controller_agree_on() {
        assert_eq!(&*read(&json!({}), &json!({})).owner, "job-1");
        let metadata = json!({"name": "x", "labels": {"broadcastjob-controller-uid": "job-1"}});
        let stranger: BroadcastPod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        assert_eq!(&*stranger.into_pod().owner, "");
    }

    #[test]
    fn the_schedulers_words_are_kept_while_the_pod_waits() {
        let status = |phase: &str| {
            json!({"phase": phase, "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/1 nodes are available"}]})
        };
        assert_eq!(
            read(&json!({}), &status("Pending")).unschedulable.as_deref(),
            Some("0/1 nodes are available")
        );
        assert_eq!(read(&json!({}), &status("Failed")).unschedulable, None);
    }
}
