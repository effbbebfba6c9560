//! Reading one object, and lists: their shape, their order, and the revision they show.

use anyhow::{Context as _, ensure};
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use prewarm_api::kruise::ImagePullJob;
use serde_json::{Value, json};

use super::world::{World, causes, map, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        an_object_that_is_not_there_is_not_found,
        a_custom_object_that_is_not_there_is_not_found_with_its_group,
        an_empty_list_has_a_version_and_no_items,
        an_empty_list_of_a_custom_kind_has_an_empty_token,
        the_items_of_a_built_in_list_leave_their_kind_to_the_list,
        the_items_of_a_custom_list_say_their_kind,
        a_list_through_another_version_shows_that_version,
        a_list_is_sorted_by_name,
        a_list_of_all_namespaces_is_sorted_as_etcd_sorts,
        a_namespace_that_is_not_there_has_an_empty_list,
        a_list_shows_what_was_just_written,
        a_list_from_version_zero_is_whole_whatever_its_limit,
        a_list_not_older_than_a_version_shows_what_came_later,
        a_list_from_a_version_shows_what_came_later,
        a_list_at_an_exact_version_shows_that_moment,
        a_limited_list_from_a_version_shows_that_moment,
        a_list_from_the_future_is_refused_for_now,
        an_object_from_the_future_is_refused_for_now,
        a_list_from_a_version_that_is_no_number_is_refused,
        an_object_from_a_version_that_is_no_number_is_refused,
        an_object_from_an_old_version_is_the_present_one,
        a_match_without_a_version_is_refused,
        an_exact_list_from_version_zero_is_refused,
        an_unknown_match_is_refused,
        a_match_of_a_continued_list_is_refused_with_both_reasons,
        initial_events_of_a_list_are_refused,
        an_object_by_its_name_is_not_watched,
        kube_reads_an_object_without_its_content,
        kube_lists_objects_without_their_content,
    ]
}

/// The names in a list.
pub fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap_or("-").to_owned()).collect()
}

/// Waits until the cache that answers reads "from version zero" has seen this object. It may be a moment behind.
pub async fn cached(world: &World, object: &Value) -> anyhow::Result<()> {
    let wanted = version(object)?;
    let is_cached = async || {
        let list = list(world, "resourceVersion=0").await?;
        Ok((version(&list)? >= wanted).then_some(()))
    };
    world.eventually("the cache", is_cached).await
}

/// The version of an object or list.
pub fn version(object: &Value) -> anyhow::Result<u64> {
    let text = object["metadata"]["resourceVersion"].as_str().context("a version")?;
    text.parse().with_context(|| format!("{text} is a number"))
}

/// Creates config maps of these names.
pub async fn make_maps(world: &World, names: &[&str]) -> anyhow::Result<()> {
    for name in names {
        world.make_map(name).await?;
    }
    Ok(())
}

pub async fn list(world: &World, query: &str) -> anyhow::Result<Value> {
    world.get(&world.core(&format!("configmaps?{query}"))).await?.ok(200)
}

async fn an_object_that_is_not_there_is_not_found(world: World) -> anyhow::Result<()> {
    let status = world.get(&world.core("configmaps/none")).await?.refused(404, "NotFound")?;
    same(status["message"].clone(), "configmaps \"none\" not found")?;
    same(status["details"].clone(), json!({ "name": "none", "kind": "configmaps" }))
}

async fn a_custom_object_that_is_not_there_is_not_found_with_its_group(world: World) -> anyhow::Result<()> {
    let status = world.get(&world.widgets("/none")).await?.refused(404, "NotFound")?;
    same(status["message"].clone(), "widgets.contract.example.com \"none\" not found")?;
    let wanted = json!({ "name": "none", "group": "contract.example.com", "kind": "widgets" });
    same(status["details"].clone(), wanted)
}

async fn an_empty_list_has_a_version_and_no_items(world: World) -> anyhow::Result<()> {
    let mut empty = list(&world, "").await?;
    ensure!(version(&empty)? > 0, "{empty}");
    empty["metadata"]["resourceVersion"] = Value::Null;
    let wanted = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": null }, "items": [],
    });
    same(empty, wanted)
}

async fn an_empty_list_of_a_custom_kind_has_an_empty_token(world: World) -> anyhow::Result<()> {
    let mut empty = world.get(&world.widgets("")).await?.ok(200)?;
    ensure!(version(&empty)? > 0, "{empty}");
    empty["metadata"]["resourceVersion"] = Value::Null;
    let wanted = json!({
        "kind": "WidgetList", "apiVersion": "contract.example.com/v1beta1",
        "metadata": { "continue": "", "resourceVersion": null }, "items": [],
    });
    same(empty, wanted)
}

async fn the_items_of_a_built_in_list_leave_their_kind_to_the_list(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let list = list(&world, "").await?;
    same(list["kind"].clone(), "ConfigMapList")?;
    let item = &list["items"][0];
    ensure!(item.get("kind").is_none() && item.get("apiVersion").is_none(), "{item}");
    same(item["data"].clone(), json!({ "a": "1" }))
}

async fn the_items_of_a_custom_list_say_their_kind(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let list = world.get(&world.widgets("")).await?.ok(200)?;
    same(list["items"][0]["kind"].clone(), "Widget")?;
    same(list["items"][0]["apiVersion"].clone(), "contract.example.com/v1beta1")
}

async fn a_list_through_another_version_shows_that_version(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let path = world.at("contract.example.com/v1alpha1", "widgets");
    let list = world.get(&path).await?.ok(200)?;
    same(list["apiVersion"].clone(), "contract.example.com/v1alpha1")?;
    same(list["metadata"]["continue"].clone(), "")?;
    same(list["items"][0]["apiVersion"].clone(), "contract.example.com/v1alpha1")
}

async fn a_list_is_sorted_by_name(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["b", "a.z", "a-b", "a", "c0", "c"]).await?;
    same(names(&list(&world, "").await?), vec!["a", "a-b", "a.z", "b", "c", "c0"])
}

async fn a_list_of_all_namespaces_is_sorted_as_etcd_sorts(world: World) -> anyhow::Result<()> {
    let plain = world.unique("sorted");
    let namespaces = [plain.clone(), format!("{plain}-b"), format!("{plain}x")];
    for namespace in &namespaces {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        world.post("/api/v1/namespaces", &object).await?.ok(201)?;
        let mut object = map("one");
        object["metadata"]["labels"] = json!({ "sorted": plain });
        world.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await?.ok(201)?;
    }
    let list = world.get(&format!("/api/v1/configmaps?labelSelector=sorted%3D{plain}")).await?.ok(200)?;
    let found: Vec<Value> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| item["metadata"]["namespace"].clone())
        .collect();
    same(found, vec![format!("{plain}-b"), plain.clone(), format!("{plain}x")])
}

async fn a_namespace_that_is_not_there_has_an_empty_list(world: World) -> anyhow::Result<()> {
    let list = world.get("/api/v1/namespaces/nowhere/configmaps").await?.ok(200)?;
    same(names(&list), Vec::<String>::new())
}

async fn a_list_shows_what_was_just_written(world: World) -> anyhow::Result<()> {
    for number in 0..10 {
        let made = world.make_map(&format!("map-{number}")).await?;
        let list = list(&world, "").await?;
        same(names(&list).len(), number + 1)?;
        ensure!(version(&list)? >= version(&made)?, "{list}");
    }
    Ok(())
}

async fn a_list_from_version_zero_is_whole_whatever_its_limit(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b", "c"]).await?;
    // The cache that answers may be a moment behind.
    let found = world.eventually("all three", async || {
        let list = list(&world, "resourceVersion=0&limit=2").await?;
        Ok((names(&list).len() == 3).then_some(list))
    });
    ensure!(found.await?["metadata"].get("continue").is_none(), "a whole list has no token");
    Ok(())
}

async fn a_list_not_older_than_a_version_shows_what_came_later(world: World) -> anyhow::Result<()> {
    let first = version(&world.make_map("a").await?)?;
    let second = version(&world.make_map("b").await?)?;
    let older = list(&world, &format!("resourceVersion={first}&resourceVersionMatch=NotOlderThan")).await?;
    ensure!(version(&older)? >= first, "{older}");
    let query = format!("resourceVersion={second}&resourceVersionMatch=NotOlderThan");
    same(names(&list(&world, &query).await?), vec!["a", "b"])
}

async fn a_list_from_a_version_shows_what_came_later(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let second = version(&world.make_map("b").await?)?;
    let list = list(&world, &format!("resourceVersion={second}")).await?;
    ensure!(version(&list)? >= second, "{list}");
    same(names(&list), vec!["a", "b"])
}

/// Creates a and b, and then changes a, deletes b and creates c. Returns the version in between.
async fn two_moments(world: &World) -> anyhow::Result<u64> {
    world.make_map("a").await?;
    let moment = version(&world.make_map("b").await?)?;
    world.merge(&world.core("configmaps/a"), &json!({ "data": { "a": "2" } })).await?.ok(200)?;
    world.delete(&world.core("configmaps/b"), &Value::Null).await?.ok(200)?;
    world.make_map("c").await?;
    Ok(moment)
}

async fn a_list_at_an_exact_version_shows_that_moment(world: World) -> anyhow::Result<()> {
    let moment = two_moments(&world).await?;
    let past = list(&world, &format!("resourceVersion={moment}&resourceVersionMatch=Exact")).await?;
    same(version(&past)?, moment)?;
    same(names(&past), vec!["a", "b"])?;
    same(past["items"][0]["data"].clone(), json!({ "a": "1" }))?;
    same(names(&list(&world, "").await?), vec!["a", "c"])
}

async fn a_limited_list_from_a_version_shows_that_moment(world: World) -> anyhow::Result<()> {
    let moment = two_moments(&world).await?;
    let page = list(&world, &format!("resourceVersion={moment}&limit=1")).await?;
    same(version(&page)?, moment)?;
    same(names(&page), vec!["a"])?;
    same(page["metadata"]["remainingItemCount"].clone(), 1)
}

/// A Status that says that a version lies in the future.
fn says_too_large(status: &Value) -> anyhow::Result<()> {
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with("Timeout: Too large resource version: 999999999, current: "),
        "the message is {message}"
    );
    let wanted = json!({
        "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
        "retryAfterSeconds": 1,
    });
    same(status["details"].clone(), wanted)
}

async fn a_list_from_the_future_is_refused_for_now(world: World) -> anyhow::Result<()> {
    let answer = world.get(&world.core("configmaps?resourceVersion=999999999")).await?;
    same(answer.headers["retry-after"].to_str()?, "1")?;
    says_too_large(&answer.refused(504, "Timeout")?)
}

async fn an_object_from_the_future_is_refused_for_now(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let answer = world.get(&world.core("configmaps/one?resourceVersion=999999999")).await?;
    says_too_large(&answer.refused(504, "Timeout")?)
}

async fn a_list_from_a_version_that_is_no_number_is_refused(world: World) -> anyhow::Result<()> {
    for text in ["abc", "-1", "1.5"] {
        let path = world.core(&format!("configmaps?resourceVersion={text}"));
        let status = world.get(&path).await?.refused(400, "BadRequest")?;
        let wanted = format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        );
        same(status["message"].clone(), wanted)?;
    }
    Ok(())
}

async fn an_object_from_a_version_that_is_no_number_is_refused(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let answer = world.get(&world.core("configmaps/one?resourceVersion=abc")).await?;
    same(answer.code, 500)?;
    ensure!(answer.body.get("reason").is_none(), "{}", answer.text);
    Ok(())
}

async fn an_object_from_an_old_version_is_the_present_one(world: World) -> anyhow::Result<()> {
    let first = version(&world.make_map("one").await?)?;
    let path = world.core("configmaps/one");
    let second = world.merge(&path, &json!({ "data": { "a": "2" } })).await?.ok(200)?;
    let read = world.get(&format!("{path}?resourceVersion={}", version(&second)?)).await?.ok(200)?;
    same(read, second.clone())?;
    let read = world.get(&format!("{path}?resourceVersion={first}")).await?.ok(200)?;
    ensure!(version(&read)? >= first, "{read}");
    Ok(())
}

/// Expects the refusal of a list. Returns its causes and the sentence about them.
async fn refused_options(world: &World, query: &str) -> anyhow::Result<Value> {
    let status = world.get(&world.core(&format!("configmaps?{query}"))).await?.refused(422, "Invalid")?;
    same(status["details"]["group"].clone(), "meta.k8s.io")?;
    same(status["details"]["kind"].clone(), "ListOptions")?;
    Ok(status)
}

async fn a_match_without_a_version_is_refused(world: World) -> anyhow::Result<()> {
    for word in ["Exact", "NotOlderThan"] {
        let status = refused_options(&world, &format!("resourceVersionMatch={word}")).await?;
        let wanted = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \
                      is forbidden unless resourceVersion is provided";
        same(status["message"].clone(), wanted)?;
        same(causes(&status), vec!["resourceVersionMatch FieldValueForbidden"])?;
    }
    Ok(())
}

async fn an_exact_list_from_version_zero_is_refused(world: World) -> anyhow::Result<()> {
    let status = refused_options(&world, "resourceVersion=0&resourceVersionMatch=Exact").await?;
    let wanted = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \
                  \"exact\" is forbidden for resourceVersion \"0\"";
    same(status["message"].clone(), wanted)
}

async fn an_unknown_match_is_refused(world: World) -> anyhow::Result<()> {
    let status = refused_options(&world, "resourceVersion=1&resourceVersionMatch=About").await?;
    let wanted = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"About\": \
                  supported values: \"Exact\", \"NotOlderThan\", \"\"";
    same(status["message"].clone(), wanted)?;
    same(causes(&status), vec!["resourceVersionMatch FieldValueNotSupported"])
}

async fn a_match_of_a_continued_list_is_refused_with_both_reasons(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let page = list(&world, "limit=1").await?;
    let token = page["metadata"]["continue"].as_str().context("a token")?.to_owned();
    let status = refused_options(&world, &format!("continue={token}&resourceVersionMatch=Exact")).await?;
    let wanted = "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is \
                  forbidden unless resourceVersion is provided, resourceVersionMatch: Forbidden: \
                  resourceVersionMatch is forbidden when continue is provided]";
    same(status["message"].clone(), wanted)
}

async fn initial_events_of_a_list_are_refused(world: World) -> anyhow::Result<()> {
    let status = refused_options(&world, "sendInitialEvents=true").await?;
    same(causes(&status), vec!["sendInitialEvents FieldValueForbidden"])
}

async fn an_object_by_its_name_is_not_watched(world: World) -> anyhow::Result<()> {
    let made = world.make_map("one").await?;
    same(world.get(&world.core("configmaps/one?watch=true")).await?.ok(200)?, made)
}

async fn kube_reads_an_object_without_its_content(world: World) -> anyhow::Result<()> {
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": { "name": "one", "labels": { "a": "b" } }, "spec": { "image": "nginx:1.25" },
    });
    let path = world.at("apps.kruise.io/v1beta1", "imagepulljobs");
    let made = world.post(&path, &job).await?.ok(201)?;
    let jobs = Api::<ImagePullJob>::namespaced(world.client.clone(), &world.namespace);
    let read: PartialObjectMeta<ImagePullJob> = jobs.get_metadata("one").await?;
    same(serde_json::to_value(&read.metadata)?["labels"].clone(), json!({ "a": "b" }))?;
    same(read.metadata.uid, made["metadata"]["uid"].clone())?;
    let types = read.types.context("the answer says what it is")?;
    same(format!("{} {}", types.api_version, types.kind), "meta.k8s.io/v1 PartialObjectMetadata")
}

async fn kube_lists_objects_without_their_content(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let maps =
        Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let list = maps.list_metadata(&ListParams::default()).await?;
    let names: Vec<String> = list.items.iter().filter_map(|item| item.metadata.name.clone()).collect();
    same(names, vec!["a", "b"])?;
    same(
        format!("{} {}", list.types.api_version, list.types.kind),
        "meta.k8s.io/v1 PartialObjectMetadataList",
    )
}
