//! The built-in kinds that our programs use. Adding one takes one line.

use super::{Resource, Selectable, Version};

#[derive(Clone, Copy)]
enum Scope {
    Cluster,
    Namespaced,
}

/// Which parts of an object the server treats separately.
#[derive(Clone, Copy)]
enum Parts {
    /// One piece, such as a Secret.
    Whole,
    /// A spec with a generation, and a separate status.
    SpecAndStatus,
    /// A separate status and no generation, such as a Node.
    Status,
    /// A spec with a generation, and no status.
    Spec,
}

use Parts::{Spec, SpecAndStatus, Status, Whole};
use Scope::{Cluster, Namespaced};

type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, Scope, Parts, &'static str);

/// Group, version, kind, plural, short names, scope, parts, selectable fields (`name:path=value when absent`).
#[rustfmt::skip]
const TABLE: [Row; 26] = [
    ("", "v1", "ConfigMap", "configmaps", "cm", Namespaced, Whole, ""),
    ("", "v1", "Event", "events", "ev", Namespaced, Whole, "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source:source.component type"),
    ("", "v1", "Namespace", "namespaces", "ns", Cluster, Status, "status.phase"),
    ("", "v1", "Node", "nodes", "no", Cluster, Status, "spec.unschedulable=false"),
    ("", "v1", "Pod", "pods", "po", Namespaced, SpecAndStatus, "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork=false status.phase status.podIP status.nominatedNodeName"),
    ("", "v1", "Secret", "secrets", "", Namespaced, Whole, "type"),
    ("", "v1", "Service", "services", "svc", Namespaced, Status, "spec.clusterIP spec.type"),
    ("", "v1", "ServiceAccount", "serviceaccounts", "sa", Namespaced, Whole, ""),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "", Cluster, SpecAndStatus, ""),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "", Cluster, Spec, ""),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd crds", Cluster, SpecAndStatus, ""),
    ("apps", "v1", "ControllerRevision", "controllerrevisions", "", Namespaced, Whole, ""),
    ("apps", "v1", "DaemonSet", "daemonsets", "ds", Namespaced, SpecAndStatus, ""),
    ("apps", "v1", "Deployment", "deployments", "deploy", Namespaced, SpecAndStatus, ""),
    ("apps", "v1", "ReplicaSet", "replicasets", "rs", Namespaced, SpecAndStatus, ""),
    ("apps", "v1", "StatefulSet", "statefulsets", "sts", Namespaced, SpecAndStatus, ""),
    ("batch", "v1", "CronJob", "cronjobs", "cj", Namespaced, SpecAndStatus, ""),
    ("batch", "v1", "Job", "jobs", "", Namespaced, SpecAndStatus, "status.successful"),
    ("coordination.k8s.io", "v1", "Lease", "leases", "", Namespaced, Whole, ""),
    ("events.k8s.io", "v1", "Event", "events", "ev", Namespaced, Whole, "regarding.kind regarding.namespace regarding.name regarding.uid reason reportingController type"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", Namespaced, SpecAndStatus, ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", Cluster, Whole, ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", Cluster, Whole, ""),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", "", Namespaced, Whole, ""),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", Namespaced, Whole, ""),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", Cluster, Spec, ""),
];

/// What `kubectl get all` shows, which is far from everything.
const IN_ALL: [&str; 8] =
    ["CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "Service", "StatefulSet"];

pub fn all() -> Vec<Resource> {
    TABLE.iter().map(resource).collect()
}

fn resource(row: &Row) -> Resource {
    let (group, version, kind, plural, short_names, scope, parts, selectable) = *row;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let selectable: Vec<Selectable> = selectable.split_whitespace().map(parse_selectable).collect();
    Resource {
        group: group.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: words(short_names),
        categories: words(if IN_ALL.contains(&kind) { "all" } else { "" }),
        namespaced: matches!(scope, Namespaced),
        has_status: matches!(parts, Status | SpecAndStatus),
        has_generation: matches!(parts, Spec | SpecAndStatus),
        stored: None,
        versions: vec![Version {
            name: version.to_owned(),
            schema: None,
            narrows: false,
            source: None,
            columns: Vec::new(),
            selectable: selectable.iter().map(|one| one.name.clone()).collect(),
        }],
        selectable,
        rules: Vec::new(),
        is_custom: false,
    }
}

fn parse_selectable(text: &'static str) -> Selectable {
    let (text, absent) = text.split_once('=').unwrap_or((text, ""));
    let (name, path) = text.split_once(':').unwrap_or((text, text));
    Selectable { name: name.to_owned(), path: path.to_owned(), absent }
}
