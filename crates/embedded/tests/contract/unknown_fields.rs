//! Fields that a kind does not have: refused, warned about, or dropped silently.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{Answer, World, same, widget};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_strict_request_with_an_unknown_field_is_refused,
        a_strict_refusal_names_every_unknown_field,
        a_warned_request_drops_the_field_and_says_so,
        a_request_without_a_validation_mode_is_warned,
        an_ignoring_request_drops_the_field_without_a_word,
        an_unknown_field_beside_the_spec_is_dropped,
        an_unknown_field_of_the_metadata_is_dropped,
        an_unknown_field_in_a_list_is_named_with_its_place,
        a_part_that_takes_everything_keeps_everything,
        a_field_given_twice_is_refused_strictly,
        a_field_given_twice_counts_by_its_last_value,
        a_strict_replacement_with_an_unknown_field_is_refused,
        a_strict_patch_with_an_unknown_field_is_refused,
        a_warned_patch_drops_the_field_and_says_so,
        a_strict_json_patch_with_an_unknown_field_is_refused,
        a_strict_request_with_the_wrong_case_is_refused,
        an_unknown_way_of_validation_is_refused,
        our_own_kinds_are_strict_on_demand;
        differing: [
            a_built_in_kind_drops_unknown_fields =>
                "the embedded API has no schemas of built-in kinds and stores what it is given",
                "found []";
        ]
    ]
}

fn odd() -> Value {
    json!({ "title": "plain", "bogus": 1 })
}

async fn create(world: &World, query: &str, spec: Value) -> anyhow::Result<Answer> {
    world.post(&world.widgets(query), &widget("one", spec)).await
}

async fn a_strict_request_with_an_unknown_field_is_refused(world: World) -> anyhow::Result<()> {
    let status = create(&world, "?fieldValidation=Strict", odd()).await?.refused(400, "BadRequest")?;
    same(
        status["message"].clone(),
        "Widget in version \"v1beta1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.bogus\"",
    )
}

async fn a_strict_refusal_names_every_unknown_field(world: World) -> anyhow::Result<()> {
    let spec = json!({ "title": "plain", "zebra": 1, "apple": { "deep": 2 }, "limits": { "odd": 1 } });
    let status = create(&world, "?fieldValidation=Strict", spec).await?.refused(400, "BadRequest")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(
        message.ends_with(
            "unknown field \"spec.apple\", unknown field \"spec.limits.odd\", unknown field \"spec.zebra\""
        ),
        "{message}"
    );
    Ok(())
}

async fn a_warned_request_drops_the_field_and_says_so(world: World) -> anyhow::Result<()> {
    let answer = create(&world, "?fieldValidation=Warn", odd()).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"spec.bogus\\\"\""])?;
    same(answer.ok(201)?["spec"]["bogus"].clone(), Value::Null)
}

async fn a_request_without_a_validation_mode_is_warned(world: World) -> anyhow::Result<()> {
    let answer = create(&world, "", odd()).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"spec.bogus\\\"\""])?;
    same(answer.ok(201)?["spec"]["bogus"].clone(), Value::Null)
}

async fn an_ignoring_request_drops_the_field_without_a_word(world: World) -> anyhow::Result<()> {
    let answer = create(&world, "?fieldValidation=Ignore", odd()).await?;
    same(answer.warnings(), Vec::<String>::new())?;
    same(answer.ok(201)?["spec"]["bogus"].clone(), Value::Null)
}

async fn an_unknown_field_beside_the_spec_is_dropped(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", json!({ "title": "plain" }));
    object["bogus"] = json!({ "a": 1 });
    let answer = world.post(&world.widgets(""), &object).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"bogus\\\"\""])?;
    same(answer.ok(201)?["bogus"].clone(), Value::Null)
}

async fn an_unknown_field_of_the_metadata_is_dropped(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", json!({ "title": "plain" }));
    object["metadata"]["bogus"] = 1.into();
    let answer = world.post(&world.widgets("?fieldValidation=Strict"), &object).await?;
    let status = answer.refused(400, "BadRequest")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.ends_with("strict decoding error: unknown field \"metadata.bogus\""), "{message}");
    let answer = world.post(&world.widgets(""), &object).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"metadata.bogus\\\"\""])?;
    same(answer.ok(201)?["metadata"]["bogus"].clone(), Value::Null)
}

async fn an_unknown_field_in_a_list_is_named_with_its_place(world: World) -> anyhow::Result<()> {
    let spec = json!({ "title": "plain", "parts": [{ "name": "a" }, { "name": "b", "bogus": 1 }] });
    let answer = create(&world, "", spec).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"spec.parts[1].bogus\\\"\""])?;
    same(answer.ok(201)?["spec"]["parts"][1].clone(), json!({ "name": "b", "weight": 1 }))
}

async fn a_part_that_takes_everything_keeps_everything(world: World) -> anyhow::Result<()> {
    let free = json!({ "known": 1, "any": { "thing": [1, "two", null, { "three": true }] } });
    let answer = create(&world, "?fieldValidation=Strict", json!({ "title": "plain", "free": free })).await?;
    same(answer.ok(201)?["spec"]["free"].clone(), free)
}

const TWICE: &str = r#"{"apiVersion":"contract.example.com/v1beta1","kind":"Widget","metadata":{"name":"one"},
    "spec":{"title":"plain","size":2,"size":3}}"#;

async fn a_field_given_twice_is_refused_strictly(world: World) -> anyhow::Result<()> {
    let path = world.widgets("?fieldValidation=Strict");
    let answer = world.send("POST", &path, "application/json", TWICE.into()).await?;
    let status = answer.refused(400, "BadRequest")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.ends_with("strict decoding error: duplicate field \"spec.size\""), "{message}");
    Ok(())
}

async fn a_field_given_twice_counts_by_its_last_value(world: World) -> anyhow::Result<()> {
    let answer = world.send("POST", &world.widgets(""), "application/json", TWICE.into()).await?;
    same(answer.warnings(), vec!["299 - \"duplicate field \\\"spec.size\\\"\""])?;
    same(answer.ok(201)?["spec"]["size"].clone(), 3)
}

async fn a_strict_replacement_with_an_unknown_field_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = world.make_widget("one", json!({ "title": "plain" })).await?;
    object["spec"]["bogus"] = 1.into();
    let answer = world.put(&world.widgets("/one?fieldValidation=Strict"), &object).await?;
    let status = answer.refused(400, "BadRequest")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.ends_with("strict decoding error: unknown field \"spec.bogus\""), "{message}");
    let answer = world.put(&world.widgets("/one"), &object).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"spec.bogus\\\"\""])?;
    answer.ok(200)?;
    Ok(())
}

async fn a_strict_patch_with_an_unknown_field_is_refused(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let path = world.widgets("/one?fieldValidation=Strict");
    let status = world.merge(&path, &json!({ "spec": { "bogus": 1 } })).await?.refused(422, "Invalid")?;
    same(super::world::causes(&status), vec!["patch FieldValueInvalid"])?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.ends_with("strict decoding error: unknown field \"spec.bogus\""), "{message}");
    Ok(())
}

async fn a_warned_patch_drops_the_field_and_says_so(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let answer = world.merge(&world.widgets("/one"), &json!({ "spec": { "bogus": 1, "size": 2 } })).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"spec.bogus\\\"\""])?;
    let patched = answer.ok(200)?;
    same(patched["spec"]["bogus"].clone(), Value::Null)?;
    same(patched["spec"]["size"].clone(), 2)
}

async fn a_strict_json_patch_with_an_unknown_field_is_refused(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let path = world.widgets("/one?fieldValidation=Strict");
    let patch = json!([{ "op": "add", "path": "/spec/bogus", "value": 1 }]);
    let status = world.json_patch(&path, &patch).await?.refused(422, "Invalid")?;
    same(super::world::causes(&status), vec!["patch FieldValueInvalid"])
}

async fn a_strict_request_with_the_wrong_case_is_refused(world: World) -> anyhow::Result<()> {
    let spec = json!({ "title": "plain", "Size": 2 });
    create(&world, "?fieldValidation=Strict", spec.clone()).await?.refused(400, "BadRequest")?;
    same(create(&world, "", spec).await?.ok(201)?["spec"]["size"].clone(), 1)
}

async fn an_unknown_way_of_validation_is_refused(world: World) -> anyhow::Result<()> {
    let answer = create(&world, "?fieldValidation=Maybe", json!({ "title": "plain" })).await?;
    let status = answer.refused(422, "Invalid")?;
    same(super::world::causes(&status), vec!["fieldValidation FieldValueNotSupported"])
}

async fn our_own_kinds_are_strict_on_demand(world: World) -> anyhow::Result<()> {
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": "one" },
        "spec": { "image": "web:1", "pullPolicy": { "timeoutSecond": 5 } },
    });
    let path = world.at("apps.kruise.io/v1beta1", "imagepulljobs?fieldValidation=Strict");
    let status = world.post(&path, &job).await?.refused(400, "BadRequest")?;
    same(
        status["message"].clone(),
        "ImagePullJob in version \"v1beta1\" cannot be handled as a ImagePullJob: strict decoding error: \
         unknown field \"spec.pullPolicy.timeoutSecond\"",
    )
}

async fn a_built_in_kind_drops_unknown_fields(world: World) -> anyhow::Result<()> {
    let mut object = super::world::map("one");
    object["bogus"] = 1.into();
    let answer = world.post(&world.core("configmaps"), &object).await?;
    same(answer.warnings(), vec!["299 - \"unknown field \\\"bogus\\\"\""])?;
    same(answer.ok(201)?["bogus"].clone(), Value::Null)
}
