//! Creating objects: names, and the fields that the server sets or removes.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::world::{World, causes, map, same, widget};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_created_object_has_a_uid_a_time_and_a_version,
        a_created_object_reads_back_as_it_was_answered,
        a_generated_name_begins_with_what_was_asked_for,
        a_long_generate_name_is_cut_so_that_the_name_fits,
        many_objects_of_one_generate_name_get_names_of_their_own,
        a_given_name_wins_over_generate_name,
        an_object_without_a_name_is_refused,
        a_name_with_capital_letters_is_refused,
        a_generate_name_with_capital_letters_is_refused,
        the_name_of_a_namespace_has_no_dots,
        an_object_of_another_namespace_is_refused,
        an_object_of_no_namespace_gets_that_of_the_path,
        an_object_of_the_cluster_loses_its_namespace,
        nothing_is_created_in_a_namespace_that_is_not_there,
        nothing_is_created_in_a_namespace_that_is_going,
        a_taken_name_is_refused,
        a_new_object_must_not_have_a_version,
        a_new_custom_object_has_no_status,
        an_object_of_another_kind_is_refused,
        an_object_of_another_version_is_refused,
        a_custom_object_must_say_its_kind,
        a_built_in_object_need_not_say_its_kind,
        a_dry_run_creates_nothing,
        a_dry_run_meets_the_same_refusals,
        an_unknown_kind_of_dry_run_is_refused,
    ]
}

fn titled() -> Value {
    json!({ "title": "plain" })
}

async fn a_created_object_has_a_uid_a_time_and_a_version(world: World) -> anyhow::Result<()> {
    let widget = world.make_widget("one", titled()).await?;
    let metadata = &widget["metadata"];
    ensure!(metadata["uid"].as_str().is_some_and(|uid| uid.len() == 36), "{widget}");
    ensure!(metadata["creationTimestamp"].as_str().is_some_and(|time| time.len() == 20), "{widget}");
    ensure!(metadata["resourceVersion"].as_str().is_some_and(|text| text.parse::<u64>().is_ok()), "{widget}");
    same(metadata["generation"].clone(), 1)
}

async fn a_created_object_reads_back_as_it_was_answered(world: World) -> anyhow::Result<()> {
    let created = world.make_widget("one", json!({ "title": "plain", "tags": ["b", "a"] })).await?;
    same(world.get(&world.widgets("/one")).await?.ok(200)?, created)
}

fn generating(base: &str) -> Value {
    let mut map = map("");
    map["metadata"] = json!({ "generateName": base });
    map
}

async fn a_generated_name_begins_with_what_was_asked_for(world: World) -> anyhow::Result<()> {
    let created = world.post(&world.core("configmaps"), &generating("web-")).await?.ok(201)?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let suffix = name.strip_prefix("web-").context("another beginning")?;
    ensure!(suffix.len() == 5, "{name}");
    ensure!(suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{name}");
    same(created["metadata"]["generateName"].clone(), "web-")
}

async fn a_long_generate_name_is_cut_so_that_the_name_fits(world: World) -> anyhow::Result<()> {
    let base = "a".repeat(70);
    let created = world.post(&world.core("configmaps"), &generating(&base)).await?.ok(201)?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    ensure!(name.len() == 63 && name.starts_with(&base[..58]), "{name}");
    same(created["metadata"]["generateName"].clone(), base)
}

async fn many_objects_of_one_generate_name_get_names_of_their_own(world: World) -> anyhow::Result<()> {
    let mut names = BTreeSet::new();
    for _ in 0..30 {
        let created = world.post(&world.core("configmaps"), &generating("many-")).await?.ok(201)?;
        names.insert(created["metadata"]["name"].to_string());
    }
    same(names.len(), 30)
}

async fn a_given_name_wins_over_generate_name(world: World) -> anyhow::Result<()> {
    let mut map = map("given");
    map["metadata"]["generateName"] = "web-".into();
    let created = world.post(&world.core("configmaps"), &map).await?.ok(201)?;
    same(created["metadata"]["name"].clone(), "given")
}

async fn an_object_without_a_name_is_refused(world: World) -> anyhow::Result<()> {
    for (path, mut object) in [(world.core("configmaps"), map("")), (world.widgets(""), widget("", titled()))]
    {
        object["metadata"] = json!({});
        let status = world.post(&path, &object).await?.refused(422, "Invalid")?;
        same(causes(&status), vec!["metadata.name FieldValueRequired"])?;
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(
            message.ends_with("metadata.name: Required value: name or generateName is required"),
            "{message}"
        );
    }
    Ok(())
}

async fn a_name_with_capital_letters_is_refused(world: World) -> anyhow::Result<()> {
    for (path, object, kind, group) in [
        (world.core("configmaps"), map("Web"), "ConfigMap", Value::Null),
        (world.widgets(""), widget("Web", titled()), "Widget", "contract.example.com".into()),
    ] {
        let status = world.post(&path, &object).await?.refused(422, "Invalid")?;
        same(causes(&status), vec!["metadata.name FieldValueInvalid"])?;
        same(status["details"]["name"].clone(), "Web")?;
        same(status["details"]["kind"].clone(), kind)?;
        same(status["details"]["group"].clone(), group)?;
    }
    Ok(())
}

async fn a_generate_name_with_capital_letters_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.post(&world.core("configmaps"), &generating("Web-")).await?;
    let status = answer.refused(422, "Invalid")?;
    same(causes(&status), vec!["metadata.generateName FieldValueInvalid", "metadata.name FieldValueInvalid"])
}

async fn the_name_of_a_namespace_has_no_dots(world: World) -> anyhow::Result<()> {
    for name in ["a.b".to_owned(), "a".repeat(64)] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let status = world.post("/api/v1/namespaces", &namespace).await?.refused(422, "Invalid")?;
        ensure!(causes(&status).contains(&"metadata.name FieldValueInvalid".to_owned()), "{status}");
    }
    Ok(())
}

async fn an_object_of_another_namespace_is_refused(world: World) -> anyhow::Result<()> {
    for (path, mut object) in
        [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        object["metadata"]["namespace"] = "default".into();
        let status = world.post(&path, &object).await?.refused(400, "BadRequest")?;
        same(
            status["message"].clone(),
            "the namespace of the provided object does not match the namespace sent on the request",
        )?;
    }
    Ok(())
}

async fn an_object_of_no_namespace_gets_that_of_the_path(world: World) -> anyhow::Result<()> {
    let created = world.make_map("one").await?;
    same(created["metadata"]["namespace"].clone(), world.namespace)
}

async fn an_object_of_the_cluster_loses_its_namespace(world: World) -> anyhow::Result<()> {
    let image = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
        "metadata": { "name": world.unique("node"), "namespace": "default" }, "spec": {},
    });
    let created = world.post("/apis/apps.kruise.io/v1beta1/nodeimages", &image).await?.ok(201)?;
    same(created["metadata"]["namespace"].clone(), Value::Null)
}

async fn nothing_is_created_in_a_namespace_that_is_not_there(world: World) -> anyhow::Result<()> {
    for (path, object) in [
        ("/api/v1/namespaces/nowhere/configmaps", map("one")),
        ("/apis/contract.example.com/v1beta1/namespaces/nowhere/widgets", widget("one", titled())),
    ] {
        let status = world.post(path, &object).await?.refused(404, "NotFound")?;
        same(status["message"].clone(), "namespaces \"nowhere\" not found")?;
        same(status["details"].clone(), json!({ "name": "nowhere", "kind": "namespaces" }))?;
    }
    Ok(())
}

async fn nothing_is_created_in_a_namespace_that_is_going(world: World) -> anyhow::Result<()> {
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&world.core("configmaps"), &held).await?.ok(201)?;
    let namespace = format!("/api/v1/namespaces/{}", world.namespace);
    world.delete(&namespace, &Value::Null).await?.ok(200)?;
    let status = world.post(&world.core("configmaps"), &map("late")).await?.refused(403, "Forbidden")?;
    let words = format!(
        "configmaps \"late\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        world.namespace
    );
    same(status["message"].clone(), words)?;
    same(causes(&status), vec!["metadata.namespace NamespaceTerminating"])?;
    let free = json!({ "metadata": { "finalizers": null } });
    world.merge(&world.core("configmaps/held"), &free).await?.ok(200)?;
    Ok(())
}

async fn a_taken_name_is_refused(world: World) -> anyhow::Result<()> {
    world.make_widget("one", titled()).await?;
    let answer = world.post(&world.widgets(""), &widget("one", titled())).await?;
    let status = answer.refused(409, "AlreadyExists")?;
    same(status["message"].clone(), "widgets.contract.example.com \"one\" already exists")?;
    same(
        status["details"].clone(),
        json!({ "name": "one", "group": "contract.example.com", "kind": "widgets" }),
    )
}

async fn a_new_object_must_not_have_a_version(world: World) -> anyhow::Result<()> {
    for (path, mut object) in
        [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        object["metadata"]["resourceVersion"] = "1".into();
        let answer = world.post(&path, &object).await?;
        same(answer.code, 500)?;
        same(answer.body["message"].clone(), "resourceVersion should not be set on objects to be created")?;
    }
    Ok(())
}

async fn a_new_custom_object_has_no_status(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", titled());
    object["status"] = json!({ "phase": "Ready" });
    let created = world.post(&world.widgets(""), &object).await?.ok(201)?;
    same(created.get("status").cloned(), Value::Null)
}

async fn an_object_of_another_kind_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", titled());
    object["kind"] = "Gadget".into();
    let status = world.post(&world.widgets(""), &object).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["kind FieldValueInvalid"])?;
    let mut object = map("one");
    object["kind"] = "Secret".into();
    world.post(&world.core("configmaps"), &object).await?.refused(400, "BadRequest")?;
    Ok(())
}

async fn an_object_of_another_version_is_refused(world: World) -> anyhow::Result<()> {
    let mut object = widget("one", titled());
    object["apiVersion"] = "contract.example.com/v1alpha1".into();
    let status = world.post(&world.widgets(""), &object).await?.refused(400, "BadRequest")?;
    same(
        status["message"].clone(),
        "the API version in the data (contract.example.com/v1alpha1) does not match the expected API version \
         (contract.example.com/v1beta1)",
    )
}

async fn a_custom_object_must_say_its_kind(world: World) -> anyhow::Result<()> {
    for field in ["kind", "apiVersion"] {
        let mut object = widget("one", titled());
        object[field] = "".into();
        world.post(&world.widgets(""), &object).await?.refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_built_in_object_need_not_say_its_kind(world: World) -> anyhow::Result<()> {
    let object = json!({ "metadata": { "name": "one" }, "data": { "a": "1" } });
    let created = world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    same(created["kind"].clone(), "ConfigMap")?;
    same(created["apiVersion"].clone(), "v1")
}

async fn a_dry_run_creates_nothing(world: World) -> anyhow::Result<()> {
    let path = world.widgets("?dryRun=All");
    let shown = world.post(&path, &widget("one", titled())).await?.ok(201)?;
    same(shown["spec"]["color"].clone(), "red")?;
    ensure!(shown["metadata"]["uid"].is_string(), "{shown}");
    same(shown["metadata"]["resourceVersion"].clone(), Value::Null)?;
    world.get(&world.widgets("/one")).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_dry_run_meets_the_same_refusals(world: World) -> anyhow::Result<()> {
    world.make_widget("one", titled()).await?;
    let path = world.widgets("?dryRun=All");
    world.post(&path, &widget("one", titled())).await?.refused(409, "AlreadyExists")?;
    world.post(&path, &widget("two", json!({}))).await?.refused(422, "Invalid")?;
    Ok(())
}

async fn an_unknown_kind_of_dry_run_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.post(&world.widgets("?dryRun=some"), &widget("one", titled())).await?;
    let status = answer.refused(422, "Invalid")?;
    same(causes(&status), vec!["dryRun FieldValueNotSupported"])
}
