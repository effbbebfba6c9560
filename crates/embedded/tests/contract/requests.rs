//! Requests that make no sense, and how they are refused.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, map, same, widget};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        an_object_that_is_not_there_is_not_found,
        a_custom_object_that_is_not_there_is_not_found,
        an_unknown_resource_is_not_found,
        an_unknown_version_is_not_found,
        an_unknown_group_is_not_found,
        a_subresource_that_a_kind_does_not_have_is_not_found,
        a_namespaced_path_of_a_kind_of_the_cluster_is_not_found,
        an_object_is_not_created_at_the_path_of_another,
        a_custom_object_is_created_from_its_body_at_any_path,
        an_object_may_come_as_yaml,
        an_object_is_not_created_across_namespaces,
        a_whole_list_is_not_replaced,
        a_body_that_is_no_json_is_refused,
        a_body_that_is_cut_off_is_refused,
        an_empty_body_is_refused,
        a_body_that_is_no_object_is_refused,
        a_body_in_another_format_is_refused,
        a_body_without_a_content_type_is_json,
        a_json_body_may_name_its_character_set,
        an_answer_in_an_unknown_format_is_refused,
        an_answer_is_json_whatever_is_accepted,
        a_refusal_is_json_too,
        an_unknown_query_parameter_is_ignored,
        a_name_in_a_path_may_be_encoded,
        a_text_may_have_any_letters,
    ]
}

fn titled() -> Value {
    json!({ "title": "plain" })
}

async fn an_object_that_is_not_there_is_not_found(world: World) -> anyhow::Result<()> {
    let status = world.get(&world.core("configmaps/none")).await?.refused(404, "NotFound")?;
    same(status["message"].clone(), "configmaps \"none\" not found")?;
    same(status["details"].clone(), json!({ "name": "none", "kind": "configmaps" }))
}

async fn a_custom_object_that_is_not_there_is_not_found(world: World) -> anyhow::Result<()> {
    let status = world.get(&world.widgets("/none")).await?.refused(404, "NotFound")?;
    same(status["message"].clone(), "widgets.contract.example.com \"none\" not found")?;
    same(
        status["details"].clone(),
        json!({ "name": "none", "group": "contract.example.com", "kind": "widgets" }),
    )
}

async fn an_unknown_resource_is_not_found(world: World) -> anyhow::Result<()> {
    for path in [world.core("nothings"), world.core("nothings/one"), world.at("apps/v1", "nothings")] {
        let status = world.get(&path).await?.refused(404, "NotFound")?;
        same(status["message"].clone(), "the server could not find the requested resource")?;
        same(status["details"].clone(), json!({}))?;
    }
    Ok(())
}

async fn an_unknown_version_is_not_found(world: World) -> anyhow::Result<()> {
    for path in [world.at("apps/v7", "deployments"), world.at("contract.example.com/v7", "widgets")] {
        same(world.get(&path).await?.code, 404)?;
    }
    Ok(())
}

async fn an_unknown_group_is_not_found(world: World) -> anyhow::Result<()> {
    let path = world.at("nowhere.example.com/v1", "widgets");
    same(world.get(&path).await?.code, 404)?;
    same(world.post(&path, &widget("one", titled())).await?.code, 404)
}

async fn a_subresource_that_a_kind_does_not_have_is_not_found(world: World) -> anyhow::Result<()> {
    world.make_widget("one", titled()).await?;
    world.get(&world.widgets("/one/bogus")).await?.refused(404, "NotFound")?;
    world.make_map("one").await?;
    world.get(&world.core("configmaps/one/bogus")).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_namespaced_path_of_a_kind_of_the_cluster_is_not_found(world: World) -> anyhow::Result<()> {
    same(world.get(&world.core("nodes")).await?.code, 404)?;
    same(world.get(&world.at("apps.kruise.io/v1beta1", "nodeimages")).await?.code, 404)
}

async fn an_object_is_not_created_at_the_path_of_another(world: World) -> anyhow::Result<()> {
    let answer = world.post(&world.core("configmaps/one"), &map("one")).await?;
    answer.refused(405, "MethodNotAllowed")?;
    Ok(())
}

async fn a_custom_object_is_created_from_its_body_at_any_path(world: World) -> anyhow::Result<()> {
    let created = world.post(&world.widgets("/one"), &widget("two", titled())).await?.ok(201)?;
    same(created["metadata"]["name"].clone(), "two")?;
    world.get(&world.widgets("/one")).await?.refused(404, "NotFound")?;
    world
        .post(&world.widgets("/two/status"), &widget("two", titled()))
        .await?
        .refused(405, "MethodNotAllowed")?;
    Ok(())
}

async fn an_object_may_come_as_yaml(world: World) -> anyhow::Result<()> {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  labels: {a: b}\ndata:\n  text: |\n    x: 1\n";
    let path = world.core("configmaps");
    let created = world.send("POST", &path, "application/yaml", text.into()).await?.ok(201)?;
    same(created["data"].clone(), json!({ "text": "x: 1\n" }))?;
    same(created["metadata"]["labels"].clone(), json!({ "a": "b" }))?;
    let text = "apiVersion: contract.example.com/v1beta1\nkind: Widget\nmetadata:\n  name: one\nspec:\n  title: plain\n";
    let path = world.widgets("");
    let created = world.send("POST", &path, "application/yaml", text.into()).await?.ok(201)?;
    same(created["spec"]["title"].clone(), "plain")?;
    for text in ["a: [", "- 1", "\"text\""] {
        world.send("POST", &path, "application/yaml", text.into()).await?.refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn an_object_is_not_created_across_namespaces(world: World) -> anyhow::Result<()> {
    world.post("/api/v1/configmaps", &map("one")).await?.refused(405, "MethodNotAllowed")?;
    Ok(())
}

async fn a_whole_list_is_not_replaced(world: World) -> anyhow::Result<()> {
    world.put(&world.core("configmaps"), &map("one")).await?.refused(405, "MethodNotAllowed")?;
    Ok(())
}

async fn a_body_that_is_no_json_is_refused(world: World) -> anyhow::Result<()> {
    for path in [world.core("configmaps"), world.widgets("")] {
        for body in ["this: [is", "{]", "\u{0}"] {
            world.send("POST", &path, "application/json", body.into()).await?.refused(400, "BadRequest")?;
        }
        world.send("POST", &path, "application/json", vec![0xff, 0xfe]).await?.refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_body_that_is_cut_off_is_refused(world: World) -> anyhow::Result<()> {
    let body = widget("one", titled()).to_string();
    let body = body[..body.len() - 3].to_owned();
    let answer = world.send("POST", &world.widgets(""), "application/json", body.into()).await?;
    answer.refused(400, "BadRequest")?;
    Ok(())
}

async fn an_empty_body_is_refused(world: World) -> anyhow::Result<()> {
    for path in [world.core("configmaps"), world.widgets("")] {
        same(world.send("POST", &path, "application/json", Vec::new()).await?.code, 400)?;
    }
    Ok(())
}

async fn a_body_that_is_no_object_is_refused(world: World) -> anyhow::Result<()> {
    for path in [world.core("configmaps"), world.widgets("")] {
        for body in [json!([]), json!("text"), json!(1)] {
            world.post(&path, &body).await?.refused(400, "BadRequest")?;
        }
    }
    Ok(())
}

async fn a_body_in_another_format_is_refused(world: World) -> anyhow::Result<()> {
    for (path, body) in [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        let answer = world.send("POST", &path, "text/plain", body.to_string().into()).await?;
        answer.refused(415, "UnsupportedMediaType")?;
    }
    Ok(())
}

async fn a_body_without_a_content_type_is_json(world: World) -> anyhow::Result<()> {
    for (path, body) in [(world.core("configmaps"), map("one")), (world.widgets(""), widget("one", titled()))]
    {
        world.send("POST", &path, "", body.to_string().into()).await?.ok(201)?;
    }
    Ok(())
}

async fn a_json_body_may_name_its_character_set(world: World) -> anyhow::Result<()> {
    let content_type = "application/json; charset=utf-8";
    let body = map("one").to_string().into();
    world.send("POST", &world.core("configmaps"), content_type, body).await?.ok(201)?;
    Ok(())
}

async fn an_answer_in_an_unknown_format_is_refused(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let path = world.core("configmaps/one");
    let answer = world.send_with("GET", &path, &[("accept", "application/xml")], Vec::new()).await?;
    answer.refused(406, "NotAcceptable")?;
    Ok(())
}

async fn an_answer_is_json_whatever_is_accepted(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    for accept in ["*/*", "application/json, */*", "application/json;q=0.9, text/html;q=0.1"] {
        let path = world.core("configmaps/one");
        let answer = world.send_with("GET", &path, &[("accept", accept)], Vec::new()).await?;
        same(answer.headers["content-type"].to_str()?, "application/json")?;
        answer.ok(200)?;
    }
    Ok(())
}

async fn a_refusal_is_json_too(world: World) -> anyhow::Result<()> {
    let answer = world.get(&world.core("configmaps/none")).await?;
    same(answer.headers["content-type"].to_str()?, "application/json")
}

async fn an_unknown_query_parameter_is_ignored(world: World) -> anyhow::Result<()> {
    world.post(&world.core("configmaps?bogus=1&fieldManager=me&pretty=false"), &map("one")).await?.ok(201)?;
    Ok(())
}

async fn a_name_in_a_path_may_be_encoded(world: World) -> anyhow::Result<()> {
    world.make_map("one.two").await?;
    let found = world.get(&world.core("configmaps/one%2Etwo")).await?.ok(200)?;
    same(found["metadata"]["name"].clone(), "one.two")
}

async fn a_text_may_have_any_letters(world: World) -> anyhow::Result<()> {
    let mut object = map("one");
    let text = "Grüße, 世界 \u{1F600} \"quoted\" \\ \u{7} \u{2028} <&>";
    object["data"]["a"] = text.into();
    object["metadata"]["annotations"] = json!({ "a": text });
    world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    let found = world.get(&world.core("configmaps/one")).await?.ok(200)?;
    same(found["data"]["a"].clone(), text)?;
    ensure!(found["metadata"]["annotations"]["a"] == text, "{found}");
    Ok(())
}
