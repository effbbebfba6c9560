//! Deletion: its answers, its conditions, finalizers, collections, and the time that pods have.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::list::{make_maps, names, version};
use super::selectors::make_pod;
use super::watch::Watching;
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
        two_words_for_propagation_are_refused,
        an_unknown_dry_run_in_the_body_is_refused,
        options_in_the_body_make_those_of_the_query_void,
        a_finalizer_holds_an_object_and_the_answer_is_the_object,
        a_mark_counts_as_a_generation_of_a_custom_object,
        a_second_deletion_changes_nothing,
        a_dry_deletion_with_a_finalizer_shows_the_mark,
        an_object_on_its_way_out_can_be_changed,
        an_object_on_its_way_out_takes_no_new_finalizer,
        an_object_on_its_way_out_may_lose_one_of_its_finalizers,
        the_mark_of_an_object_cannot_be_taken_back,
        removing_the_last_finalizer_removes_the_object,
        replacing_without_the_last_finalizer_removes_the_object,
        a_dry_run_that_removes_the_last_finalizer_removes_nothing,
        deleting_in_the_foreground_marks_first,
        deleting_and_orphaning_marks_first,
        a_finalizer_of_propagation_says_how_to_delete,
        a_second_deletion_may_change_the_propagation,
        a_collection_is_deleted_and_answered,
        a_collection_is_deleted_by_labels,
        a_collection_is_deleted_by_fields,
        a_collection_is_deleted_up_to_a_limit,
        a_collection_with_finalizers_is_marked,
        a_dry_deletion_of_a_collection_deletes_nothing,
        a_collection_of_all_namespaces_is_not_deleted,
        namespaces_are_not_deleted_together,
        a_collection_with_a_selector_that_is_none_is_not_deleted,
        a_pod_without_a_node_goes_at_once_and_is_answered,
        watchers_see_the_mark_of_a_pod_that_goes_at_once,
        a_pod_on_a_node_has_thirty_seconds,
        a_pod_on_a_node_has_the_time_of_its_spec,
        a_pod_on_a_node_has_the_time_of_the_request,
        a_second_deletion_of_a_pod_may_only_shorten_its_time,
        a_pod_is_removed_by_force,
        a_pod_with_a_finalizer_stays_even_by_force,
        a_pod_that_has_ended_goes_at_once,
        other_kinds_have_no_time_to_end,
        a_job_leaves_its_pods_behind_unless_told,
    ]
}

fn is_marked(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn without(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}

/// An object without the notes of who wrote which of its fields.
fn plain(mut object: Value) -> Value {
    without(&mut object, "managedFields");
    object
}

async fn make_held(world: &World, name: &str, finalizers: &[&str]) -> anyhow::Result<Value> {
    let mut object = map(name);
    object["metadata"]["finalizers"] = json!(finalizers);
    world.post(&world.core("configmaps"), &object).await?.ok(201)
}

async fn read(world: &World, name: &str) -> anyhow::Result<Value> {
    world.get(&world.core(&format!("configmaps/{name}"))).await?.ok(200)
}

async fn is_gone(world: &World, name: &str) -> anyhow::Result<()> {
    world.get(&world.core(&format!("configmaps/{name}"))).await?.refused(404, "NotFound").map(drop)
}

async fn delete(world: &World, rest: &str, options: Value) -> anyhow::Result<Value> {
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

async fn two_words_for_propagation_are_refused(world: World) -> anyhow::Result<()> {
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

async fn options_in_the_body_make_those_of_the_query_void(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
    let answer = delete(&world, "one?propagationPolicy=Foreground", options).await?;
    same(answer["kind"].clone(), "Status")?;
    is_gone(&world, "one").await
}

async fn a_finalizer_holds_an_object_and_the_answer_is_the_object(world: World) -> anyhow::Result<()> {
    let made = make_held(&world, "one", &["example.com/hold"]).await?;
    let answer = delete(&world, "one", Value::Null).await?;
    ensure!(is_marked(&answer) && version(&answer)? > version(&made)?, "{answer}");
    same(answer["kind"].clone(), "ConfigMap")?;
    same(answer["metadata"]["deletionGracePeriodSeconds"].clone(), 0)?;
    same(answer["metadata"]["finalizers"].clone(), json!(["example.com/hold"]))?;
    ensure!(answer["metadata"].get("generation").is_none(), "{answer}");
    same(read(&world, "one").await?, answer)
}

async fn a_mark_counts_as_a_generation_of_a_custom_object(world: World) -> anyhow::Result<()> {
    let mut widget = super::world::widget("one", json!({ "title": "plain" }));
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&world.widgets(""), &widget).await?.ok(201)?;
    let answer = world.delete(&world.widgets("/one"), &Value::Null).await?.ok(200)?;
    same(answer["metadata"]["generation"].clone(), 2)?;
    let answer = world.delete(&world.widgets("/one"), &Value::Null).await?.ok(200)?;
    same(answer["metadata"]["generation"].clone(), 2)
}

async fn a_second_deletion_changes_nothing(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    let first = delete(&world, "one", Value::Null).await?;
    same(delete(&world, "one", Value::Null).await?, first.clone())?;
    same(delete(&world, "one", json!({ "propagationPolicy": "Background" })).await?, first)
}

async fn a_dry_deletion_with_a_finalizer_shows_the_mark(world: World) -> anyhow::Result<()> {
    let made = make_held(&world, "one", &["example.com/hold"]).await?;
    let answer = delete(&world, "one?dryRun=All", Value::Null).await?;
    ensure!(is_marked(&answer), "{answer}");
    same(version(&answer)?, version(&made)?)?;
    same(read(&world, "one").await?, made)
}

async fn an_object_on_its_way_out_can_be_changed(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    delete(&world, "one", Value::Null).await?;
    let patch = json!({ "data": { "a": "2" } });
    let changed = world.merge(&world.core("configmaps/one"), &patch).await?.ok(200)?;
    ensure!(is_marked(&changed), "{changed}");
    same(changed["data"]["a"].clone(), "2")
}

async fn an_object_on_its_way_out_takes_no_new_finalizer(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    delete(&world, "one", Value::Null).await?;
    let patch = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } });
    let status = world.merge(&world.core("configmaps/one"), &patch).await?.refused(422, "Invalid")?;
    let wanted = "ConfigMap \"one\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the \
                  object is being deleted, found new finalizers []string{\"example.com/more\"}";
    same(status["message"].clone(), wanted)?;
    same(causes(&status), vec!["metadata.finalizers FieldValueForbidden"])
}

async fn an_object_on_its_way_out_may_lose_one_of_its_finalizers(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/a", "example.com/b"]).await?;
    delete(&world, "one", Value::Null).await?;
    let patch = json!({ "metadata": { "finalizers": ["example.com/b"] } });
    world.merge(&world.core("configmaps/one"), &patch).await?.ok(200)?;
    same(read(&world, "one").await?["metadata"]["finalizers"].clone(), json!(["example.com/b"]))
}

async fn the_mark_of_an_object_cannot_be_taken_back(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    let marked = delete(&world, "one", Value::Null).await?;
    let patch = json!({ "metadata": { "deletionTimestamp": null, "deletionGracePeriodSeconds": null } });
    let answer = world.merge(&world.core("configmaps/one"), &patch).await?.ok(200)?;
    same(answer["metadata"]["deletionTimestamp"].clone(), marked["metadata"]["deletionTimestamp"].clone())
}

async fn removing_the_last_finalizer_removes_the_object(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    let mut marked = delete(&world, "one", Value::Null).await?;
    let patch = json!({ "metadata": { "finalizers": [] } });
    let answer = world.merge(&world.core("configmaps/one"), &patch).await?.ok(200)?;
    // The answer is what would have been stored, under the version that it replaced.
    without(&mut marked, "finalizers");
    same(plain(answer), plain(marked))?;
    is_gone(&world, "one").await
}

async fn replacing_without_the_last_finalizer_removes_the_object(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    let mut marked = delete(&world, "one", Value::Null).await?;
    without(&mut marked, "finalizers");
    let answer = world.put(&world.core("configmaps/one"), &marked).await?.ok(200)?;
    same(plain(answer), plain(marked))?;
    is_gone(&world, "one").await
}

async fn a_dry_run_that_removes_the_last_finalizer_removes_nothing(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    let marked = delete(&world, "one", Value::Null).await?;
    let patch = json!({ "metadata": { "finalizers": null } });
    world.merge(&world.core("configmaps/one?dryRun=All"), &patch).await?.ok(200)?;
    same(read(&world, "one").await?, marked)
}

async fn deleting_in_the_foreground_marks_first(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let answer = delete(&world, "one", json!({ "propagationPolicy": "Foreground" })).await?;
    ensure!(is_marked(&answer), "{answer}");
    same(answer["metadata"]["finalizers"].clone(), json!(["foregroundDeletion"]))?;
    let gone = async || Ok(is_gone(&world, "one").await.ok());
    world.eventually("the object to go", gone).await
}

async fn deleting_and_orphaning_marks_first(world: World) -> anyhow::Result<()> {
    for options in [json!({ "propagationPolicy": "Orphan" }), json!({ "orphanDependents": true })] {
        world.make_map("one").await?;
        let answer = delete(&world, "one", options).await?;
        ensure!(is_marked(&answer), "{answer}");
        same(answer["metadata"]["finalizers"].clone(), json!(["orphan"]))?;
        let gone = async || Ok(is_gone(&world, "one").await.ok());
        world.eventually("the object to go", gone).await?;
    }
    Ok(())
}

async fn a_finalizer_of_propagation_says_how_to_delete(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold", "foregroundDeletion"]).await?;
    let answer = delete(&world, "one", Value::Null).await?;
    let wanted = json!(["example.com/hold", "foregroundDeletion"]);
    same(answer["metadata"]["finalizers"].clone(), wanted)?;
    make_held(&world, "two", &["example.com/hold", "foregroundDeletion"]).await?;
    let answer = delete(&world, "two", json!({ "propagationPolicy": "Background" })).await?;
    same(answer["metadata"]["finalizers"].clone(), json!(["example.com/hold"]))
}

async fn a_second_deletion_may_change_the_propagation(world: World) -> anyhow::Result<()> {
    make_held(&world, "one", &["example.com/hold"]).await?;
    let finalizers = |answer: &Value| answer["metadata"]["finalizers"].clone();
    let first = delete(&world, "one", Value::Null).await?;
    same(finalizers(&first), json!(["example.com/hold"]))?;
    let second = delete(&world, "one", json!({ "propagationPolicy": "Foreground" })).await?;
    same(finalizers(&second), json!(["example.com/hold", "foregroundDeletion"]))?;
    let third = delete(&world, "one", json!({ "propagationPolicy": "Background" })).await?;
    same(finalizers(&third), json!(["example.com/hold"]))
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

async fn a_collection_with_a_selector_that_is_none_is_not_deleted(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let path = world.core("configmaps?labelSelector=%3D");
    world.delete(&path, &Value::Null).await?.refused(400, "BadRequest")?;
    same(left(&world).await?, "one")
}

async fn delete_pod(world: &World, rest: &str) -> anyhow::Result<Value> {
    world.delete(&world.core(&format!("pods/{rest}")), &Value::Null).await?.ok(200)
}

async fn pod_is_gone(world: &World, name: &str) -> anyhow::Result<()> {
    world.get(&world.core(&format!("pods/{name}"))).await?.refused(404, "NotFound").map(drop)
}

/// Seconds between the mark and the end of an object.
fn grace(object: &Value) -> Value {
    object["metadata"]["deletionGracePeriodSeconds"].clone()
}

async fn a_pod_without_a_node_goes_at_once_and_is_answered(world: World) -> anyhow::Result<()> {
    let made = make_pod(&world, "one", json!({})).await?;
    let answer = delete_pod(&world, "one").await?;
    same(answer["kind"].clone(), "Pod")?;
    same(answer["metadata"]["uid"].clone(), made["metadata"]["uid"].clone())?;
    ensure!(is_marked(&answer) && version(&answer)? > version(&made)?, "{answer}");
    same(grace(&answer), 0)?;
    same(answer["metadata"]["generation"].clone(), 2)?;
    pod_is_gone(&world, "one").await
}

async fn watchers_see_the_mark_of_a_pod_that_goes_at_once(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({})).await?;
    let mut watch = Watching::open(&world, &world.core("pods?")).await?;
    delete_pod(&world, "one").await?;
    same(watch.take(1).await?, vec!["ADDED one"])?;
    for wanted in ["MODIFIED", "DELETED"] {
        let event = watch.event().await?;
        same(event["type"].clone(), wanted)?;
        ensure!(is_marked(&event["object"]), "{event}");
    }
    Ok(())
}

async fn a_pod_on_a_node_has_thirty_seconds(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    let answer = delete_pod(&world, "one").await?;
    same(grace(&answer), 30)?;
    same(answer["metadata"]["generation"].clone(), 2)?;
    same(world.get(&world.core("pods/one")).await?.ok(200)?, answer.clone())?;
    same(delete_pod(&world, "one").await?, answer)
}

async fn a_pod_on_a_node_has_the_time_of_its_spec(world: World) -> anyhow::Result<()> {
    let spec = json!({ "nodeName": "here", "terminationGracePeriodSeconds": 5 });
    make_pod(&world, "one", spec).await?;
    same(grace(&delete_pod(&world, "one").await?), 5)?;
    let spec = json!({ "nodeName": "here", "terminationGracePeriodSeconds": 0 });
    make_pod(&world, "two", spec).await?;
    delete_pod(&world, "two").await?;
    pod_is_gone(&world, "two").await
}

async fn a_pod_on_a_node_has_the_time_of_the_request(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    same(grace(&delete_pod(&world, "one?gracePeriodSeconds=600").await?), 600)?;
    make_pod(&world, "two", json!({ "nodeName": "here" })).await?;
    let answer = world.delete(&world.core("pods/two"), &json!({ "gracePeriodSeconds": 7 })).await?;
    same(grace(&answer.ok(200)?), 7)?;
    make_pod(&world, "three", json!({ "nodeName": "here" })).await?;
    same(grace(&delete_pod(&world, "three?gracePeriodSeconds=-1").await?), 1)
}

async fn a_second_deletion_of_a_pod_may_only_shorten_its_time(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    let first = delete_pod(&world, "one").await?;
    same(delete_pod(&world, "one?gracePeriodSeconds=60").await?, first.clone())?;
    let shorter = delete_pod(&world, "one?gracePeriodSeconds=10").await?;
    same(grace(&shorter), 10)?;
    same(shorter["metadata"]["generation"].clone(), 2)?;
    let end = |object: &Value| object["metadata"]["deletionTimestamp"].as_str().map(str::to_owned);
    ensure!(end(&shorter) < end(&first), "{shorter}");
    Ok(())
}

async fn a_pod_is_removed_by_force(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    delete_pod(&world, "one").await?;
    same(grace(&delete_pod(&world, "one?gracePeriodSeconds=0").await?), 0)?;
    pod_is_gone(&world, "one").await?;
    make_pod(&world, "two", json!({ "nodeName": "here" })).await?;
    delete_pod(&world, "two?gracePeriodSeconds=0").await?;
    pod_is_gone(&world, "two").await
}

async fn a_pod_with_a_finalizer_stays_even_by_force(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    let hold = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    world.merge(&world.core("pods/one"), &hold).await?.ok(200)?;
    same(grace(&delete_pod(&world, "one?gracePeriodSeconds=0").await?), 0)?;
    world.get(&world.core("pods/one")).await?.ok(200)?;
    let release = json!({ "metadata": { "finalizers": null } });
    world.merge(&world.core("pods/one"), &release).await?.ok(200)?;
    pod_is_gone(&world, "one").await
}

async fn a_pod_that_has_ended_goes_at_once(world: World) -> anyhow::Result<()> {
    for phase in ["Succeeded", "Failed"] {
        make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
        let patch = json!({ "status": { "phase": phase } });
        world.merge(&world.core("pods/one/status"), &patch).await?.ok(200)?;
        delete_pod(&world, "one").await?;
        pod_is_gone(&world, "one").await?;
    }
    Ok(())
}

async fn other_kinds_have_no_time_to_end(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    delete(&world, "one?gracePeriodSeconds=30", Value::Null).await?;
    is_gone(&world, "one").await?;
    make_held(&world, "two", &["example.com/hold"]).await?;
    same(grace(&delete(&world, "two?gracePeriodSeconds=30", Value::Null).await?), 0)
}

async fn a_job_leaves_its_pods_behind_unless_told(world: World) -> anyhow::Result<()> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "one" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "nginx:1.25" }],
        } } },
    });
    let path = world.at("batch/v1", "jobs");
    world.post(&path, &job).await?.ok(201)?;
    let answer = world.delete(&format!("{path}/one"), &Value::Null).await?.ok(200)?;
    same(answer["metadata"]["finalizers"].clone(), json!(["orphan"]))?;
    let gone = async || Ok((world.get(&format!("{path}/one")).await?.code == 404).then_some(()));
    world.eventually("the job to go", gone).await?;
    world.post(&path, &job).await?.ok(201)?;
    let options = json!({ "propagationPolicy": "Background" });
    same(world.delete(&format!("{path}/one"), &options).await?.ok(200)?["kind"].clone(), "Status")
}
