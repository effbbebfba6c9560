//! JSON patches: each operation, on present and absent fields.

use serde_json::{Value, json};

use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_json_patch_adds_replaces_and_removes,
        a_json_patch_moves_and_copies,
        a_json_patch_appends_to_a_list_and_inserts_into_it,
        a_slash_in_a_name_is_escaped_in_a_json_patch,
        a_json_patch_whose_test_holds_is_applied,
        a_json_patch_whose_test_of_the_generation_fails_is_refused_without_causes,
        a_json_patch_whose_test_names_an_absent_place_is_refused,
        a_json_patch_is_applied_whole_or_not_at_all,
        a_json_patch_does_not_remove_an_absent_field,
        a_json_patch_that_replaces_an_absent_field_adds_it,
        a_json_patch_does_not_add_below_an_absent_field,
        an_empty_json_patch_changes_nothing,
        a_json_patch_that_is_no_list_is_refused,
        an_unknown_operation_is_refused,
        a_json_patch_may_clear_the_finalizers,
        a_version_in_a_json_patch_guards_it,
    ]
}

async fn one(world: &World) -> anyhow::Result<Value> {
    let spec = json!({ "title": "plain", "note": "hello", "tags": ["a", "b"], "free": { "x": { "y": 1 } } });
    world.make_widget("one", spec).await
}

async fn a_json_patch_adds_replaces_and_removes(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([
        { "op": "add", "path": "/metadata/labels", "value": { "a": "b" } },
        { "op": "add", "path": "/spec/size", "value": 3 },
        { "op": "replace", "path": "/spec/note", "value": "bye" },
        { "op": "remove", "path": "/spec/free/x" },
    ]);
    let patched = world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["metadata"]["labels"].clone(), json!({ "a": "b" }))?;
    same(patched["spec"]["size"].clone(), 3)?;
    same(patched["spec"]["note"].clone(), "bye")?;
    same(patched["spec"]["free"].clone(), json!({}))?;
    same(patched["metadata"]["generation"].clone(), 2)
}

async fn a_json_patch_moves_and_copies(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([
        { "op": "copy", "from": "/spec/free/x", "path": "/spec/free/z" },
        { "op": "move", "from": "/spec/free/x/y", "path": "/spec/free/y" },
    ]);
    let patched = world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["spec"]["free"].clone(), json!({ "x": {}, "y": 1, "z": { "y": 1 } }))
}

async fn a_json_patch_appends_to_a_list_and_inserts_into_it(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([
        { "op": "add", "path": "/spec/tags/-", "value": "d" },
        { "op": "add", "path": "/spec/tags/1", "value": "c" },
        { "op": "remove", "path": "/spec/tags/0" },
    ]);
    let patched = world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["spec"]["tags"].clone(), json!(["c", "b", "d"]))?;
    let patch = json!([{ "op": "add", "path": "/spec/tags/9", "value": "e" }]);
    world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    Ok(())
}

async fn a_slash_in_a_name_is_escaped_in_a_json_patch(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([
        { "op": "add", "path": "/metadata/annotations", "value": { "example.com/a": "1" } },
        { "op": "replace", "path": "/metadata/annotations/example.com~1a", "value": "2" },
    ]);
    let patched = world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["metadata"]["annotations"]["example.com/a"].clone(), "2")
}

async fn a_json_patch_whose_test_holds_is_applied(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([
        { "op": "test", "path": "/metadata/generation", "value": 1 },
        { "op": "test", "path": "/spec/free", "value": { "x": { "y": 1 } } },
        { "op": "replace", "path": "/spec/size", "value": 2 },
    ]);
    let patched = world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["spec"]["size"].clone(), 2)
}

async fn a_json_patch_whose_test_of_the_generation_fails_is_refused_without_causes(
    world: World,
) -> anyhow::Result<()> {
    let before = one(&world).await?;
    let patch = json!([
        { "op": "test", "path": "/metadata/generation", "value": 7 },
        { "op": "replace", "path": "/spec/size", "value": 2 },
    ]);
    let status = world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    same(status["message"].clone(), "the server rejected our request due to an error in our request")?;
    same(status["details"].clone(), json!({}))?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, before)
}

async fn a_json_patch_whose_test_names_an_absent_place_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([{ "op": "test", "path": "/spec/absent", "value": 1 }]);
    world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    let patch = json!([{ "op": "test", "path": "/spec/absent", "value": null }]);
    world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    Ok(())
}

async fn a_json_patch_is_applied_whole_or_not_at_all(world: World) -> anyhow::Result<()> {
    let before = one(&world).await?;
    let patch = json!([
        { "op": "replace", "path": "/spec/size", "value": 2 },
        { "op": "remove", "path": "/spec/absent" },
    ]);
    world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, before)
}

async fn a_json_patch_does_not_remove_an_absent_field(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    for path in ["/spec/absent", "/spec/absent/below", "/spec/tags/7"] {
        let patch = json!([{ "op": "remove", "path": path }]);
        let status = world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
        same(status["message"].clone(), "the server rejected our request due to an error in our request")?;
    }
    Ok(())
}

async fn a_json_patch_that_replaces_an_absent_field_adds_it(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([{ "op": "replace", "path": "/spec/enabled", "value": true }]);
    let patched = world.json_patch(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["spec"]["enabled"].clone(), true)?;
    for path in ["/spec/absent/below", "/spec/tags/7"] {
        let patch = json!([{ "op": "replace", "path": path, "value": "x" }]);
        world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    }
    Ok(())
}

async fn a_json_patch_does_not_add_below_an_absent_field(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([{ "op": "add", "path": "/metadata/labels/a", "value": "b" }]);
    world.json_patch(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    Ok(())
}

async fn an_empty_json_patch_changes_nothing(world: World) -> anyhow::Result<()> {
    let before = one(&world).await?;
    let patched = world.json_patch(&world.widgets("/one"), &json!([])).await?.ok(200)?;
    same(patched["metadata"]["resourceVersion"].clone(), before["metadata"]["resourceVersion"].clone())
}

async fn a_json_patch_that_is_no_list_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let answer = world.json_patch(&world.widgets("/one"), &json!({ "spec": {} })).await?;
    answer.refused(400, "BadRequest")?;
    Ok(())
}

async fn an_unknown_operation_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([{ "op": "increase", "path": "/spec/size", "value": 1 }]);
    let answer = world.json_patch(&world.widgets("/one"), &patch).await?;
    answer.refused(422, "Invalid")?;
    Ok(())
}

async fn a_json_patch_may_clear_the_finalizers(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let add =
        json!([{ "op": "add", "path": "/metadata/finalizers", "value": ["example.com/a", "example.com/b"] }]);
    world.json_patch(&world.widgets("/one"), &add).await?.ok(200)?;
    let remove = json!([
        { "op": "test", "path": "/metadata/finalizers/0", "value": "example.com/a" },
        { "op": "remove", "path": "/metadata/finalizers/0" },
    ]);
    let patched = world.json_patch(&world.widgets("/one"), &remove).await?.ok(200)?;
    same(patched["metadata"]["finalizers"].clone(), json!(["example.com/b"]))
}

async fn a_version_in_a_json_patch_guards_it(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": "1" },
        { "op": "replace", "path": "/spec/size", "value": 2 },
    ]);
    world.json_patch(&world.widgets("/one"), &patch).await?.refused(409, "Conflict")?;
    Ok(())
}
