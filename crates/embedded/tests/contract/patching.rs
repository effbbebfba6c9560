//! Merge patches and JSON patches, on present and absent fields.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_null_in_a_merge_patch_removes_the_field,
        a_merge_patch_makes_the_way_to_an_absent_place,
        a_merge_patch_replaces_lists_whole,
        a_null_below_an_absent_place_is_dropped,
        a_removed_field_gets_its_default_again,
        a_merge_patch_keeps_everything_else,
        a_version_in_a_merge_patch_guards_it,
        a_uid_in_a_merge_patch_guards_it,
        a_patch_does_not_rename,
        a_patch_of_metadata_counts_no_generation,
        a_patch_that_changes_nothing_makes_no_version,
        an_object_that_is_not_there_is_not_patched,
        a_merge_patch_that_is_no_object_is_refused,
        a_merge_patch_that_is_no_json_is_refused,
        a_patch_whose_result_is_invalid_is_refused,
        a_dry_run_patches_nothing,
        a_strategic_merge_patch_is_not_for_custom_objects,
        a_strategic_merge_patch_merges_maps,
        a_patch_of_an_unknown_form_is_refused,
        a_patch_may_name_its_character_set,
        a_patch_of_the_list_itself_is_refused,
        a_patch_does_not_change_the_kind,
        a_patch_does_not_take_the_version_away,
        a_field_given_twice_in_a_patch_is_refused_strictly,
        a_patch_of_the_metadata_to_something_else_is_refused,
        many_patches_at_once_are_all_applied;
        differing: [
            a_strategic_merge_patch_merges_lists_by_their_keys =>
                "the embedded API merges maps but not lists in strategic merge patches, it answers 415",
                "got 415";
            server_side_apply_makes_an_object_and_changes_it =>
                "server-side apply is not part of the embedded API yet, it answers 415",
                "got 415";
            an_object_says_who_manages_its_fields =>
                "managedFields belong to server-side apply, which the embedded API does not have yet",
                "no managedFields";
        ]
    ]
}

async fn one(world: &World) -> anyhow::Result<Value> {
    let spec = json!({ "title": "plain", "note": "hello", "tags": ["a", "b"], "free": { "x": { "y": 1 } } });
    world.make_widget("one", spec).await
}

async fn a_null_in_a_merge_patch_removes_the_field(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({ "spec": { "note": null, "free": { "x": null } } });
    let patched = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
    ensure!(patched["spec"].get("note").is_none(), "{patched}");
    same(patched["spec"]["free"].clone(), json!({}))
}

async fn a_merge_patch_makes_the_way_to_an_absent_place(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({
        "metadata": { "annotations": { "a/b": "c" } },
        "spec": { "settings": { "one": "1" }, "free": { "p": { "q": { "r": [1] } } } },
    });
    let patched = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["metadata"]["annotations"].clone(), json!({ "a/b": "c" }))?;
    same(patched["spec"]["settings"].clone(), json!({ "one": "1" }))?;
    same(patched["spec"]["free"].clone(), json!({ "x": { "y": 1 }, "p": { "q": { "r": [1] } } }))
}

async fn a_merge_patch_replaces_lists_whole(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patched =
        world.merge(&world.widgets("/one"), &json!({ "spec": { "tags": ["c"] } })).await?.ok(200)?;
    same(patched["spec"]["tags"].clone(), json!(["c"]))
}

async fn a_null_below_an_absent_place_is_dropped(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({ "spec": { "free": { "p": { "gone": null, "stays": 1 } } } });
    let patched = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["spec"]["free"]["p"].clone(), json!({ "stays": 1 }))
}

async fn a_removed_field_gets_its_default_again(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain", "size": 4, "limits": { "soft": 9 } })).await?;
    let patch = json!({ "spec": { "size": null, "limits": null } });
    let patched = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["spec"]["size"].clone(), 1)?;
    same(patched["spec"]["limits"].clone(), json!({ "soft": 5 }))
}

async fn a_merge_patch_keeps_everything_else(world: World) -> anyhow::Result<()> {
    let before = one(&world).await?;
    let patched = world.merge(&world.widgets("/one"), &json!({ "spec": { "size": 2 } })).await?.ok(200)?;
    let mut wanted = before.clone();
    wanted["spec"]["size"] = 2.into();
    same(patched["spec"].clone(), wanted["spec"].clone())?;
    same(patched["metadata"]["uid"].clone(), before["metadata"]["uid"].clone())?;
    same(patched["metadata"]["creationTimestamp"].clone(), before["metadata"]["creationTimestamp"].clone())
}

async fn a_version_in_a_merge_patch_guards_it(world: World) -> anyhow::Result<()> {
    let before = one(&world).await?;
    let guarded = |size: u64| {
        json!({
            "metadata": { "resourceVersion": before["metadata"]["resourceVersion"] }, "spec": { "size": size },
        })
    };
    world.merge(&world.widgets("/one"), &guarded(2)).await?.ok(200)?;
    let status = world.merge(&world.widgets("/one"), &guarded(3)).await?.refused(409, "Conflict")?;
    same(
        status["message"].clone(),
        "Operation cannot be fulfilled on widgets.contract.example.com \"one\": the object has been modified; \
         please apply your changes to the latest version and try again",
    )
}

async fn a_uid_in_a_merge_patch_guards_it(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({ "metadata": { "uid": "another" }, "spec": { "size": 2 } });
    let status = world.merge(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.uid FieldValueInvalid"])
}

async fn a_patch_does_not_rename(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({ "metadata": { "name": "two" } });
    world.merge(&world.widgets("/one"), &patch).await?.refused(400, "BadRequest")?;
    let patch = json!({ "metadata": { "namespace": "default" } });
    world.merge(&world.widgets("/one"), &patch).await?.refused(400, "BadRequest")?;
    Ok(())
}

async fn a_patch_of_metadata_counts_no_generation(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
    same(patched["metadata"]["generation"].clone(), 1)
}

async fn a_patch_that_changes_nothing_makes_no_version(world: World) -> anyhow::Result<()> {
    let before = one(&world).await?;
    for patch in [json!({}), json!({ "spec": { "note": "hello" } }), json!({ "spec": { "absent": null } })] {
        let patched = world.merge(&world.widgets("/one"), &patch).await?.ok(200)?;
        same(patched["metadata"]["resourceVersion"].clone(), before["metadata"]["resourceVersion"].clone())?;
    }
    Ok(())
}

async fn an_object_that_is_not_there_is_not_patched(world: World) -> anyhow::Result<()> {
    let answer = world.merge(&world.widgets("/none"), &json!({ "spec": { "size": 2 } })).await?;
    answer.refused(404, "NotFound")?;
    let answer = world.json_patch(&world.core("configmaps/none"), &json!([])).await?;
    answer.refused(404, "NotFound")?;
    Ok(())
}

async fn a_merge_patch_that_is_no_object_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    for patch in [json!([]), json!("text"), json!(1)] {
        let answer = world.merge(&world.widgets("/one"), &patch).await?;
        answer.refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_merge_patch_that_is_no_json_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let content_type = "application/merge-patch+json";
    let answer = world.send("PATCH", &world.widgets("/one"), content_type, b"{\"spec\":".to_vec()).await?;
    answer.refused(400, "BadRequest")?;
    Ok(())
}

async fn a_patch_whose_result_is_invalid_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = json!({ "spec": { "size": 99, "title": null } });
    let status = world.merge(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
    let mut found = causes(&status);
    found.sort();
    same(found, vec!["spec.size FieldValueInvalid", "spec.title FieldValueRequired"])
}

async fn a_dry_run_patches_nothing(world: World) -> anyhow::Result<()> {
    let before = one(&world).await?;
    let patch = json!({ "spec": { "size": 2 } });
    let shown = world.merge(&world.widgets("/one?dryRun=All"), &patch).await?.ok(200)?;
    same(shown["spec"]["size"].clone(), 2)?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, before)
}

async fn a_strategic_merge_patch_is_not_for_custom_objects(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let content_type = "application/strategic-merge-patch+json";
    let answer = world.send("PATCH", &world.widgets("/one"), content_type, b"{}".to_vec()).await?;
    let status = answer.refused(415, "UnsupportedMediaType")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.contains("application/json-patch+json, application/merge-patch+json"), "{message}");
    Ok(())
}

async fn a_strategic_merge_patch_merges_maps(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let patch = json!({ "data": { "b": "2", "a": null }, "metadata": { "labels": { "x": "y" } } });
    let content_type = "application/strategic-merge-patch+json";
    let path = world.core("configmaps/one");
    let patched = world.send("PATCH", &path, content_type, patch.to_string().into_bytes()).await?.ok(200)?;
    same(patched["data"].clone(), json!({ "b": "2" }))?;
    same(patched["metadata"]["labels"].clone(), json!({ "x": "y" }))
}

async fn a_patch_of_an_unknown_form_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    for content_type in ["application/json", "text/plain", ""] {
        let answer = world.send("PATCH", &world.widgets("/one"), content_type, b"{}".to_vec()).await?;
        answer.refused(415, "UnsupportedMediaType")?;
    }
    Ok(())
}

async fn a_patch_may_name_its_character_set(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let content_type = "application/merge-patch+json; charset=utf-8";
    let patch = json!({ "spec": { "size": 2 } }).to_string();
    world.send("PATCH", &world.widgets("/one"), content_type, patch.into_bytes()).await?.ok(200)?;
    Ok(())
}

async fn a_patch_of_the_list_itself_is_refused(world: World) -> anyhow::Result<()> {
    let status = world.merge(&world.widgets(""), &json!({})).await?.refused(400, "BadRequest")?;
    same(status["message"].clone(), "name must be provided")?;
    world.merge(&world.core("configmaps"), &json!({})).await?.refused(405, "MethodNotAllowed")?;
    Ok(())
}

async fn a_patch_does_not_change_the_kind(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    world.make_map("one").await?;
    for (path, patch, place) in [
        (world.widgets("/one"), json!({ "kind": "Gadget" }), "kind"),
        (world.widgets("/one"), json!({ "apiVersion": "contract.example.com/v1alpha1" }), "apiVersion"),
        (world.core("configmaps/one"), json!({ "kind": "Secret" }), "patch"),
        (world.core("configmaps/one"), json!({ "apiVersion": "v2" }), "patch"),
    ] {
        let status = world.merge(&path, &patch).await?.refused(422, "Invalid")?;
        same(causes(&status), vec![format!("{place} FieldValueInvalid")])?;
    }
    Ok(())
}

async fn a_patch_does_not_take_the_version_away(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    for version in [json!(null), json!("")] {
        let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "size": 2 } });
        let status = world.merge(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
        same(causes(&status), vec!["metadata.resourceVersion FieldValueInvalid"])?;
        same(status["details"]["kind"].clone(), "widgets")?;
    }
    Ok(())
}

async fn a_field_given_twice_in_a_patch_is_refused_strictly(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let patch = r#"{ "spec": { "size": 2, "size": 3 } }"#;
    let content_type = "application/merge-patch+json";
    let path = world.widgets("/one?fieldValidation=Strict");
    let answer = world.send("PATCH", &path, content_type, patch.into()).await?;
    same(causes(&answer.refused(422, "Invalid")?), vec!["patch FieldValueInvalid"])?;
    let answer = world.send("PATCH", &world.widgets("/one"), content_type, patch.into()).await?;
    same(answer.warnings(), vec!["299 - \"duplicate field \\\"spec.size\\\"\""])?;
    same(answer.ok(200)?["spec"]["size"].clone(), 3)
}

async fn a_patch_of_the_metadata_to_something_else_is_refused(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    for patch in [json!({ "metadata": null }), json!({ "metadata": { "name": null } })] {
        world.merge(&world.widgets("/one"), &patch).await?.refused(400, "BadRequest")?;
    }
    for patch in [json!({ "metadata": "text" }), json!({ "metadata": { "labels": { "a": 1 } } })] {
        let status = world.merge(&world.widgets("/one"), &patch).await?.refused(422, "Invalid")?;
        same(causes(&status), vec!["patch FieldValueInvalid"])?;
    }
    Ok(())
}

async fn many_patches_at_once_are_all_applied(world: World) -> anyhow::Result<()> {
    one(&world).await?;
    let path = world.widgets("/one");
    let writes = (0..20).map(|number| {
        let patch = json!({ "metadata": { "annotations": { format!("key-{number}"): "x" } } });
        let (world, path) = (world.clone(), path.clone());
        async move { world.merge(&path, &patch).await?.ok(200) }
    });
    for written in futures::future::join_all(writes).await {
        written?;
    }
    let object = world.get(&path).await?.ok(200)?;
    same(object["metadata"]["annotations"].as_object().map_or(0, serde_json::Map::len), 20)
}

async fn a_strategic_merge_patch_merges_lists_by_their_keys(world: World) -> anyhow::Result<()> {
    let name = world.unique("node");
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] },
    });
    world.post("/api/v1/nodes", &node).await?.ok(201)?;
    let patch = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let path = format!("/api/v1/nodes/{name}/status");
    let content_type = "application/strategic-merge-patch+json";
    world.send("PATCH", &path, content_type, patch.to_string().into_bytes()).await?.ok(200)?;
    Ok(())
}

async fn server_side_apply_makes_an_object_and_changes_it(world: World) -> anyhow::Result<()> {
    let path = world.widgets("/one?fieldManager=contract");
    let content_type = "application/apply-patch+yaml";
    for (size, code) in [(2, 201), (3, 200)] {
        let object = super::world::widget("one", json!({ "title": "plain", "size": size }));
        let answer = world.send("PATCH", &path, content_type, object.to_string().into_bytes()).await?;
        same(answer.ok(code)?["spec"]["size"].clone(), size)?;
    }
    Ok(())
}

async fn an_object_says_who_manages_its_fields(world: World) -> anyhow::Result<()> {
    let created = one(&world).await?;
    ensure!(created["metadata"]["managedFields"].is_array(), "no managedFields in {created}");
    Ok(())
}
