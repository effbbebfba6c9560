//! Metadata of created objects: what the server sets, removes and refuses.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, map, same, widget};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        empty_metadata_is_left_out,
        a_label_that_is_null_is_an_empty_text,
        a_label_that_is_no_text_is_refused,
        a_label_of_the_wrong_form_is_refused,
        an_annotation_of_the_wrong_form_is_refused,
        too_many_bytes_of_annotations_are_refused,
        an_owner_without_a_uid_is_refused,
        two_controllers_of_one_object_are_refused,
        a_finalizer_without_a_domain_is_warned_about,
        fields_that_only_the_server_sets_are_overwritten,
    ]
}

fn titled() -> Value {
    json!({ "title": "plain" })
}

async fn empty_metadata_is_left_out(world: World) -> anyhow::Result<()> {
    for (path, mut object) in
        [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        for field in ["labels", "annotations"] {
            object["metadata"][field] = json!({});
        }
        for field in ["finalizers", "ownerReferences"] {
            object["metadata"][field] = json!([]);
        }
        let created = world.post(&path, &object).await?.ok(201)?;
        for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
            ensure!(created["metadata"].get(field).is_none(), "{field}: {created}");
        }
    }
    Ok(())
}

async fn a_label_that_is_null_is_an_empty_text(world: World) -> anyhow::Result<()> {
    for (path, mut object) in
        [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        object["metadata"]["labels"] = json!({ "a": null, "b": "x" });
        let created = world.post(&path, &object).await?.ok(201)?;
        same(created["metadata"]["labels"].clone(), json!({ "a": "", "b": "x" }))?;
    }
    Ok(())
}

async fn a_label_that_is_no_text_is_refused(world: World) -> anyhow::Result<()> {
    for (path, mut object) in
        [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        object["metadata"]["labels"] = json!({ "a": 1 });
        world.post(&path, &object).await?.refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_label_of_the_wrong_form_is_refused(world: World) -> anyhow::Result<()> {
    for labels in [
        json!({ "a b": "x" }),
        json!({ "a": "x y" }),
        json!({ "a": "x".repeat(64) }),
        json!({ "a/b/c": "x" }),
        json!({ "": "x" }),
    ] {
        let mut object = map("one");
        object["metadata"]["labels"] = labels;
        let status = world.post(&world.core("configmaps"), &object).await?.refused(422, "Invalid")?;
        same(causes(&status), vec!["metadata.labels FieldValueInvalid"])?;
    }
    Ok(())
}

async fn an_annotation_of_the_wrong_form_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", titled());
    object["metadata"]["annotations"] = json!({ "a b": "x" });
    let status = world.post(&world.widgets(""), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.annotations FieldValueInvalid"])
}

async fn too_many_bytes_of_annotations_are_refused(world: World) -> anyhow::Result<()> {
    let mut object = map("one");
    object["metadata"]["annotations"] = json!({ "a": "x".repeat(256 * 1024) });
    let status = world.post(&world.core("configmaps"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.annotations FieldValueTooLong"])
}

async fn an_owner_without_a_uid_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = map("one");
    object["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web" }]);
    let status = world.post(&world.core("configmaps"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.ownerReferences.uid FieldValueInvalid"])
}

async fn two_controllers_of_one_object_are_refused(world: World) -> anyhow::Result<()> {
    let owner = |name: &str| json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": true });
    let mut object = map("one");
    object["metadata"]["ownerReferences"] = json!([owner("a"), owner("b")]);
    let status = world.post(&world.core("configmaps"), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.ownerReferences FieldValueInvalid"])
}

async fn a_finalizer_without_a_domain_is_warned_about(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", titled());
    object["metadata"]["finalizers"] = json!(["hold"]);
    let answer = world.post(&world.widgets(""), &object).await?;
    same(
        answer.warnings(),
        vec![
            "299 - \"metadata.finalizers: \\\"hold\\\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers\"",
        ],
    )?;
    answer.ok(201)?;
    Ok(())
}

async fn fields_that_only_the_server_sets_are_overwritten(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", titled());
    object["metadata"] = json!({
        "name": "one", "uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5, "selfLink": "/mine",
    });
    let created = world.post(&world.widgets(""), &object).await?.ok(201)?;
    let metadata = &created["metadata"];
    ensure!(metadata["uid"] != "mine" && metadata["generation"] == 1, "{created}");
    ensure!(metadata["creationTimestamp"] != "2001-01-01T00:00:00Z", "{created}");
    ensure!(metadata["deletionTimestamp"].is_null(), "{created}");
    ensure!(metadata["deletionGracePeriodSeconds"].is_null(), "{created}");
    Ok(())
}
