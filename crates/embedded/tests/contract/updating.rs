//! Replacing objects: versions, generations, and what a client cannot change.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, map, same, widget};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_replacement_of_the_latest_version_is_stored,
        a_replacement_of_an_old_version_is_a_conflict,
        a_custom_object_is_not_replaced_without_its_version,
        a_config_map_is_replaced_without_its_version,
        a_version_that_is_no_number_is_refused,
        a_version_of_the_future_is_a_conflict,
        a_replacement_for_another_uid_is_a_conflict,
        a_replacement_of_another_name_is_refused,
        a_replacement_of_another_namespace_is_refused,
        an_object_that_is_not_there_is_not_replaced,
        a_replacement_that_changes_nothing_makes_no_version_and_no_event,
        a_change_of_the_spec_counts_a_generation,
        labels_and_annotations_count_no_generation,
        a_config_map_has_no_generation,
        a_client_does_not_set_the_generation,
        the_time_of_creation_cannot_be_changed,
        a_client_cannot_mark_an_object_as_deleted,
        a_replacement_drops_what_it_leaves_out,
        a_replacement_without_metadata_is_refused,
        a_dry_run_replaces_nothing,
        two_versions_of_a_replacement_differ,
        an_object_made_again_is_not_replaced_by_its_old_version,
        a_replacement_of_another_kind_is_refused,
    ]
}

fn titled() -> Value {
    json!({ "title": "plain" })
}

async fn a_replacement_of_the_latest_version_is_stored(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    object["spec"]["size"] = 3.into();
    let replaced = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(replaced["spec"]["size"].clone(), 3)?;
    ensure!(replaced["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"], "{replaced}");
    ensure!(replaced["metadata"]["uid"] == object["metadata"]["uid"], "{replaced}");
    same(world.get(&world.widgets("/one")).await?.ok(200)?, replaced)
}

async fn a_replacement_of_an_old_version_is_a_conflict(world: World) -> anyhow::Result<()> {
    let old = world.make_widget("one", titled()).await?;
    let mut object = old.clone();
    object["spec"]["size"] = 3.into();
    world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    let status = world.put(&world.widgets("/one"), &old).await?.refused(409, "Conflict")?;
    same(
        status["message"].clone(),
        "Operation cannot be fulfilled on widgets.contract.example.com \"one\": the object has been modified; \
         please apply your changes to the latest version and try again",
    )?;
    same(
        status["details"].clone(),
        json!({ "name": "one", "group": "contract.example.com", "kind": "widgets" }),
    )
}

async fn a_custom_object_is_not_replaced_without_its_version(world: World) -> anyhow::Result<()> {
    world.make_widget("one", titled()).await?;
    let answer = world.put(&world.widgets("/one"), &widget("one", titled())).await?;
    let status = answer.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.resourceVersion FieldValueInvalid"])?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(
        message.ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        "{message}"
    );
    Ok(())
}

async fn a_config_map_is_replaced_without_its_version(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let mut object = map("one");
    object["data"] = json!({ "b": "2" });
    let replaced = world.put(&world.core("configmaps/one"), &object).await?.ok(200)?;
    same(replaced["data"].clone(), json!({ "b": "2" }))
}

async fn a_version_that_is_no_number_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    object["metadata"]["resourceVersion"] = "latest".into();
    let answer = world.put(&world.widgets("/one"), &object).await?;
    same(answer.code, 500)?;
    same(answer.body["message"].clone(), "strconv.ParseUint: parsing \"latest\": invalid syntax")
}

async fn a_version_of_the_future_is_a_conflict(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    object["metadata"]["resourceVersion"] = "99999999".into();
    world.put(&world.widgets("/one"), &object).await?.refused(409, "Conflict")?;
    Ok(())
}

async fn a_replacement_for_another_uid_is_a_conflict(world: World) -> anyhow::Result<()> {
    let mut object = world.make_map("one").await?;
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    object["metadata"]["uid"] = "another".into();
    let status = world.put(&world.core("configmaps/one"), &object).await?.refused(409, "Conflict")?;
    let words = format!("Precondition failed: UID in precondition: another, UID in object meta: {uid}");
    ensure!(status["message"].as_str().is_some_and(|message| message.ends_with(&words)), "{status}");
    Ok(())
}

async fn a_replacement_of_another_name_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = world.make_map("one").await?;
    object["metadata"]["name"] = "two".into();
    let status = world.put(&world.core("configmaps/one"), &object).await?.refused(400, "BadRequest")?;
    same(status["message"].clone(), "the name of the object (two) does not match the name on the URL (one)")
}

async fn a_replacement_of_another_namespace_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = world.make_map("one").await?;
    object["metadata"]["namespace"] = "default".into();
    let status = world.put(&world.core("configmaps/one"), &object).await?.refused(400, "BadRequest")?;
    same(
        status["message"].clone(),
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

async fn an_object_that_is_not_there_is_not_replaced(world: World) -> anyhow::Result<()> {
    let answer = world.put(&world.core("configmaps/one"), &map("one")).await?;
    let status = answer.refused(404, "NotFound")?;
    same(status["message"].clone(), "configmaps \"one\" not found")?;
    let mut object = widget("one", titled());
    object["metadata"]["resourceVersion"] = "1".into();
    world.put(&world.widgets("/one"), &object).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_replacement_that_changes_nothing_makes_no_version_and_no_event(
    world: World,
) -> anyhow::Result<()> {
    let object = world.make_widget("one", titled()).await?;
    let same_again = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(same_again["metadata"]["resourceVersion"].clone(), object["metadata"]["resourceVersion"].clone())?;
    let sentinel = world.make_widget("two", titled()).await?;
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let path = world.widgets(&format!("?watch=1&timeoutSeconds=1&resourceVersion={version}"));
    let text = world.get(&path).await?.text;
    let first: Value = serde_json::from_str(text.lines().next().unwrap_or_default())?;
    same(first["object"]["metadata"]["name"].clone(), sentinel["metadata"]["name"].clone())
}

async fn a_change_of_the_spec_counts_a_generation(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    for generation in 2..5 {
        object["spec"]["size"] = generation.into();
        object = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
        same(object["metadata"]["generation"].clone(), generation)?;
    }
    Ok(())
}

async fn labels_and_annotations_count_no_generation(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    object["metadata"]["labels"] = json!({ "a": "b" });
    object["metadata"]["annotations"] = json!({ "a": "b" });
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let replaced = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(replaced["metadata"]["generation"].clone(), 1)?;
    ensure!(replaced["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"], "{replaced}");
    Ok(())
}

async fn a_config_map_has_no_generation(world: World) -> anyhow::Result<()> {
    let mut object = world.make_map("one").await?;
    object["data"]["b"] = "2".into();
    let replaced = world.put(&world.core("configmaps/one"), &object).await?.ok(200)?;
    same(replaced["metadata"]["generation"].clone(), Value::Null)
}

async fn a_client_does_not_set_the_generation(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    object["metadata"]["generation"] = 9.into();
    let replaced = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(replaced["metadata"]["generation"].clone(), 1)
}

async fn the_time_of_creation_cannot_be_changed(world: World) -> anyhow::Result<()> {
    let created = world.make_widget("one", titled()).await?;
    let mut object = created.clone();
    object["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let replaced = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(replaced["metadata"]["creationTimestamp"].clone(), created["metadata"]["creationTimestamp"].clone())
}

async fn a_client_cannot_mark_an_object_as_deleted(world: World) -> anyhow::Result<()> {
    let mut object = world.make_map("one").await?;
    object["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    let status = world.put(&world.core("configmaps/one"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.deletionTimestamp FieldValueInvalid"])
}

async fn a_replacement_drops_what_it_leaves_out(world: World) -> anyhow::Result<()> {
    let created =
        world.make_widget("one", json!({ "title": "plain", "tags": ["a"], "color": "blue" })).await?;
    let mut object = widget("one", titled());
    object["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let replaced = world.put(&world.widgets("/one"), &object).await?.ok(200)?;
    same(
        replaced["spec"].clone(),
        json!({ "title": "plain", "color": "red", "size": 1, "limits": { "soft": 5 } }),
    )?;
    same(replaced["metadata"]["uid"].clone(), created["metadata"]["uid"].clone())?;
    same(replaced["metadata"]["creationTimestamp"].clone(), created["metadata"]["creationTimestamp"].clone())
}

async fn a_replacement_without_metadata_is_refused(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "b": "2" } });
    let status = world.put(&world.core("configmaps/one"), &object).await?.refused(400, "BadRequest")?;
    same(
        status["message"].clone(),
        "the name of the object (one based on URL) was undeterminable: name must be provided",
    )
}

async fn a_dry_run_replaces_nothing(world: World) -> anyhow::Result<()> {
    let created = world.make_widget("one", titled()).await?;
    let mut object = created.clone();
    object["spec"]["size"] = 3.into();
    let shown = world.put(&world.widgets("/one?dryRun=All"), &object).await?.ok(200)?;
    same(shown["spec"]["size"].clone(), 3)?;
    same(shown["metadata"]["generation"].clone(), 2)?;
    same(shown["metadata"]["resourceVersion"].clone(), created["metadata"]["resourceVersion"].clone())?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, created)
}

async fn two_versions_of_a_replacement_differ(world: World) -> anyhow::Result<()> {
    let mut object = world.make_map("one").await?;
    let mut last = 0;
    for number in 0..5 {
        object["data"]["a"] = number.to_string().into();
        object = world.put(&world.core("configmaps/one"), &object).await?.ok(200)?;
        let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?;
        ensure!(version > last, "{version} after {last}");
        last = version;
    }
    Ok(())
}

async fn an_object_made_again_is_not_replaced_by_its_old_version(world: World) -> anyhow::Result<()> {
    let old = world.make_widget("one", titled()).await?;
    world.delete(&world.widgets("/one"), &Value::Null).await?.ok(200)?;
    world.make_widget("one", titled()).await?;
    world.put(&world.widgets("/one"), &old).await?.refused(409, "Conflict")?;
    Ok(())
}

async fn a_replacement_of_another_kind_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", titled()).await?;
    object["kind"] = "Gadget".into();
    let status = world.put(&world.widgets("/one"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["kind FieldValueInvalid"])
}
