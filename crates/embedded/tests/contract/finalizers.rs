//! Finalizers: they hold an object that is deleted, and determine what happens to its dependents.

use anyhow::ensure;
use serde_json::{Value, json};

use super::delete::{delete, is_gone, is_marked, make_held, read};
use super::list::version;
use super::world::{World, causes, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_finalizer_holds_an_object_and_the_answer_is_the_object,
        a_mark_counts_as_a_generation_of_a_custom_object,
        a_second_deletion_changes_nothing,
        a_dry_deletion_with_a_finalizer_shows_the_mark,
        an_object_on_its_way_out_can_be_changed,
        an_object_on_its_way_out_takes_no_new_finalizer,
        one_of_several_finalizers_may_be_taken_from_an_object_on_its_way_out,
        the_mark_of_an_object_cannot_be_taken_back,
        removing_the_last_finalizer_removes_the_object,
        replacing_without_the_last_finalizer_removes_the_object,
        a_dry_run_that_removes_the_last_finalizer_removes_nothing,
        deleting_in_the_foreground_marks_first,
        deleting_and_orphaning_marks_first,
        a_finalizer_of_propagation_says_how_to_delete,
        a_second_deletion_may_change_the_propagation,
    ]
}

fn without(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}

/// An object without its managed fields.
fn plain(mut object: Value) -> Value {
    without(&mut object, "managedFields");
    object
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

async fn one_of_several_finalizers_may_be_taken_from_an_object_on_its_way_out(
    world: World,
) -> anyhow::Result<()> {
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
    // The answer is what would have been stored, with the version that it would replace.
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
