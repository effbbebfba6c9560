//! The status as a part of its own.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_status_is_written_at_its_own_path,
        a_status_write_leaves_the_spec_alone,
        a_status_write_of_a_custom_object_leaves_the_metadata_alone,
        a_status_write_counts_no_generation,
        a_spec_write_leaves_the_status_alone,
        a_status_is_read_with_the_whole_object,
        an_old_version_of_a_status_is_a_conflict,
        a_custom_status_needs_a_version,
        a_status_that_breaks_the_schema_is_refused,
        a_status_write_does_not_look_at_the_spec,
        unknown_fields_of_a_status_are_dropped,
        a_status_that_is_left_out_is_removed,
        a_status_patch_leaves_the_spec_alone,
        a_json_patch_of_the_spec_at_the_status_path_changes_nothing,
        a_status_write_that_changes_nothing_makes_no_version,
        a_dry_run_writes_no_status,
        a_kind_without_a_status_has_no_such_path,
        nothing_is_created_at_the_status_path,
        a_status_of_an_object_that_is_not_there_is_not_found,
        the_status_of_a_node_may_bring_labels,
        a_deployment_keeps_spec_and_status_apart,
    ]
}

async fn ready(world: &World) -> anyhow::Result<Value> {
    let mut object = world.make_widget("one", json!({ "title": "plain" })).await?;
    object["status"] = json!({ "phase": "Ready", "observedGeneration": 1 });
    world.put(&world.widgets("/one/status"), &object).await?.ok(200)
}

async fn a_status_is_written_at_its_own_path(world: World) -> anyhow::Result<()> {
    let written = ready(&world).await?;
    same(written["status"].clone(), json!({ "phase": "Ready", "observedGeneration": 1 }))?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, written)
}

async fn a_status_write_leaves_the_spec_alone(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    let spec = object["spec"].clone();
    object["spec"]["size"] = 9.into();
    object["status"]["phase"] = "New".into();
    let written = world.put(&world.widgets("/one/status"), &object).await?.ok(200)?;
    same(written["spec"].clone(), spec)?;
    same(written["status"]["phase"].clone(), "New")
}

async fn a_status_write_of_a_custom_object_leaves_the_metadata_alone(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    object["metadata"]["labels"] = json!({ "a": "b" });
    object["metadata"]["annotations"] = json!({ "a": "b" });
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object["status"]["phase"] = "New".into();
    let written = world.put(&world.widgets("/one/status"), &object).await?.ok(200)?;
    for field in ["labels", "annotations", "finalizers"] {
        ensure!(written["metadata"].get(field).is_none(), "{field}: {written}");
    }
    Ok(())
}

async fn a_status_write_counts_no_generation(world: World) -> anyhow::Result<()> {
    let written = ready(&world).await?;
    same(written["metadata"]["generation"].clone(), 1)
}

async fn a_spec_write_leaves_the_status_alone(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    let status = object["status"].clone();
    object["spec"]["size"] = 9.into();
    object["status"] = json!({ "phase": "New" });
    let written = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(written["status"].clone(), status.clone())?;
    let patch = json!({ "spec": { "size": 8 }, "status": { "phase": "New" } });
    let written = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(written["status"].clone(), status)?;
    same(written["spec"]["size"].clone(), 8)
}

async fn a_status_is_read_with_the_whole_object(world: World) -> anyhow::Result<()> {
    let written = ready(&world).await?;
    same(world.get(&world.widgets("/one/status")).await?.ok(200)?, written)
}

async fn an_old_version_of_a_status_is_a_conflict(world: World) -> anyhow::Result<()> {
    let mut old = world.make_widget("one", json!({ "title": "plain" })).await?;
    world.merge(&world.widgets("/one"), &json!({ "spec": { "size": 2 } })).await?.ok(200)?;
    old["status"] = json!({ "phase": "Ready" });
    world.put(&world.widgets("/one/status"), &old).await?.refused(409, "Conflict")?;
    Ok(())
}

async fn a_custom_status_needs_a_version(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object["status"]["phase"] = "New".into();
    let status = world.put(&world.widgets("/one/status"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.resourceVersion FieldValueInvalid"])
}

async fn a_status_that_breaks_the_schema_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    object["status"]["phase"] = "Odd".into();
    object["status"]["observedGeneration"] = "many".into();
    let status = world.put(&world.widgets("/one/status"), &object).await?.refused(422, "Invalid")?;
    let mut found = causes(&status);
    found.sort();
    same(
        found,
        vec!["status.observedGeneration FieldValueTypeInvalid", "status.phase FieldValueNotSupported"],
    )
}

async fn a_status_write_does_not_look_at_the_spec(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    object["spec"] = json!({ "size": "many" });
    object["status"]["phase"] = "New".into();
    let written = world.put(&world.widgets("/one/status"), &object).await?.ok(200)?;
    same(written["spec"]["title"].clone(), "plain")
}

async fn unknown_fields_of_a_status_are_dropped(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    object["status"]["bogus"] = 1.into();
    let answer = world.put(&world.widgets("/one/status"), &object).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"status.bogus\\\"\""])?;
    same(answer.ok(200)?["status"]["bogus"].clone(), Value::Null)?;
    let path = world.widgets("/one/status?fieldValidation=Strict");
    world.put(&path, &object).await?.refused(400, "BadRequest")?;
    Ok(())
}

async fn a_status_that_is_left_out_is_removed(world: World) -> anyhow::Result<()> {
    let mut object = ready(&world).await?;
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let written = world.put(&world.widgets("/one/status"), &object).await?.ok(200)?;
    ensure!(written.get("status").is_none(), "{written}");
    Ok(())
}

async fn a_status_patch_leaves_the_spec_alone(world: World) -> anyhow::Result<()> {
    ready(&world).await?;
    let patch = json!({ "spec": { "size": 9 }, "metadata": { "labels": { "a": "b" } }, "status": { "phase": "New" } });
    let written = world.merge(&world.widgets("/one/status"), &patch).await?.ok(200)?;
    same(written["spec"]["size"].clone(), 1)?;
    same(written["metadata"]["labels"].clone(), Value::Null)?;
    same(written["status"].clone(), json!({ "phase": "New", "observedGeneration": 1 }))
}

async fn a_json_patch_of_the_spec_at_the_status_path_changes_nothing(world: World) -> anyhow::Result<()> {
    let before = ready(&world).await?;
    let patch = json!([{ "op": "replace", "path": "/spec/size", "value": 9 }]);
    let written = world.json_patch(&world.widgets("/one/status"), &patch).await?.ok(200)?;
    same(written["spec"].clone(), before["spec"].clone())?;
    same(written["metadata"]["resourceVersion"].clone(), before["metadata"]["resourceVersion"].clone())
}

async fn a_status_write_that_changes_nothing_makes_no_version(world: World) -> anyhow::Result<()> {
    let before = ready(&world).await?;
    let written = world.put(&world.widgets("/one/status"), &before).await?.ok(200)?;
    same(written["metadata"]["resourceVersion"].clone(), before["metadata"]["resourceVersion"].clone())
}

async fn a_dry_run_writes_no_status(world: World) -> anyhow::Result<()> {
    let before = ready(&world).await?;
    let patch = json!({ "status": { "phase": "New" } });
    let shown = world.merge(&world.widgets("/one/status?dryRun=All"), &patch).await?.ok(200)?;
    same(shown["status"]["phase"].clone(), "New")?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, before)
}

async fn a_kind_without_a_status_has_no_such_path(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let status = world.get(&world.core("configmaps/one/status")).await?.refused(404, "NotFound")?;
    same(status["message"].clone(), "the server could not find the requested resource")
}

async fn nothing_is_created_at_the_status_path(world: World) -> anyhow::Result<()> {
    let object = ready(&world).await?;
    let answer = world.post(&world.widgets("/one/status"), &object).await?;
    answer.refused(405, "MethodNotAllowed")?;
    let answer = world.delete(&world.widgets("/one/status"), &Value::Null).await?;
    answer.refused(405, "MethodNotAllowed")?;
    Ok(())
}

async fn a_status_of_an_object_that_is_not_there_is_not_found(world: World) -> anyhow::Result<()> {
    let patch = json!({ "status": { "phase": "New" } });
    let status = world.merge(&world.widgets("/none/status"), &patch).await?.refused(404, "NotFound")?;
    same(status["message"].clone(), "widgets.contract.example.com \"none\" not found")
}

async fn the_status_of_a_node_may_bring_labels(world: World) -> anyhow::Result<()> {
    let name = world.unique("node");
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    world.post("/api/v1/nodes", &node).await?.ok(201)?;
    let patch = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "unschedulable": true }, "status": { "phase": "Running" },
    });
    let written = world.merge(&format!("/api/v1/nodes/{name}/status"), &patch).await?.ok(200)?;
    same(written["metadata"]["labels"]["a"].clone(), "b")?;
    same(written["spec"]["unschedulable"].clone(), Value::Null)?;
    same(written["status"]["phase"].clone(), "Running")
}

async fn a_deployment_keeps_spec_and_status_apart(world: World) -> anyhow::Result<()> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
        "status": { "replicas": 7 },
    });
    let created = world.post(&world.at("apps/v1", "deployments"), &deployment).await?.ok(201)?;
    same(created["status"]["replicas"].clone(), Value::Null)?;
    same(created["metadata"]["generation"].clone(), 1)?;
    let patch = json!({ "spec": { "replicas": 5 }, "status": { "replicas": 2, "observedGeneration": 1 } });
    let written = world.merge(&world.at("apps/v1", "deployments/web/status"), &patch).await?.ok(200)?;
    same(written["spec"]["replicas"].clone(), 2)?;
    same(written["status"]["replicas"].clone(), 2)?;
    same(written["metadata"]["generation"].clone(), 1)?;
    let written = world.merge(&world.at("apps/v1", "deployments/web"), &patch).await?.ok(200)?;
    same(written["spec"]["replicas"].clone(), 5)?;
    same(written["metadata"]["generation"].clone(), 2)
}
