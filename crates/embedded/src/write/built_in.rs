//! What the server does for some built-in kinds besides storing them: only as much as our programs can observe.

use serde_json::{Value, json};

use super::Propagation;
use crate::refusal::{Cause, Refusal};
use crate::resource::{self, Resource};

/// How many seconds a pod has to end by default.
const POD_GRACE_SECONDS: u64 = 30;

/// How many bytes a config map or secret may hold.
const MAX_DATA_BYTES: usize = 1024 * 1024;

fn is(resource: &Resource, group: &str, kind: &str) -> bool {
    resource.group == group && resource.kind == kind
}

/// Fields that hold objects in every built-in kind that has them.
const PARTS: [&str; 3] = ["spec", "status", "stringData"];

/// Brings an object into the form that the rest relies on, as a real server does by decoding it into a typed structure.
pub(super) fn read(resource: &Resource, object: &mut Value) -> Result<(), Refusal> {
    let Some(fields) = object.as_object_mut() else { return Ok(()) };
    let has_data = resource.group.is_empty() && matches!(resource.kind.as_str(), "ConfigMap" | "Secret");
    let is_part = |name: &str| PARTS.contains(&name) || (has_data && matches!(name, "data" | "binaryData"));
    if let Some(name) =
        fields.iter().find(|(name, value)| is_part(name) && !value.is_object() && !value.is_null())
    {
        return Err(Refusal::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: {} must be an object",
            name.0,
            kind = resource.kind
        )));
    }
    let is_blank =
        |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    fields.retain(|name, value| match name.as_str() {
        "spec" | "status" => !value.is_null(),
        name => !(is_part(name) && is_blank(value)),
    });
    super::definition::read(resource, object)
}

/// Nodes are created with their status; every other kind gets it later.
pub(super) fn keeps_status_on_create(resource: &Resource) -> bool {
    is(resource, "", "Node")
}

/// Whether a replacement must name the version that it replaces.
pub(super) fn needs_version(resource: &Resource) -> bool {
    let strict = ["customresourcedefinitions", "leases", "poddisruptionbudgets"];
    resource.is_custom
        || resource.group == "admissionregistration.k8s.io"
        || strict.contains(&resource.plural.as_str())
}

/// Whether replacing an object that does not exist creates it.
pub fn is_made_by_replacing(resource: &Resource) -> bool {
    !resource.is_custom
        && (is(resource, "coordination.k8s.io", "Lease")
            || matches!(resource.kind.as_str(), "Event" | "Service")
            || resource.group == "rbac.authorization.k8s.io")
}

/// The metadata that may be written together with the status.
pub(super) fn written_with_status(resource: &Resource) -> &'static [&'static str] {
    match resource.group.as_str() {
        _ if resource.is_custom => &[],
        "apps" => &["annotations"],
        _ => &["annotations", "labels"],
    }
}

/// Sets the initial fields of a created object.
pub(super) fn prepare_new(resource: &Resource, object: &mut Value) {
    if is(resource, "", "Namespace") {
        object["spec"]["finalizers"] = json!(["kubernetes"]);
        object["status"] = json!({ "phase": "Active" });
    } else if is(resource, "", "Pod") {
        object["status"] = json!({ "phase": "Pending" });
    } else if resource.kind == "CustomResourceDefinition" {
        object["status"] = json!({});
    }
}

pub(super) fn fill(resource: &Resource, object: &mut Value) {
    if is(resource, "", "Namespace") {
        let name = object["metadata"]["name"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
    let mut default = |pointer: &str, value: Value| {
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
        if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
            fields.entry(field).or_insert(value);
        }
    };
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            default("/spec/restartPolicy", json!("Always"));
            default("/spec/terminationGracePeriodSeconds", json!(POD_GRACE_SECONDS));
            default("/spec/schedulerName", json!("default-scheduler"));
            default("/spec/dnsPolicy", json!("ClusterFirst"));
            default("/spec/serviceAccountName", json!("default"));
            let containers = object.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
            containers.into_iter().flatten().for_each(fill_pull_policy);
        }
        ("", "Secret") => {
            default("/type", json!("Opaque"));
            encode_string_data(object);
        }
        (group, "Event") => resource::events::complete(object, group),
        _ => {}
    }
}

/// By default, an image without a tag or with `latest` is pulled every time.
fn fill_pull_policy(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let is_pinned = image.contains('@') || last.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    let policy = if is_pinned { "IfNotPresent" } else { "Always" };
    if let Some(fields) = container.as_object_mut() {
        fields.entry("imagePullPolicy").or_insert_with(|| policy.into());
    }
}

/// `stringData` is write-only: it is encoded and stored in `data`.
fn encode_string_data(object: &mut Value) {
    use base64::Engine as _;
    let Some(texts) = object.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    for (name, text) in texts.as_object().into_iter().flatten() {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
        object["data"][name] = encoded.into();
    }
}

/// What is wrong with an object of a built-in kind, as far as it is checked.
pub(super) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    if resource.is_custom {
        return Vec::new();
    }
    let has_containers =
        object.pointer("/spec/containers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if is(resource, "", "Pod") && !has_containers {
        return vec![Cause {
            reason: "FieldValueRequired".to_owned(),
            message: "Required value: a pod has at least one container".to_owned(),
            field: "spec.containers".to_owned(),
        }];
    }
    let place = match resource.kind.as_str() {
        "ConfigMap" => "[]",
        "Secret" => "data",
        _ => return Vec::new(),
    };
    let values = ["data", "binaryData"].into_iter().filter_map(|field| object[field].as_object()).flatten();
    let bytes: usize = values.map(|(_, value)| value.as_str().map_or(0, str::len)).sum();
    if bytes <= MAX_DATA_BYTES {
        return Vec::new();
    }
    vec![Cause {
        reason: "FieldValueTooLong".to_owned(),
        message: format!("Too long: may not be more than {MAX_DATA_BYTES} bytes"),
        field: place.to_owned(),
    }]
}

/// Whether a namespace exists in every cluster and cannot be deleted.
pub(super) fn is_permanent(resource: &Resource, name: &str) -> bool {
    is(resource, "", "Namespace") && matches!(name, "default" | "kube-public" | "kube-system")
}

/// What happens to dependents if neither the client nor the object says so.
pub(super) fn usual_propagation(resource: &Resource) -> Propagation {
    // The default of Jobs is older than garbage collection.
    if is(resource, "batch", "Job") { Propagation::Orphan } else { Propagation::Background }
}

/// Whether watchers see the deletion timestamp of an object that is removed at once.
pub(super) fn is_marked_before_removal(resource: &Resource) -> bool {
    is(resource, "", "Pod")
}

/// Sets the fields that show that an object is being deleted.
pub(super) fn mark(resource: &Resource, object: &mut Value) {
    if is(resource, "", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
        object["metadata"]["deletionGracePeriodSeconds"] = Value::Null;
    }
}

/// The seconds between the deletion timestamp and the removal.
pub(super) fn grace_period(resource: &Resource, object: &Value, asked: Option<u64>) -> u64 {
    let is_placed =
        object.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    let is_over =
        matches!(object.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
    if !is(resource, "", "Pod") || !is_placed || is_over {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64);
    asked.or(own).unwrap_or(POD_GRACE_SECONDS)
}

/// Whether an object stays although no finalizer holds it: a pod that its node has to end, or a namespace with
/// contents.
pub(super) fn is_held(resource: &Resource, object: &Value) -> bool {
    if is(resource, "", "Pod") {
        return object["metadata"]["deletionGracePeriodSeconds"].as_u64().is_some_and(|seconds| seconds > 0);
    }
    is(resource, "", "Namespace")
        && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
}
