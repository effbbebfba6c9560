//! A job's pod template: what it asks of a node, and the pods that are made from it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use prewarm_api::kruise::{API_VERSION, BROADCAST_JOB, BroadcastJob};
use prewarm_api::names::{BROADCAST_JOB_NAME_LABEL, BROADCAST_JOB_UID_LABEL};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::fitness::{NAME_FIELD, PODS};
use super::quantity;
use crate::hash::fnv1a;

/// What a template asks of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The pod's spec.
    pub spec: PodSpec,
    /// What the whole pod requests, in billionths.
    pub requests: BTreeMap<String, i128>,
}

impl Shape {
    /// Reads a template. Only the API server can say whether it makes a valid pod; here it has to be one at all.
    pub fn read(template: &Value) -> Result<Self, String> {
        let template = PodTemplateSpec::deserialize(template).map_err(|error| error.to_string())?;
        let spec = template.spec.unwrap_or_default();
        Ok(Self { requests: requests(&spec), spec })
    }
}

/// What the whole pod asks for: containers together, or the largest of those that run before them, and the overhead.
fn requests(pod: &PodSpec) -> BTreeMap<String, i128> {
    let mut sum = BTreeMap::from([(PODS.to_owned(), quantity::ONE)]);
    for (name, amount) in pod.containers.iter().flat_map(|container| requested(container.resources.as_ref()))
    {
        *sum.entry(name).or_default() += amount;
    }
    // Sidecars go on beside what comes after them.
    let (mut beside, mut before) = (BTreeMap::<String, i128>::new(), BTreeMap::<String, i128>::new());
    for container in pod.init_containers.iter().flatten() {
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        for (name, amount) in requested(container.resources.as_ref()) {
            let running = beside.entry(name.clone()).or_default();
            let peak = *running + amount;
            if is_sidecar {
                *running = peak;
            }
            let most = before.entry(name).or_default();
            *most = peak.max(*most);
        }
    }
    for (name, amount) in beside {
        *sum.entry(name).or_default() += amount;
    }
    for (name, amount) in before {
        let whole = sum.entry(name).or_default();
        *whole = amount.max(*whole);
    }
    for (name, Quantity(text)) in pod.overhead.iter().flatten() {
        *sum.entry(name.clone()).or_default() += quantity::parse(text).unwrap_or(0);
    }
    sum
}

/// A limit without a request is a request, too: the API server fills that in for pods, not for templates.
fn requested(resources: Option<&ResourceRequirements>) -> impl Iterator<Item = (String, i128)> {
    let of = |field: Option<&BTreeMap<String, Quantity>>| field.cloned().unwrap_or_default();
    let mut all = of(resources.and_then(|resources| resources.limits.as_ref()));
    all.extend(of(resources.and_then(|resources| resources.requests.as_ref())));
    all.into_iter().filter_map(|(name, Quantity(text))| Some((name, quantity::parse(&text)?)))
}

/// The name of a job's pod on a node. It comes out alike again, so that a controller that has forgotten that it made the
/// pod cannot make a second one; another job of the same name has other pods.
pub fn pod_name(job: &BroadcastJob, node: &str) -> String {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let (first, second) = (fnv1a(&format!("{uid}/{node}")), fnv1a(&format!("{node}/{uid}")));
    format!("{}-{first:08x}{second:08x}", job.metadata.name.as_deref().unwrap_or_default())
}

/// The job's pod for a node (kruise R120): led there by the scheduler, or bound directly. What the template has is kept,
/// also where this release does not know it.
pub fn pod(job: &BroadcastJob, node: &str, by_scheduler: bool) -> Value {
    let template = &job.spec.template;
    let mut spec = template["spec"].clone();
    if by_scheduler {
        lead(&mut spec, node);
    } else {
        spec["nodeName"] = json!(node);
    }
    let metadata = &job.metadata;
    let mut labels = object(&template["metadata"]["labels"]);
    labels.insert(BROADCAST_JOB_NAME_LABEL.to_owned(), json!(metadata.name));
    labels.insert(BROADCAST_JOB_UID_LABEL.to_owned(), json!(metadata.uid));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(job, node),
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": object(&template["metadata"]["annotations"]),
            "finalizers": template["metadata"]["finalizers"],
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": BROADCAST_JOB, "name": metadata.name, "uid": metadata.uid,
                "controller": true,
            }],
        },
        "spec": spec,
    })
}

/// Asks the scheduler for this node, in place of whatever else the template requires: that was looked at already.
fn lead(spec: &mut Value, node: &str) {
    let terms = json!([{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}]);
    // What is null or no object does not hold anything that could be lost.
    for path in ["/affinity", "/affinity/nodeAffinity"] {
        if spec.pointer(path).is_none_or(|value| !value.is_object()) {
            let (parent, name) = path.rsplit_once('/').unwrap_or_default();
            if let Some(parent) = spec.pointer_mut(parent) {
                parent[name] = json!({});
            }
        }
    }
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": terms});
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
