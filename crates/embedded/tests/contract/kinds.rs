//! Rules of some built-in kinds that others do not have.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::built_in::policy_spec;
use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        these_built_in_kinds_count_generations,
        these_built_in_kinds_are_not_replaced_without_a_version,
        these_built_in_kinds_are_made_by_replacing_them,
    ]
}

/// One small object of many built-in kinds: path and body. Long because it is a table.
fn samples(world: &World) -> Vec<(String, Value)> {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    let of_apps = json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template });
    let mut of_sets = of_apps.clone();
    of_sets["serviceName"] = "web".into();
    let mut of_jobs = template.clone();
    of_jobs["spec"]["restartPolicy"] = "Never".into();
    let rbac = "rbac.authorization.k8s.io/v1";
    let reference =
        |kind: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "view" });
    let object = |api_version: &str, kind: &str, fields: Value| {
        let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": world.unique("sample") } });
        for (name, value) in fields.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        object
    };
    vec![
        (world.core("configmaps"), object("v1", "ConfigMap", json!({}))),
        (world.core("secrets"), object("v1", "Secret", json!({}))),
        (world.core("serviceaccounts"), object("v1", "ServiceAccount", json!({}))),
        ("/api/v1/nodes".to_owned(), object("v1", "Node", json!({}))),
        ("/api/v1/namespaces".to_owned(), object("v1", "Namespace", json!({}))),
        (world.core("services"), object("v1", "Service", json!({ "spec": { "ports": [{ "port": 80 }] } }))),
        (world.at("apps/v1", "deployments"), object("apps/v1", "Deployment", json!({ "spec": of_apps }))),
        (world.at("apps/v1", "daemonsets"), object("apps/v1", "DaemonSet", json!({ "spec": of_apps }))),
        (world.at("apps/v1", "replicasets"), object("apps/v1", "ReplicaSet", json!({ "spec": of_apps }))),
        (world.at("apps/v1", "statefulsets"), object("apps/v1", "StatefulSet", json!({ "spec": of_sets }))),
        (
            world.at("apps/v1", "controllerrevisions"),
            object("apps/v1", "ControllerRevision", json!({ "revision": 1, "data": { "a": 1 } })),
        ),
        (
            world.at("batch/v1", "jobs"),
            object("batch/v1", "Job", json!({ "spec": { "template": of_jobs, "suspend": true } })),
        ),
        (
            world.at("batch/v1", "cronjobs"),
            object(
                "batch/v1",
                "CronJob",
                json!({ "spec": { "schedule": "0 0 * * *", "jobTemplate": { "spec": { "template": of_jobs } } } }),
            ),
        ),
        (
            world.at("coordination.k8s.io/v1", "leases"),
            object("coordination.k8s.io/v1", "Lease", json!({ "spec": {} })),
        ),
        (
            world.at("policy/v1", "poddisruptionbudgets"),
            object(
                "policy/v1",
                "PodDisruptionBudget",
                json!({ "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } } }),
            ),
        ),
        (world.at(rbac, "roles"), object(rbac, "Role", json!({ "rules": [] }))),
        (
            world.at(rbac, "rolebindings"),
            object(rbac, "RoleBinding", json!({ "roleRef": reference("ClusterRole") })),
        ),
        (format!("/apis/{rbac}/clusterroles"), object(rbac, "ClusterRole", json!({ "rules": [] }))),
        (
            format!("/apis/{rbac}/clusterrolebindings"),
            object(rbac, "ClusterRoleBinding", json!({ "roleRef": reference("ClusterRole") })),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(),
            object("scheduling.k8s.io/v1", "PriorityClass", json!({ "value": 7 })),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies".to_owned(),
            object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", policy_spec()),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings".to_owned(),
            object(
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicyBinding",
                json!({ "spec": { "policyName": "none", "validationActions": ["Deny"] } }),
            ),
        ),
    ]
}

async fn these_built_in_kinds_count_generations(world: World) -> anyhow::Result<()> {
    let mut counting = Vec::new();
    for (path, object) in samples(&world) {
        let created = world.post(&path, &object).await?.ok(201).context(path)?;
        if created["metadata"]["generation"] == 1 {
            counting.push(object["kind"].as_str().unwrap_or_default().to_owned());
        }
    }
    same(
        counting.join(" "),
        "Deployment DaemonSet ReplicaSet StatefulSet Job CronJob PodDisruptionBudget PriorityClass \
         ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    )
}

async fn these_built_in_kinds_are_not_replaced_without_a_version(world: World) -> anyhow::Result<()> {
    let mut strict = Vec::new();
    for (path, object) in samples(&world) {
        let mut created = world.post(&path, &object).await?.ok(201).context(path.clone())?;
        if let Some(metadata) = created["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let name = created["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let answer = world.put(&format!("{path}/{name}"), &created).await?;
        if answer.code == 422 {
            strict.push(object["kind"].as_str().unwrap_or_default().to_owned());
        } else {
            answer.ok(200).context(path)?;
        }
    }
    same(
        strict.join(" "),
        "Lease PodDisruptionBudget ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    )
}

async fn these_built_in_kinds_are_made_by_replacing_them(world: World) -> anyhow::Result<()> {
    let mut made = Vec::new();
    for (path, object) in samples(&world) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if world.put(&format!("{path}/{name}"), &object).await?.code == 201 {
            made.push(object["kind"].as_str().unwrap_or_default().to_owned());
        }
    }
    same(made.join(" "), "Service Lease Role RoleBinding ClusterRole ClusterRoleBinding")
}
