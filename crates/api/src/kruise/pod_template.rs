//! The schema of a pod template whose details only the API server itself can judge.
//!
//! Checked are the containers' names and images, the restart policy and, by a rule, the reserved labels; the whole
//! core schema would not fit kubectl's limit on an applied object. The other fields of a pod are listed without a
//! type: so they are known to CEL's `==`, which would otherwise take two templates as equal that have one field
//! exchanged for another (kruise V46). Fields that are not listed are kept all the same.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

const METADATA: [&str; 6] =
    ["annotations", "creationTimestamp", "finalizers", "generateName", "name", "namespace"];

const POD: [&str; 39] = [
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
];

const CONTAINER: [&str; 23] = [
    "args",
    "command",
    "env",
    "envFrom",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
];

pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The pod to run on every matching node. Its restartPolicy is `Never` or `OnFailure`, and every \
                        container has a name and an image; everything else is as in any pod.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["spec"],
        "properties": { "metadata": metadata(), "spec": spec() },
    })
}

fn metadata() -> Value {
    let labels = json!({
        "description": "Labels of the pods.",
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    });
    json!({
        "description": "Labels and annotations of the pods. The labels `broadcastjob-name` and \
                        `broadcastjob-controller-uid` are set by the controller and must not be here.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": with_untyped(&METADATA, [("labels", labels)]),
    })
}

fn spec() -> Value {
    let containers = json!({
        "description": "The containers of the pod, at least one.",
        "type": "array",
        "minItems": 1,
        "maxItems": 128,
        "items": container(),
    });
    let restart_policy = json!({
        "description": "`Never` or `OnFailure`: a pod that always restarts would never end.",
        "type": "string",
        "enum": ["Never", "OnFailure"],
    });
    json!({
        "description": "The pod's specification, as in any pod.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["containers", "restartPolicy"],
        "properties": with_untyped(&POD, [("containers", containers), ("restartPolicy", restart_policy)]),
    })
}

fn container() -> Value {
    let text = |description: &str, most: usize| json!({ "description": description, "type": "string", "minLength": 1, "maxLength": most });
    let checked =
        [("name", text("Name of the container.", 63)), ("image", text("Image of the container.", 512))];
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["name", "image"],
        "properties": with_untyped(&CONTAINER, checked),
    })
}

fn with_untyped<const N: usize>(names: &[&str], checked: [(&str, Value); N]) -> Map<String, Value> {
    let untyped = json!({ "description": "As in any pod.", "x-kubernetes-preserve-unknown-fields": true });
    let fields = names.iter().map(|name| (*name, untyped.clone()));
    fields.chain(checked).map(|(name, schema)| (name.to_owned(), schema)).collect()
}
