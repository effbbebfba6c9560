//! What the server does for built-in kinds beyond storing them.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, map, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_secret_stores_texts_encoded,
        a_text_of_a_secret_wins_over_its_data,
        a_patch_may_bring_texts_for_a_secret,
        a_secret_without_a_type_is_opaque,
        a_lease_keeps_its_holder_and_times,
        a_lease_is_not_replaced_without_its_version,
        a_lease_is_made_by_replacing_what_is_not_there,
        an_object_of_most_kinds_is_not_made_by_replacing_it,
        a_new_namespace_is_active,
        the_label_of_a_namespace_cannot_be_taken_away,
        a_node_brings_its_status_along,
        a_node_keeps_its_labels_and_taints,
        a_new_pod_is_pending,
        a_pod_has_the_usual_defaults,
        a_pod_without_containers_is_refused,
        the_spec_of_a_pod_counts_a_generation,
        a_role_may_have_colons_in_its_name,
        a_service_account_is_stored,
        a_controller_revision_is_stored_whole,
        an_admission_policy_is_stored,
        an_empty_map_of_data_is_left_out,
        a_config_map_that_is_immutable_keeps_its_data,
        a_secret_that_is_immutable_keeps_its_data,
        a_secret_keeps_its_type;
        differing: [
            a_config_map_with_a_number_is_refused =>
                "the embedded API has no schemas of built-in kinds and does not look at their values",
                "got 201";
            a_deployment_gets_the_defaults_of_its_kind =>
                "the embedded API fills in only those defaults of built-in kinds that our programs read",
                "found null";
        ]
    ]
}

fn secret(fields: &Value) -> Value {
    let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "one" } });
    for (name, value) in fields.as_object().into_iter().flatten() {
        secret[name] = value.clone();
    }
    secret
}

async fn a_secret_stores_texts_encoded(world: World) -> anyhow::Result<()> {
    let secret = secret(&json!({ "stringData": { "user": "me", "empty": "" } }));
    let created = world.post(&world.core("secrets"), &secret).await?.ok(201)?;
    same(created["data"].clone(), json!({ "user": "bWU=", "empty": "" }))?;
    ensure!(created.get("stringData").is_none(), "{created}");
    Ok(())
}

/// Creates an immutable object and tries to change it in every way.
async fn keeps_its_data(world: &World, path: &str, object: &Value, value: &str) -> anyhow::Result<()> {
    let made = world.post(&world.core(path), object).await?.ok(201)?;
    let one = world.core(&format!("{path}/one"));
    let changes = [
        (json!({ "data": { "a": value } }), vec!["data FieldValueForbidden"]),
        (json!({ "data": { "b": value } }), vec!["data FieldValueForbidden"]),
        (json!({ "immutable": false }), vec!["immutable FieldValueForbidden"]),
        (json!({ "immutable": null }), vec!["immutable FieldValueForbidden"]),
        (
            json!({ "immutable": null, "data": null }),
            vec!["immutable FieldValueForbidden", "data FieldValueForbidden"],
        ),
    ];
    for (change, wanted) in changes {
        let status = world.merge(&one, &change).await?.refused(422, "Invalid")?;
        same(causes(&status), wanted)?;
    }
    let labelled = world.merge(&one, &json!({ "metadata": { "labels": { "a": "b" } } })).await?.ok(200)?;
    same(labelled["data"].clone(), made["data"].clone())
}

async fn a_config_map_that_is_immutable_keeps_its_data(world: World) -> anyhow::Result<()> {
    let mut object = map("one");
    object["immutable"] = true.into();
    keeps_its_data(&world, "configmaps", &object, "2").await
}

async fn a_secret_that_is_immutable_keeps_its_data(world: World) -> anyhow::Result<()> {
    let object = secret(&json!({ "data": { "a": "YQ==" }, "immutable": true }));
    keeps_its_data(&world, "secrets", &object, "Yg==").await
}

async fn a_secret_keeps_its_type(world: World) -> anyhow::Result<()> {
    let mut object = world.post(&world.core("secrets"), &secret(&json!({}))).await?.ok(201)?;
    object["type"] = "example.com/other".into();
    let status = world.put(&world.core("secrets/one"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["type FieldValueInvalid"])
}

async fn a_text_of_a_secret_wins_over_its_data(world: World) -> anyhow::Result<()> {
    let secret = secret(&json!({ "data": { "a": "YQ==", "b": "Yg==" }, "stringData": { "a": "c" } }));
    let created = world.post(&world.core("secrets"), &secret).await?.ok(201)?;
    same(created["data"].clone(), json!({ "a": "Yw==", "b": "Yg==" }))
}

async fn a_patch_may_bring_texts_for_a_secret(world: World) -> anyhow::Result<()> {
    world.post(&world.core("secrets"), &secret(&json!({ "data": { "a": "YQ==" } }))).await?.ok(201)?;
    let patch = json!({ "stringData": { "b": "b" } });
    let patched = world.merge(&world.core("secrets/one"), &patch).await?.ok(200)?;
    same(patched["data"].clone(), json!({ "a": "YQ==", "b": "Yg==" }))
}

async fn a_secret_without_a_type_is_opaque(world: World) -> anyhow::Result<()> {
    let created = world.post(&world.core("secrets"), &secret(&json!({}))).await?.ok(201)?;
    same(created["type"].clone(), "Opaque")
}

fn lease(holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "one" },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 1,
            "acquireTime": "2026-01-02T03:04:05.678901Z", "renewTime": "2026-01-02T03:04:06.000000Z",
        },
    })
}

async fn a_lease_keeps_its_holder_and_times(world: World) -> anyhow::Result<()> {
    let path = world.at("coordination.k8s.io/v1", "leases");
    let mut object = world.post(&path, &lease("me")).await?.ok(201)?;
    same(object["spec"].clone(), lease("me")["spec"].clone())?;
    object["spec"]["holderIdentity"] = "you".into();
    object["spec"]["renewTime"] = "2026-01-02T03:04:16.100000Z".into();
    let replaced = world.put(&format!("{path}/one"), &object).await?.ok(200)?;
    same(replaced["spec"].clone(), object["spec"].clone())?;
    world.put(&format!("{path}/one"), &object).await?.refused(409, "Conflict")?;
    Ok(())
}

async fn a_lease_is_not_replaced_without_its_version(world: World) -> anyhow::Result<()> {
    let path = world.at("coordination.k8s.io/v1", "leases");
    world.post(&path, &lease("me")).await?.ok(201)?;
    let status = world.put(&format!("{path}/one"), &lease("you")).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.resourceVersion FieldValueInvalid"])
}

async fn a_lease_is_made_by_replacing_what_is_not_there(world: World) -> anyhow::Result<()> {
    let path = world.at("coordination.k8s.io/v1", "leases/one");
    let created = world.put(&path, &lease("me")).await?.ok(201)?;
    ensure!(created["metadata"]["uid"].is_string(), "{created}");
    world.get(&path).await?.ok(200)?;
    Ok(())
}

async fn an_object_of_most_kinds_is_not_made_by_replacing_it(world: World) -> anyhow::Result<()> {
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "one" } });
    let answer = world.put(&world.at("apps/v1", "deployments/one"), &deployment).await?;
    answer.refused(404, "NotFound")?;
    let answer = world.put(&world.core("secrets/one"), &secret(&json!({}))).await?;
    answer.refused(404, "NotFound")?;
    Ok(())
}

async fn a_new_namespace_is_active(world: World) -> anyhow::Result<()> {
    let name = world.unique("other");
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let created = world.post("/api/v1/namespaces", &namespace).await?.ok(201)?;
    same(created["status"].clone(), json!({ "phase": "Active" }))?;
    same(created["spec"].clone(), json!({ "finalizers": ["kubernetes"] }))?;
    same(created["metadata"]["labels"].clone(), json!({ "kubernetes.io/metadata.name": name }))
}

async fn the_label_of_a_namespace_cannot_be_taken_away(world: World) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{}", world.namespace);
    let patch = json!({ "metadata": { "labels": { "kubernetes.io/metadata.name": null, "a": "b" } } });
    let patched = world.merge(&path, &patch).await?.ok(200)?;
    same(
        patched["metadata"]["labels"].clone(),
        json!({ "a": "b", "kubernetes.io/metadata.name": world.namespace }),
    )
}

async fn a_node_brings_its_status_along(world: World) -> anyhow::Result<()> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": world.unique("node") },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }], "capacity": { "cpu": "2" } },
    });
    let created = world.post("/api/v1/nodes", &node).await?.ok(201)?;
    same(created["status"]["capacity"].clone(), json!({ "cpu": "2" }))?;
    same(created["status"]["conditions"][0]["type"].clone(), "Ready")
}

async fn a_node_keeps_its_labels_and_taints(world: World) -> anyhow::Result<()> {
    let name = world.unique("node");
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": { "zone": "a" } },
        "spec": { "taints": [{ "key": "k", "value": "v", "effect": "NoExecute" }] },
    });
    world.post("/api/v1/nodes", &node).await?.ok(201)?;
    let patch = json!({ "metadata": { "labels": { "zone": "b" } }, "spec": { "unschedulable": true } });
    let patched = world.merge(&format!("/api/v1/nodes/{name}"), &patch).await?.ok(200)?;
    same(patched["metadata"]["labels"]["zone"].clone(), "b")?;
    same(patched["spec"]["unschedulable"].clone(), true)?;
    same(patched["spec"]["taints"][0]["key"].clone(), "k")
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "one" },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }], "automountServiceAccountToken": false },
        "status": { "phase": "Running" },
    })
}

/// Creates a pod. In a real cluster, its namespace needs a service account first.
async fn make_pod(world: &World) -> anyhow::Result<Value> {
    world
        .eventually("the pod to be accepted", async || {
            let answer = world.post(&world.core("pods"), &pod()).await?;
            if answer.code == 403 {
                return Ok(None);
            }
            answer.ok(201).map(Some)
        })
        .await
}

async fn a_new_pod_is_pending(world: World) -> anyhow::Result<()> {
    let created = make_pod(&world).await?;
    same(created["status"]["phase"].clone(), "Pending")
}

async fn a_pod_has_the_usual_defaults(world: World) -> anyhow::Result<()> {
    let spec = make_pod(&world).await?["spec"].clone();
    same(spec["restartPolicy"].clone(), "Always")?;
    same(spec["terminationGracePeriodSeconds"].clone(), 30)?;
    same(spec["schedulerName"].clone(), "default-scheduler")?;
    same(spec["serviceAccountName"].clone(), "default")?;
    same(spec["dnsPolicy"].clone(), "ClusterFirst")?;
    same(spec["containers"][0]["imagePullPolicy"].clone(), "IfNotPresent")
}

async fn a_pod_without_containers_is_refused(world: World) -> anyhow::Result<()> {
    make_pod(&world).await?;
    let mut pod = pod();
    pod["metadata"]["name"] = "two".into();
    pod["spec"]["containers"] = json!([]);
    let status = world.post(&world.core("pods"), &pod).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["spec.containers FieldValueRequired"])
}

async fn the_spec_of_a_pod_counts_a_generation(world: World) -> anyhow::Result<()> {
    let created = make_pod(&world).await?;
    same(created["metadata"]["generation"].clone(), 1)?;
    let patch = json!([{ "op": "replace", "path": "/spec/containers/0/image", "value": "web:2" }]);
    let patched = world.json_patch(&world.core("pods/one"), &patch).await?.ok(200)?;
    same(patched["metadata"]["generation"].clone(), 2)
}

async fn a_role_may_have_colons_in_its_name(world: World) -> anyhow::Result<()> {
    let name = format!("Contract:{}", world.namespace);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    world.post(path, &role).await?.ok(201)?;
    let found = world.get(&format!("{path}/{name}")).await?.ok(200)?;
    same(found["rules"].clone(), role["rules"].clone())
}

async fn a_service_account_is_stored(world: World) -> anyhow::Result<()> {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot" } });
    world.post(&world.core("serviceaccounts"), &account).await?.ok(201)?;
    world.get(&world.core("serviceaccounts/robot")).await?.ok(200)?;
    Ok(())
}

async fn a_controller_revision_is_stored_whole(world: World) -> anyhow::Result<()> {
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": { "name": "one" },
        "data": { "spec": { "template": { "any": ["thing", 1, null] } } }, "revision": 3,
    });
    let created = world.post(&world.at("apps/v1", "controllerrevisions"), &revision).await?.ok(201)?;
    same(created["data"].clone(), revision["data"].clone())?;
    same(created["revision"].clone(), 3)
}

/// The smallest useful policy.
pub fn policy_spec() -> Value {
    json!({
        "spec": {
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": ["nowhere.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["things"],
                }],
            },
            "validations": [{ "expression": "object.metadata.name != 'x'" }],
        },
    })
}

async fn an_admission_policy_is_stored(world: World) -> anyhow::Result<()> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": world.unique("policy") },
        "spec": policy_spec()["spec"],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let created = world.post(path, &policy).await?.ok(201)?;
    same(created["metadata"]["generation"].clone(), 1)?;
    same(created["spec"]["validations"].clone(), policy["spec"]["validations"].clone())
}

async fn an_empty_map_of_data_is_left_out(world: World) -> anyhow::Result<()> {
    let object =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" }, "data": {} });
    let created = world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    ensure!(created.get("data").is_none(), "{created}");
    Ok(())
}

async fn a_config_map_with_a_number_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = super::world::map("one");
    object["data"]["a"] = 1.into();
    world.post(&world.core("configmaps"), &object).await?.refused(400, "BadRequest")?;
    Ok(())
}

async fn a_deployment_gets_the_defaults_of_its_kind(world: World) -> anyhow::Result<()> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    });
    let created = world.post(&world.at("apps/v1", "deployments"), &deployment).await?.ok(201)?;
    same(created["spec"]["progressDeadlineSeconds"].clone(), 600)
}
