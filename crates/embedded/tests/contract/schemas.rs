//! Defaults and rules of a definition: what is filled in, what is refused, and which fields a refusal names.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, same, widget};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        defaults_are_filled_in_at_every_depth,
        defaults_do_not_touch_what_was_given,
        a_null_in_a_field_with_a_default_becomes_the_default,
        a_null_that_is_allowed_stays,
        a_null_that_is_not_allowed_is_dropped,
        a_null_in_a_map_is_dropped_and_one_in_a_list_is_refused,
        a_number_out_of_bounds_is_refused,
        a_value_outside_of_the_enumeration_is_refused,
        a_text_that_does_not_match_is_refused,
        a_text_that_is_too_long_is_refused,
        a_text_that_is_too_short_is_refused,
        a_required_field_that_is_missing_is_refused,
        a_missing_spec_is_refused,
        a_value_of_the_wrong_type_is_refused,
        a_fraction_is_no_integer,
        a_number_of_too_many_bits_is_refused,
        a_whole_fraction_is_an_integer,
        an_integer_is_a_number,
        a_value_that_takes_both_takes_numbers_and_texts,
        a_time_of_the_wrong_form_is_refused,
        a_set_with_the_same_value_twice_is_refused,
        a_map_list_with_the_same_key_twice_is_refused,
        a_map_list_item_without_its_key_is_refused,
        a_list_that_is_too_long_is_refused,
        a_list_that_is_too_short_is_refused,
        a_map_with_too_many_entries_is_refused,
        a_map_with_a_value_of_the_wrong_type_is_refused,
        all_mistakes_are_reported_together,
        a_refusal_is_about_the_kind_and_the_name,
        a_known_field_in_a_free_part_is_still_checked,
        an_empty_spec_list_is_kept,
        large_numbers_keep_their_digits,
        a_rule_of_our_own_kinds_is_enforced,
    ]
}

async fn stored(world: &World, spec: Value) -> anyhow::Result<Value> {
    Ok(world.make_widget("one", spec).await?["spec"].clone())
}

/// The causes of a widget with these additions, each as `field reason`, sorted.
async fn refused(world: &World, additions: Value) -> anyhow::Result<Vec<String>> {
    let mut spec = json!({ "title": "plain" });
    for (field, value) in additions.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let status = world.post(&world.widgets(""), &widget("one", spec)).await?.refused(422, "Invalid")?;
    let mut causes = causes(&status);
    causes.sort();
    Ok(causes)
}

async fn defaults_are_filled_in_at_every_depth(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "parts": [{ "name": "a" }] })).await?;
    same(
        spec,
        json!({
            "title": "plain", "size": 1, "color": "red", "limits": { "soft": 5 },
            "parts": [{ "name": "a", "weight": 1 }],
        }),
    )
}

async fn defaults_do_not_touch_what_was_given(world: World) -> anyhow::Result<()> {
    let given = json!({
        "title": "plain", "size": 9, "color": "blue", "limits": { "soft": 0, "hard": 7 },
        "parts": [{ "name": "a", "weight": 0 }],
    });
    same(stored(&world, given.clone()).await?, given)
}

async fn a_null_in_a_field_with_a_default_becomes_the_default(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "size": null, "limits": null })).await?;
    same(spec["size"].clone(), 1)?;
    same(spec["limits"].clone(), json!({ "soft": 5 }))
}

async fn a_null_that_is_allowed_stays(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "note": null })).await?;
    ensure!(spec.get("note").is_some_and(Value::is_null), "{spec}");
    Ok(())
}

async fn a_null_that_is_not_allowed_is_dropped(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "enabled": null })).await?;
    ensure!(spec.get("enabled").is_none(), "{spec}");
    Ok(())
}

async fn a_null_in_a_map_is_dropped_and_one_in_a_list_is_refused(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "settings": { "a": null, "b": "1" } })).await?;
    same(spec["settings"].clone(), json!({ "b": "1" }))?;
    same(refused(&world, json!({ "tags": [null] })).await?, vec!["spec.tags[0] FieldValueTypeInvalid"])
}

async fn a_number_out_of_bounds_is_refused(world: World) -> anyhow::Result<()> {
    for size in [0, 11, -1] {
        same(refused(&world, json!({ "size": size })).await?, vec!["spec.size FieldValueInvalid"])?;
    }
    Ok(())
}

async fn a_value_outside_of_the_enumeration_is_refused(world: World) -> anyhow::Result<()> {
    let status =
        world.post(&world.widgets(""), &widget("one", json!({ "title": "plain", "color": "pink" }))).await?;
    let status = status.refused(422, "Invalid")?;
    same(causes(&status), vec!["spec.color FieldValueNotSupported"])?;
    let message = status["details"]["causes"][0]["message"].as_str().unwrap_or_default();
    ensure!(message.starts_with("Unsupported value: \"pink\""), "{message}");
    Ok(())
}

async fn a_text_that_does_not_match_is_refused(world: World) -> anyhow::Result<()> {
    same(refused(&world, json!({ "title": "Plain" })).await?, vec!["spec.title FieldValueInvalid"])
}

async fn a_text_that_is_too_long_is_refused(world: World) -> anyhow::Result<()> {
    same(refused(&world, json!({ "title": "verylongword" })).await?, vec!["spec.title FieldValueTooLong"])
}

async fn a_text_that_is_too_short_is_refused(world: World) -> anyhow::Result<()> {
    same(refused(&world, json!({ "title": "a" })).await?, vec!["spec.title FieldValueInvalid"])
}

async fn a_required_field_that_is_missing_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.post(&world.widgets(""), &widget("one", json!({ "size": 2 }))).await?;
    let status = answer.refused(422, "Invalid")?;
    same(causes(&status), vec!["spec.title FieldValueRequired"])
}

async fn a_missing_spec_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", json!({}));
    if let Some(fields) = object.as_object_mut() {
        fields.remove("spec");
    }
    let status = world.post(&world.widgets(""), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["spec FieldValueRequired"])
}

async fn a_value_of_the_wrong_type_is_refused(world: World) -> anyhow::Result<()> {
    let table = [
        (json!({ "size": "3" }), "spec.size FieldValueTypeInvalid"),
        (json!({ "title": 3 }), "spec.title FieldValueTypeInvalid"),
        (json!({ "enabled": "yes" }), "spec.enabled FieldValueTypeInvalid"),
        (json!({ "tags": "a" }), "spec.tags FieldValueTypeInvalid"),
        (json!({ "tags": [1] }), "spec.tags[0] FieldValueTypeInvalid"),
        (json!({ "limits": [] }), "spec.limits FieldValueTypeInvalid"),
        (json!({ "ratio": "half" }), "spec.ratio FieldValueTypeInvalid"),
        (
            json!({ "parts": [{ "name": "a", "weight": "heavy" }] }),
            "spec.parts[0].weight FieldValueTypeInvalid",
        ),
    ];
    for (additions, wanted) in table {
        same(refused(&world, additions).await?, vec![wanted])?;
    }
    Ok(())
}

async fn a_fraction_is_no_integer(world: World) -> anyhow::Result<()> {
    let twice = vec!["<nil> FieldValueInvalid", "spec.size FieldValueTypeInvalid"];
    same(refused(&world, json!({ "size": 1.5 })).await?, twice)?;
    same(refused(&world, json!({ "port": 1.5 })).await?, vec!["spec.port FieldValueTypeInvalid"])
}

async fn a_number_of_too_many_bits_is_refused(world: World) -> anyhow::Result<()> {
    same(stored(&world, json!({ "title": "plain", "count": i32::MAX })).await?["count"].clone(), i32::MAX)?;
    same(refused(&world, json!({ "count": 2_147_483_648_i64 })).await?, vec!["<nil> FieldValueInvalid"])?;
    let twice = vec!["<nil> FieldValueInvalid", "spec.count FieldValueTypeInvalid"];
    same(refused(&world, json!({ "count": 0.5 })).await?, twice)
}

async fn a_whole_fraction_is_an_integer(world: World) -> anyhow::Result<()> {
    let text = widget("one", json!({ "title": "plain", "size": 777 })).to_string().replace("777", "3.0");
    let answer = world.send("POST", &world.widgets(""), "application/json", text.into_bytes()).await?;
    let size = answer.ok(201)?["spec"]["size"].as_f64();
    ensure!(size == Some(3.0), "{size:?}");
    Ok(())
}

async fn an_integer_is_a_number(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "ratio": 2 })).await?;
    same(spec["ratio"].clone(), 2)
}

async fn a_value_that_takes_both_takes_numbers_and_texts(world: World) -> anyhow::Result<()> {
    for (name, port) in [("one", json!(80)), ("two", json!("http"))] {
        let made = world.make_widget(name, json!({ "title": "plain", "port": port })).await?;
        same(made["spec"]["port"].clone(), port)?;
    }
    same(refused(&world, json!({ "port": true })).await?, vec!["spec.port FieldValueTypeInvalid"])
}

async fn a_time_of_the_wrong_form_is_refused(world: World) -> anyhow::Result<()> {
    same(refused(&world, json!({ "when": "tomorrow" })).await?, vec!["spec.when FieldValueTypeInvalid"])
}

async fn a_set_with_the_same_value_twice_is_refused(world: World) -> anyhow::Result<()> {
    same(refused(&world, json!({ "tags": ["a", "b", "a"] })).await?, vec!["spec.tags[2] FieldValueDuplicate"])
}

async fn a_map_list_with_the_same_key_twice_is_refused(world: World) -> anyhow::Result<()> {
    let parts = json!({ "parts": [{ "name": "a" }, { "name": "a", "weight": 2 }] });
    same(refused(&world, parts).await?, vec!["spec.parts[1] FieldValueDuplicate"])
}

async fn a_map_list_item_without_its_key_is_refused(world: World) -> anyhow::Result<()> {
    let parts = json!({ "parts": [{ "weight": 2 }] });
    same(refused(&world, parts).await?, vec!["spec.parts[0].name FieldValueRequired"])
}

async fn a_list_that_is_too_long_is_refused(world: World) -> anyhow::Result<()> {
    let tags = json!({ "tags": ["a", "b", "c", "d", "e", "f"] });
    same(refused(&world, tags).await?, vec!["spec.tags FieldValueTooMany"])
}

async fn a_list_that_is_too_short_is_refused(world: World) -> anyhow::Result<()> {
    same(refused(&world, json!({ "numbers": [] })).await?, vec!["spec.numbers FieldValueInvalid"])
}

async fn a_map_with_too_many_entries_is_refused(world: World) -> anyhow::Result<()> {
    let settings = json!({ "settings": { "a": "1", "b": "2", "c": "3", "d": "4" } });
    same(refused(&world, settings).await?, vec!["spec.settings FieldValueTooMany"])
}

async fn a_map_with_a_value_of_the_wrong_type_is_refused(world: World) -> anyhow::Result<()> {
    let settings = json!({ "settings": { "a": 1 } });
    same(refused(&world, settings).await?, vec!["spec.settings.a FieldValueTypeInvalid"])
}

async fn all_mistakes_are_reported_together(world: World) -> anyhow::Result<()> {
    let additions = json!({ "title": "Plain", "size": 99, "color": "pink", "enabled": "yes" });
    same(
        refused(&world, additions).await?,
        vec![
            "spec.color FieldValueNotSupported",
            "spec.enabled FieldValueTypeInvalid",
            "spec.size FieldValueInvalid",
            "spec.title FieldValueInvalid",
        ],
    )
}

async fn a_refusal_is_about_the_kind_and_the_name(world: World) -> anyhow::Result<()> {
    let status =
        world.post(&world.widgets(""), &widget("one", json!({ "title": "plain", "size": 99 }))).await?;
    let status = status.refused(422, "Invalid")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with("Widget.contract.example.com \"one\" is invalid: spec.size: Invalid value: 99: "),
        "{message}"
    );
    let details = &status["details"];
    same(
        json!([details["name"], details["group"], details["kind"]]),
        json!(["one", "contract.example.com", "Widget"]),
    )
}

async fn a_known_field_in_a_free_part_is_still_checked(world: World) -> anyhow::Result<()> {
    let free = json!({ "free": { "known": "text", "other": "text" } });
    same(refused(&world, free).await?, vec!["spec.free.known FieldValueTypeInvalid"])
}

async fn an_empty_spec_list_is_kept(world: World) -> anyhow::Result<()> {
    let spec = stored(&world, json!({ "title": "plain", "tags": [], "settings": {}, "parts": [] })).await?;
    same(json!([spec["tags"], spec["settings"], spec["parts"]]), json!([[], {}, []]))
}

async fn large_numbers_keep_their_digits(world: World) -> anyhow::Result<()> {
    let free = json!({ "large": 9_007_199_254_740_993_i64, "negative": i64::MIN, "small": 0.1 });
    let spec = stored(&world, json!({ "title": "plain", "free": free })).await?;
    same(spec["free"].clone(), free)
}

async fn a_rule_of_our_own_kinds_is_enforced(world: World) -> anyhow::Result<()> {
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": "one" },
        "spec": { "image": "web:1", "completionPolicy": { "type": "Never", "activeDeadlineSeconds": 5 } },
    });
    let path = world.at("apps.kruise.io/v1beta1", "imagepulljobs");
    let status = world.post(&path, &job).await?.refused(422, "Invalid")?;
    let places: Vec<String> =
        causes(&status).iter().map(|cause| cause.split(' ').next().unwrap_or_default().to_owned()).collect();
    ensure!(places.iter().all(|place| place.starts_with("spec.completionPolicy")), "{status}");
    Ok(())
}
