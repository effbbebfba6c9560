//! Pages of lists: put together, they are one list of one revision.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::list::{list, make_maps, names, version};
use super::world::{World, map, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        pages_put_together_are_the_list,
        pages_say_how_many_objects_remain,
        a_page_that_ends_with_the_last_object_is_the_last,
        pages_show_the_moment_of_the_first_one,
        pages_of_all_namespaces_put_together_are_the_list,
        pages_of_a_custom_kind_put_together_are_the_list,
        pages_with_a_selector_do_not_count_what_remains,
        a_continued_list_with_another_selector_uses_that_selector,
        a_continued_list_takes_no_version,
        a_made_up_token_is_refused,
        a_token_of_another_form_is_refused,
        a_negative_limit_means_no_limit,
        a_limit_that_is_no_number_is_refused,
        a_metadata_list_has_pages_too,
    ]
}

/// Reads all pages. Returns the names on each.
async fn pages(world: &World, path: &str) -> anyhow::Result<Vec<Vec<String>>> {
    let mut pages = Vec::new();
    let mut token = String::new();
    loop {
        let page = world.get(&format!("{path}&continue={token}")).await?.ok(200)?;
        pages.push(names(&page));
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            return Ok(pages);
        }
    }
}

async fn pages_put_together_are_the_list(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c", "d", "e"]).await?;
    let pages = pages(&world, &world.core("configmaps?limit=2")).await?;
    same(json!(pages), json!([["a", "b"], ["c", "d"], ["e"]]))
}

async fn pages_say_how_many_objects_remain(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c"]).await?;
    let first = list(&world, "limit=1").await?;
    same(first["metadata"]["remainingItemCount"].clone(), 2)?;
    let token = first["metadata"]["continue"].as_str().context("a token")?.to_owned();
    let last = list(&world, &format!("limit=2&continue={token}")).await?;
    ensure!(last["metadata"].get("remainingItemCount").is_none(), "{last}");
    ensure!(last["metadata"].get("continue").is_none(), "{last}");
    Ok(())
}

async fn a_page_that_ends_with_the_last_object_is_the_last(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let page = list(&world, "limit=2").await?;
    same(names(&page), vec!["a", "b"])?;
    ensure!(page["metadata"].get("continue").is_none(), "{page}");
    let path = world.core("configmaps?limit=1&labelSelector=!none");
    same(json!(pages(&world, &path).await?), json!([["a"], ["b"]]))
}

async fn pages_show_the_moment_of_the_first_one(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c", "d"]).await?;
    let first = list(&world, "limit=1").await?;
    world.make_map("bb").await?;
    world.delete(&world.core("configmaps/c"), &Value::Null).await?.ok(200)?;
    world.merge(&world.core("configmaps/d"), &json!({ "data": { "a": "2" } })).await?.ok(200)?;
    let mut token = first["metadata"]["continue"].as_str().context("a token")?.to_owned();
    let mut seen = Vec::new();
    while !token.is_empty() {
        let page = list(&world, &format!("limit=1&continue={token}")).await?;
        same(version(&page)?, version(&first)?)?;
        seen.push(format!("{} {}", names(&page).join(""), page["items"][0]["data"]["a"]));
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
    }
    same(seen, vec!["b \"1\"", "c \"1\"", "d \"1\""])?;
    same(names(&list(&world, "").await?), vec!["a", "b", "bb", "d"])
}

async fn pages_of_all_namespaces_put_together_are_the_list(world: World) -> anyhow::Result<()> {
    let label = world.unique("paged");
    for (namespace, name) in [("x", "b"), ("y", "a"), ("y", "c"), ("z", "b")] {
        let namespace = world.unique(namespace);
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        // The second object of a namespace finds it there.
        world.post("/api/v1/namespaces", &object).await?;
        let mut object = map(name);
        object["metadata"]["labels"] = json!({ "paged": label });
        world.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await?.ok(201)?;
    }
    let path = format!("/api/v1/configmaps?limit=1&labelSelector=paged%3D{label}");
    same(json!(pages(&world, &path).await?), json!([["b"], ["a"], ["c"], ["b"]]))
}

async fn pages_of_a_custom_kind_put_together_are_the_list(world: World) -> anyhow::Result<()> {
    for name in ["a", "b", "c"] {
        world.make_widget(name, json!({ "title": "plain" })).await?;
    }
    let pages = pages(&world, &world.widgets("?limit=2")).await?;
    same(json!(pages), json!([["a", "b"], ["c"]]))
}

async fn pages_with_a_selector_do_not_count_what_remains(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c"]).await?;
    let page = list(&world, "limit=1&fieldSelector=metadata.name!%3Db").await?;
    ensure!(page["metadata"]["continue"].is_string(), "{page}");
    ensure!(page["metadata"].get("remainingItemCount").is_none(), "{page}");
    Ok(())
}

async fn a_continued_list_with_another_selector_uses_that_selector(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c", "d"]).await?;
    let page = list(&world, "limit=1").await?;
    let token = page["metadata"]["continue"].as_str().context("a token")?.to_owned();
    let rest = list(&world, &format!("continue={token}&fieldSelector=metadata.name!%3Dc")).await?;
    same(names(&rest), vec!["b", "d"])
}

async fn a_continued_list_takes_no_version(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let page = list(&world, "limit=1").await?;
    let token = page["metadata"]["continue"].as_str().context("a token")?.to_owned();
    let path = world.core(&format!("configmaps?continue={token}&resourceVersion={}", version(&page)?));
    let status = world.get(&path).await?.refused(400, "BadRequest")?;
    same(status["message"].clone(), "specifying resource version is not allowed when using continue")
}

async fn a_made_up_token_is_refused(world: World) -> anyhow::Result<()> {
    let status = world.get(&world.core("configmaps?continue=garbage")).await?.refused(400, "BadRequest")?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.starts_with("invalid continue token: continue key is not valid: "), "{message}");
    Ok(())
}

async fn a_token_of_another_form_is_refused(world: World) -> anyhow::Result<()> {
    // {"v":"meta.k8s.io/v2","rv":210,"start":"m1"}
    let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjIiLCJydiI6MjEwLCJzdGFydCI6Im0xIn0";
    let path = world.core(&format!("configmaps?continue={token}"));
    let status = world.get(&path).await?.refused(400, "BadRequest")?;
    let wanted = "invalid continue token: continue key is not valid: server does not recognize this encoded version \
                  meta.k8s.io/v2";
    same(status["message"].clone(), wanted)
}

async fn a_negative_limit_means_no_limit(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    same(names(&list(&world, "limit=-1").await?), vec!["a", "b"])
}

async fn a_limit_that_is_no_number_is_refused(world: World) -> anyhow::Result<()> {
    let status = world.get(&world.core("configmaps?limit=few")).await?.refused(400, "BadRequest")?;
    same(status["message"].clone(), "strconv.ParseInt: parsing \"few\": invalid syntax")
}

async fn a_metadata_list_has_pages_too(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let accept = [("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")];
    let path = world.core("configmaps?limit=1");
    let page = world.send_with("GET", &path, &accept, Vec::new()).await?.ok(200)?;
    same(names(&page), vec!["a"])?;
    same(page["metadata"]["remainingItemCount"].clone(), 1)?;
    same(page["items"][0]["kind"].clone(), "PartialObjectMetadata")?;
    ensure!(page["items"][0].get("data").is_none(), "{page}");
    Ok(())
}
