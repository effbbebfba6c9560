//! Definitions: a kind is added, changed and removed with its definition.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, define, same, served};
use super::{Case, cases};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub fn cases() -> Vec<Case> {
    cases![
        a_posted_definition_is_served,
        a_definition_says_that_it_is_established,
        a_definition_gets_the_names_it_leaves_out,
        a_definition_counts_generations,
        a_definition_of_another_name_is_refused,
        a_definition_that_is_there_is_not_created_again,
        a_definition_without_a_stored_version_is_refused,
        a_definition_without_a_schema_is_refused,
        a_definition_of_the_wrong_form_is_refused,
        a_definition_is_not_replaced_without_its_version,
        a_version_that_is_not_served_is_not_found,
        an_added_version_is_served,
        a_changed_schema_applies_to_the_next_write,
        an_object_stored_under_looser_rules_accepts_other_writes,
        an_object_stored_under_looser_rules_is_validated_when_it_changes,
        a_deleted_definition_takes_its_objects_along,
        a_definition_made_again_has_no_objects,
        a_kind_of_the_cluster_has_no_namespaces,
        a_kind_without_a_status_part_has_one_piece,
        a_kind_that_takes_everything_keeps_everything,
        one_object_is_seen_in_two_versions,
        an_object_created_in_one_version_is_read_in_another,
        the_other_version_fills_in_its_own_defaults_when_it_writes,
        a_write_in_the_other_version_drops_what_it_does_not_know,
        a_dry_run_of_a_definition_serves_nothing,
        the_definitions_are_listed_with_their_groups,
    ]
}

/// A small definition in a group of the case's own.
fn gadget(world: &World) -> Value {
    let group = group(world);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("gadgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": "Gadget", "plural": "gadgets" },
            "versions": [version("v1", &json!({ "size": { "type": "integer" }, "word": { "type": "string" } }))],
        },
    })
}

fn group(world: &World) -> String {
    format!("{}.example.com", world.namespace)
}

fn version(name: &str, properties: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": true, "subresources": { "status": {} },
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": { "spec": { "type": "object", "properties": properties } },
            },
        },
    })
}

fn one(world: &World, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1", group(world)), "kind": "Gadget", "metadata": { "name": "one" }, "spec": spec,
    })
}

fn gadgets(world: &World, rest: &str) -> String {
    world.at(&format!("{}/v1", group(world)), &format!("gadgets{rest}"))
}

fn itself(world: &World) -> String {
    format!("{PATH}/gadgets.{}", group(world))
}

/// Posts the definition and waits until its kind accepts objects.
async fn install(world: &World, definition: &Value) -> anyhow::Result<Value> {
    let created = define(world, definition).await?;
    served(world, definition).await?;
    Ok(created)
}

async fn a_posted_definition_is_served(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    let created = world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    same(created["spec"].clone(), json!({ "size": 1 }))
}

async fn a_definition_says_that_it_is_established(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    let found = world.get(&itself(&world)).await?.ok(200)?;
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for wanted in ["NamesAccepted", "Established"] {
        ensure!(
            conditions.iter().any(|one| one["type"] == wanted && one["status"] == "True"),
            "{wanted}: {found}"
        );
    }
    same(found["status"]["storedVersions"].clone(), json!(["v1"]))?;
    same(found["status"]["acceptedNames"]["plural"].clone(), "gadgets")
}

async fn a_definition_gets_the_names_it_leaves_out(world: World) -> anyhow::Result<()> {
    let created = install(&world, &gadget(&world)).await?;
    same(created["spec"]["names"]["singular"].clone(), "gadget")?;
    same(created["spec"]["names"]["listKind"].clone(), "GadgetList")?;
    same(created["spec"]["conversion"].clone(), json!({ "strategy": "None" }))?;
    same(world.get(&gadgets(&world, "")).await?.ok(200)?["kind"].clone(), "GadgetList")
}

async fn a_definition_counts_generations(world: World) -> anyhow::Result<()> {
    let created = install(&world, &gadget(&world)).await?;
    same(created["metadata"]["generation"].clone(), 1)?;
    let patch = json!({ "spec": { "names": { "shortNames": ["gd"] } } });
    let patched = world.merge(&itself(&world), &patch).await?.ok(200)?;
    same(patched["metadata"]["generation"].clone(), 2)
}

async fn a_definition_of_another_name_is_refused(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    definition["metadata"]["name"] = format!("other.{}", group(&world)).into();
    let status = world.post(PATH, &definition).await?.refused(422, "Invalid")?;
    ensure!(causes(&status).contains(&"metadata.name FieldValueInvalid".to_owned()), "{status}");
    Ok(())
}

async fn a_definition_that_is_there_is_not_created_again(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    world.post(PATH, &gadget(&world)).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

async fn a_definition_without_a_stored_version_is_refused(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    definition["spec"]["versions"][0]["storage"] = false.into();
    let status = world.post(PATH, &definition).await?.refused(422, "Invalid")?;
    ensure!(causes(&status).contains(&"spec.versions FieldValueInvalid".to_owned()), "{status}");
    let mut definition = gadget(&world);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    definition["spec"]["versions"] = json!([definition["spec"]["versions"][0], second]);
    let status = world.post(PATH, &definition).await?.refused(422, "Invalid")?;
    ensure!(causes(&status).contains(&"spec.versions FieldValueInvalid".to_owned()), "{status}");
    Ok(())
}

async fn a_definition_without_a_schema_is_refused(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    if let Some(version) = definition["spec"]["versions"][0].as_object_mut() {
        version.remove("schema");
    }
    let status = world.post(PATH, &definition).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["spec.versions[0].schema.openAPIV3Schema FieldValueRequired"])
}

async fn a_definition_of_the_wrong_form_is_refused(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    definition["spec"]["names"] = "gadgets".into();
    world.post(PATH, &definition).await?.refused(400, "BadRequest")?;
    Ok(())
}

async fn a_definition_is_not_replaced_without_its_version(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    let status = world.put(&itself(&world), &gadget(&world)).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.resourceVersion FieldValueInvalid"])
}

/// The definition with a second version, served or not.
fn with_second(world: &World, is_served: bool) -> Value {
    let mut definition = gadget(world);
    let mut second = version("v2", &json!({ "size": { "type": "integer" } }));
    second["served"] = is_served.into();
    second["storage"] = false.into();
    definition["spec"]["versions"] = json!([definition["spec"]["versions"][0], second]);
    definition
}

async fn a_version_that_is_not_served_is_not_found(world: World) -> anyhow::Result<()> {
    define(&world, &with_second(&world, false)).await?;
    served(&world, &gadget(&world)).await?;
    same(world.get(&world.at(&format!("{}/v2", group(&world)), "gadgets")).await?.code, 404)
}

async fn an_added_version_is_served(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    let definition = with_second(&world, true);
    let patch = json!({ "spec": { "versions": definition["spec"]["versions"] } });
    world.merge(&itself(&world), &patch).await?.ok(200)?;
    served(&world, &definition).await?;
    let found = world.get(&world.at(&format!("{}/v2", group(&world)), "gadgets/one")).await?.ok(200)?;
    same(found["apiVersion"].clone(), format!("{}/v2", group(&world)))?;
    same(found["spec"]["size"].clone(), 1)
}

/// Requires a size of at least 5, and waits until the server refuses less.
async fn tighten(world: &World) -> anyhow::Result<()> {
    let properties = json!({ "size": { "type": "integer", "minimum": 5 }, "word": { "type": "string" } });
    let patch = json!({ "spec": { "versions": [version("v1", &properties)] } });
    world.merge(&itself(world), &patch).await?.ok(200)?;
    world
        .eventually("the new schema", async || {
            let mut probe = one(world, &json!({ "size": 1 }));
            probe["metadata"]["name"] = "probe".into();
            let answer = world.post(&gadgets(world, "?dryRun=All"), &probe).await?;
            Ok((answer.code == 422).then_some(()))
        })
        .await
}

async fn a_changed_schema_applies_to_the_next_write(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    tighten(&world).await?;
    let answer = world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?;
    same(causes(&answer.refused(422, "Invalid")?), vec!["spec.size FieldValueInvalid"])
}

async fn an_object_stored_under_looser_rules_accepts_other_writes(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    tighten(&world).await?;
    let patch = json!({ "spec": { "word": "new" } });
    let patched = world.merge(&gadgets(&world, "/one"), &patch).await?.ok(200)?;
    same(patched["spec"].clone(), json!({ "size": 1, "word": "new" }))
}

async fn an_object_stored_under_looser_rules_is_validated_when_it_changes(
    world: World,
) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    tighten(&world).await?;
    let answer = world.merge(&gadgets(&world, "/one"), &json!({ "spec": { "size": 2 } })).await?;
    same(causes(&answer.refused(422, "Invalid")?), vec!["spec.size FieldValueInvalid"])
}

/// Deletes the definition and waits until its kind is gone.
async fn uninstall(world: &World) -> anyhow::Result<()> {
    world.delete(&itself(world), &Value::Null).await?.ok(200)?;
    world
        .eventually("the kind to be gone", async || {
            let is_gone = world.get(&itself(world)).await?.code == 404;
            Ok((is_gone && world.get(&gadgets(world, "")).await?.code == 404).then_some(()))
        })
        .await
}

async fn a_deleted_definition_takes_its_objects_along(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    uninstall(&world).await?;
    same(world.get(&gadgets(&world, "/one")).await?.code, 404)
}

async fn a_definition_made_again_has_no_objects(world: World) -> anyhow::Result<()> {
    install(&world, &gadget(&world)).await?;
    world.post(&gadgets(&world, ""), &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    uninstall(&world).await?;
    install(&world, &gadget(&world)).await?;
    let list = world.get(&gadgets(&world, "")).await?.ok(200)?;
    same(list["items"].clone(), json!([]))
}

async fn a_kind_of_the_cluster_has_no_namespaces(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    definition["spec"]["scope"] = "Cluster".into();
    install(&world, &definition).await?;
    let path = format!("/apis/{}/v1/gadgets", group(&world));
    let created = world.post(&path, &one(&world, &json!({ "size": 1 }))).await?.ok(201)?;
    same(created["metadata"]["namespace"].clone(), Value::Null)?;
    world.get(&format!("{path}/one")).await?.ok(200)?;
    same(world.get(&gadgets(&world, "/one")).await?.code, 404)
}

async fn a_kind_without_a_status_part_has_one_piece(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({ "type": "object", "properties": { "phase": { "type": "string" } } });
    if let Some(version) = version.as_object_mut() {
        version.remove("subresources");
    }
    install(&world, &definition).await?;
    let mut object = one(&world, &json!({ "size": 1 }));
    object["status"] = json!({ "phase": "Ready" });
    let created = world.post(&gadgets(&world, ""), &object).await?.ok(201)?;
    same(created["status"]["phase"].clone(), "Ready")?;
    let patch = json!({ "status": { "phase": "New" } });
    let patched = world.merge(&gadgets(&world, "/one"), &patch).await?.ok(200)?;
    same(patched["status"]["phase"].clone(), "New")?;
    same(patched["metadata"]["generation"].clone(), 2)?;
    same(world.get(&gadgets(&world, "/one/status")).await?.code, 404)
}

async fn a_kind_that_takes_everything_keeps_everything(world: World) -> anyhow::Result<()> {
    let mut definition = gadget(&world);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    install(&world, &definition).await?;
    let mut object = one(&world, &json!({ "any": ["thing"] }));
    object["extra"] = json!({ "a": 1 });
    let created = world.post(&gadgets(&world, "?fieldValidation=Strict"), &object).await?.ok(201)?;
    same(created["spec"].clone(), json!({ "any": ["thing"] }))?;
    same(created["extra"].clone(), json!({ "a": 1 }))
}

async fn one_object_is_seen_in_two_versions(world: World) -> anyhow::Result<()> {
    let created = world.make_widget("one", json!({ "title": "plain", "tags": ["a"] })).await?;
    let old = world.at("contract.example.com/v1alpha1", "widgets/one");
    let found = world.get(&old).await?.ok(200)?;
    same(found["apiVersion"].clone(), "contract.example.com/v1alpha1")?;
    same(found["spec"].clone(), json!({ "title": "plain", "size": 1, "color": "red" }))?;
    same(found["metadata"]["resourceVersion"].clone(), created["metadata"]["resourceVersion"].clone())?;
    let list = world.get(&world.at("contract.example.com/v1alpha1", "widgets")).await?.ok(200)?;
    same(list["items"][0]["apiVersion"].clone(), "contract.example.com/v1alpha1")?;
    same(list["items"][0]["spec"].clone(), found["spec"].clone())?;
    same(list["apiVersion"].clone(), "contract.example.com/v1alpha1")
}

async fn an_object_created_in_one_version_is_read_in_another(world: World) -> anyhow::Result<()> {
    let mut object = super::world::widget("one", json!({ "title": "plain", "size": 3 }));
    object["apiVersion"] = "contract.example.com/v1alpha1".into();
    let path = world.at("contract.example.com/v1alpha1", "widgets");
    let created = world.post(&path, &object).await?.ok(201)?;
    same(created["spec"].clone(), json!({ "title": "plain", "size": 3, "color": "red" }))?;
    let found = world.get(&world.widgets("/one")).await?.ok(200)?;
    same(
        found["spec"].clone(),
        json!({ "title": "plain", "size": 3, "color": "red", "limits": { "soft": 5 } }),
    )
}

async fn the_other_version_fills_in_its_own_defaults_when_it_writes(world: World) -> anyhow::Result<()> {
    let mut object = super::world::widget("one", json!({ "title": "plain" }));
    object["apiVersion"] = "contract.example.com/v1alpha1".into();
    let path = world.at("contract.example.com/v1alpha1", "widgets");
    let created = world.post(&path, &object).await?.ok(201)?;
    same(created["spec"]["size"].clone(), 7)?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?["spec"]["size"].clone(), 7)
}

async fn a_write_in_the_other_version_drops_what_it_does_not_know(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain", "tags": ["a"], "note": "hello" })).await?;
    let path = world.at("contract.example.com/v1alpha1", "widgets/one");
    let patched = world.merge(&path, &json!({ "spec": { "color": "blue" } })).await?.ok(200)?;
    same(patched["spec"].clone(), json!({ "title": "plain", "size": 1, "color": "blue" }))?;
    let found = world.get(&world.widgets("/one")).await?.ok(200)?;
    same(found["spec"]["tags"].clone(), Value::Null)
}

async fn a_dry_run_of_a_definition_serves_nothing(world: World) -> anyhow::Result<()> {
    world.post(&format!("{PATH}?dryRun=All"), &gadget(&world)).await?.ok(201)?;
    same(world.get(&itself(&world)).await?.code, 404)?;
    same(world.get(&gadgets(&world, "")).await?.code, 404)
}

async fn the_definitions_are_listed_with_their_groups(world: World) -> anyhow::Result<()> {
    let list = world.get(PATH).await?.ok(200)?;
    let names: Vec<&str> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|definition| definition["metadata"]["name"].as_str())
        .collect();
    for wanted in
        ["imagepulljobs.apps.kruise.io", "imageprefetches.ofen.cybozu.io", "widgets.contract.example.com"]
    {
        ensure!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    same(list["kind"].clone(), "CustomResourceDefinitionList")
}
