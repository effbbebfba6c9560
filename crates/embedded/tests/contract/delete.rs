//! Deletion: its answers, its conditions, and collections.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::list::{make_maps, names, version};
use super::world::{World, causes, map, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_deleted_object_is_gone_and_the_answer_says_which,
        the_answer_to_deleting_a_custom_object_names_its_group,
        the_answer_to_deleting_an_account_is_the_account,
        deleting_what_is_not_there_is_not_found,
        the_name_of_a_deleted_object_is_free,
        a_deletion_with_the_right_conditions_succeeds,
        a_deletion_of_another_uid_is_refused,
        a_deletion_of_another_version_is_refused,
        a_dry_deletion_deletes_nothing,
        an_unknown_propagation_is_refused,
        two_options_for_propagation_are_refused,
        an_unknown_dry_run_in_the_body_is_refused,
        options_in_the_body_override_those_of_the_query,
        a_collection_is_deleted_and_answered,
        a_collection_is_deleted_by_labels,
        a_collection_is_deleted_by_fields,
        a_collection_is_deleted_up_to_a_limit,
        a_collection_with_finalizers_is_marked,
        a_dry_deletion_of_a_collection_deletes_nothing,
        a_collection_of_all_namespaces_is_not_deleted,
        namespaces_are_not_deleted_together,
        a_collection_with_an_invalid_selector_is_not_deleted,
    ]
}

pub fn is_marked(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub async fn make_held(world: &World, name: &str, finalizers: &[&str]) -> anyhow::Result<Value> {
    let mut object = map(name);
    object["metadata"]["finalizers"] = json!(finalizers);
    world.post(&world.core("configmaps"), &object).await?.ok(201)
}

pub async fn read(world: &World, name: &str) -> anyhow::Result<Value> {
    world.get(&world.core(&format!("configmaps/{name}"))).await?.ok(200)
}

pub async fn is_gone(world: &World, name: &str) -> anyhow::Result<()> {
    world.get(&world.core(&format!("configmaps/{name}"))).await?.refused(404, "NotFound").map(drop)
}

pub async fn delete(world: &World, rest: &str, options: Value) -> anyhow::Result<Value> {
    world.delete(&world.core(&format!("configmaps/{rest}")), &options).await?.ok(200)
}

async fn a_deleted_object_is_gone_and_the_answer_says_which(world: World) -> anyhow::Result<()> {
    let made = world.make_map("one").await?;
    let answer = delete(&world, "one", Value::Null).await?;
    let wanted = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": "one", "kind": "configmaps", "uid": made["metadata"]["uid"] },
    });
    same(answer, wanted)?;
    is_gone(&world, "one").await
}

async fn the_answer_to_deleting_a_custom_object_names_its_group(world: World) -> anyhow::Result<()> {
    let made = world.make_widget("one", json!({ "title": "plain" })).await?;
    let answer = world.delete(&world.widgets("/one"), &Value::Null).await?.ok(200)?;
    let uid = &made["metadata"]["uid"];
    let wanted = json!({ "name": "one", "group": "contract.example.com", "kind": "widgets", "uid": uid });
    same(answer["details"].clone(), wanted)
}

async fn the_answer_to_deleting_an_account_is_the_account(world: World) -> anyhow::Result<()> {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "one" } });
    let made = world.post(&world.core("serviceaccounts"), &account).await?.ok(201)?;
    let answer = world.delete(&world.core("serviceaccounts/one"), &Value::Null).await?.ok(200)?;
    same(answer["kind"].clone(), "ServiceAccount")?;
    same(answer["metadata"]["uid"].clone(), made["metadata"]["uid"].clone())?;
    ensure!(!is_marked(&answer) && version(&answer)? > version(&made)?, "{answer}");
    Ok(())
}

async fn deleting_what_is_not_there_is_not_found(world: World) -> anyhow::Result<()> {
    let options = json!({ "preconditions": { "uid": "some" } });
    for options in [Value::Null, options] {
        let status =
            world.delete(&world.core("configmaps/none"), &options).await?.refused(404, "NotFound")?;
        same(status["message"].clone(), "configmaps \"none\" not found")?;
    }
    Ok(())
}

async fn the_name_of_a_deleted_object_is_free(world: World) -> anyhow::Result<()> {
    let first = world.make_map("one").await?;
    delete(&world, "one", Value::Null).await?;
    let second = world.make_map("one").await?;
    ensure!(first["metadata"]["uid"] != second["metadata"]["uid"], "the second is another object");
    Ok(())
}

async fn a_deletion_with_the_right_conditions_succeeds(world: World) -> anyhow::Result<()> {
    let made = world.make_map("one").await?;
    let metadata = &made["metadata"];
    let conditions = json!({ "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] });
    delete(&world, "one", json!({ "preconditions": conditions })).await?;
    is_gone(&world, "one").await
}

async fn a_deletion_of_another_uid_is_refused(world: World) -> anyhow::Result<()> {
    let made = world.make_widget("one", json!({ "title": "plain" })).await?;
    let options = json!({ "preconditions": { "uid": "another" } });
    let status = world.delete(&world.widgets("/one"), &options).await?.refused(409, "Conflict")?;
    let uid = made["metadata"]["uid"].as_str().context("a UID")?;
    let wanted = format!(
        "Operation cannot be fulfilled on Widget.contract.example.com \"one\": the UID in the precondition (another) \
         does not match the UID in record ({uid}). The object might have been deleted and then recreated"
    );
    same(status["message"].clone(), wanted)?;
    let wanted = json!({ "name": "one", "group": "contract.example.com", "kind": "Widget" });
    same(status["details"].clone(), wanted)?;
    world.get(&world.widgets("/one")).await?.ok(200).map(drop)
}

async fn a_deletion_of_another_version_is_refused(world: World) -> anyhow::Result<()> {
    let made = world.make_map("one").await?;
    let path = world.core("configmaps/one");
    world.merge(&path, &json!({ "data": { "a": "2" } })).await?.ok(200)?;
    let stale = &made["metadata"]["resourceVersion"];
    let options = json!({ "preconditions": { "resourceVersion": stale } });
    let status = world.delete(&path, &options).await?.refused(409, "Conflict")?;
    let message = status["message"].as_str().unwrap_or_default();
    let wanted = format!(
        "Operation cannot be fulfilled on ConfigMap \"one\": the ResourceVersion in the precondition ({}) does not match \
         the ResourceVersion in record (",
        stale.as_str().unwrap_or_default()
    );
    ensure!(message.starts_with(&wanted), "{message}");
    read(&world, "one").await.map(drop)
}

async fn a_dry_deletion_deletes_nothing(world: World) -> anyhow::Result<()> {
    let made = world.make_map("one").await?;
    for (query, options) in [("?dryRun=All", Value::Null), ("", json!({ "dryRun": ["All"] }))] {
        let answer = delete(&world, &format!("one{query}"), options).await?;
        same(answer["status"].clone(), "Success")?;
        same(read(&world, "one").await?, made.clone())?;
    }
    Ok(())
}

async fn an_unknown_propagation_is_refused(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let options = json!({ "propagationPolicy": "Sideways" });
    for (query, options) in [("?propagationPolicy=Sideways", Value::Null), ("", options)] {
        let path = world.core(&format!("configmaps/one{query}"));
        let status = world.delete(&path, &options).await?.refused(422, "Invalid")?;
        let wanted = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\": \
                      supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
        same(status["message"].clone(), wanted)?;
        same(causes(&status), vec!["propagationPolicy FieldValueNotSupported"])?;
    }
    Ok(())
}

async fn two_options_for_propagation_are_refused(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let options = json!({ "propagationPolicy": "Foreground", "orphanDependents": true });
    let status = world.delete(&world.core("configmaps/one"), &options).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["propagationPolicy FieldValueInvalid"])
}

async fn an_unknown_dry_run_in_the_body_is_refused(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let options = json!({ "dryRun": ["Some"] });
    let status = world.delete(&world.core("configmaps/one"), &options).await?.refused(422, "Invalid")?;
    let wanted = "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \
                  \"All\"";
    same(status["message"].clone(), wanted)
}

async fn options_in_the_body_override_those_of_the_query(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
    let answer = delete(&world, "one?propagationPolicy=Foreground", options).await?;
    same(answer["kind"].clone(), "Status")?;
    is_gone(&world, "one").await
}

async fn delete_maps(world: &World, query: &str) -> anyhow::Result<Value> {
    world.delete(&world.core(&format!("configmaps{query}")), &Value::Null).await?.ok(200)
}

async fn left(world: &World) -> anyhow::Result<String> {
    Ok(names(&world.get(&world.core("configmaps")).await?.ok(200)?).join(" "))
}

async fn make_labelled(world: &World, name: &str, value: &str) -> anyhow::Result<()> {
    let mut object = map(name);
    object["metadata"]["labels"] = json!({ "group": value });
    world.post(&world.core("configmaps"), &object).await?.ok(201).map(drop)
}

async fn a_collection_is_deleted_and_answered(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let answer = delete_maps(&world, "").await?;
    same(answer["kind"].clone(), "ConfigMapList")?;
    same(names(&answer), vec!["a", "b"])?;
    same(left(&world).await?, "")
}

async fn a_collection_is_deleted_by_labels(world: World) -> anyhow::Result<()> {
    for (name, value) in [("a", "x"), ("b", "y"), ("c", "x")] {
        make_labelled(&world, name, value).await?;
    }
    same(names(&delete_maps(&world, "?labelSelector=group%3Dx").await?), vec!["a", "c"])?;
    same(left(&world).await?, "b")
}

async fn a_collection_is_deleted_by_fields(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c"]).await?;
    delete_maps(&world, "?fieldSelector=metadata.name!%3Db").await?;
    same(left(&world).await?, "b")
}

async fn a_collection_is_deleted_up_to_a_limit(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c"]).await?;
    let answer = delete_maps(&world, "?limit=2").await?;
    same(names(&answer), vec!["a", "b"])?;
    ensure!(answer["metadata"]["continue"].is_string(), "{answer}");
    same(left(&world).await?, "c")
}

async fn a_collection_with_finalizers_is_marked(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    make_held(&world, "b", &["example.com/hold"]).await?;
    same(names(&delete_maps(&world, "").await?), vec!["a", "b"])?;
    same(left(&world).await?, "b")?;
    ensure!(is_marked(&read(&world, "b").await?), "what is held is marked");
    Ok(())
}

async fn a_dry_deletion_of_a_collection_deletes_nothing(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    same(names(&delete_maps(&world, "?dryRun=All").await?), vec!["a", "b"])?;
    same(left(&world).await?, "a b")
}

async fn a_collection_of_all_namespaces_is_not_deleted(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let answer = world.delete("/api/v1/configmaps?labelSelector=none", &Value::Null).await?;
    let status = answer.refused(405, "MethodNotAllowed")?;
    same(status["message"].clone(), "the server does not allow this method on the requested resource")?;
    same(status["details"].clone(), json!({}))
}

async fn namespaces_are_not_deleted_together(world: World) -> anyhow::Result<()> {
    let path = "/api/v1/namespaces?labelSelector=none";
    world.delete(path, &Value::Null).await?.refused(405, "MethodNotAllowed").map(drop)
}

async fn a_collection_with_an_invalid_selector_is_not_deleted(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let path = world.core("configmaps?labelSelector=%3D");
    world.delete(&path, &Value::Null).await?.refused(400, "BadRequest")?;
    same(left(&world).await?, "one")
}
