//! Watches: where they begin, what they tell, how they end and how they go on.

#[path = "watch/stream.rs"]
mod stream;

use anyhow::{Context as _, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::list::{make_maps, names, version};
use super::world::{World, causes, define, map, same, served};
use super::{Case, cases};
pub use stream::Watching;

pub fn cases() -> Vec<Case> {
    cases![
        a_watch_without_a_version_begins_with_all_there_is,
        a_watch_from_version_zero_begins_with_all_there_is,
        a_watch_from_a_version_tells_what_came_after,
        a_watch_tells_what_happens,
        an_event_shows_the_object_as_it_was_answered,
        a_deleted_object_has_the_version_of_its_deletion,
        a_deleted_object_is_shown_as_it_was_last_stored,
        a_watch_of_a_namespace_tells_nothing_of_others,
        a_watch_of_all_namespaces_tells_of_each,
        a_watch_by_name_tells_of_one_object,
        a_watch_by_name_over_all_namespaces_tells_of_each_of_that_name,
        an_object_that_begins_to_match_is_added,
        an_object_that_no_longer_matches_is_deleted_and_shown_as_it_was,
        an_object_that_never_matched_is_not_told_of,
        a_watch_by_field_follows_the_field,
        a_watch_of_custom_objects_by_field_follows_the_field,
        a_write_that_changes_nothing_tells_nothing,
        a_dry_run_tells_nothing,
        a_refused_write_tells_nothing,
        a_status_is_told_like_everything_else,
        two_watchers_hear_the_same_in_the_same_order,
        writers_at_once_are_told_of_in_the_order_of_versions,
        a_watch_through_another_version_shows_that_version,
        a_watch_ends_when_it_was_asked_to,
        a_watch_that_goes_on_loses_nothing,
        a_watch_from_the_future_waits_for_it,
        a_watch_with_bookmarks_marks_the_end_of_what_there_was,
        a_watch_without_bookmarks_has_none,
        a_bookmark_comes_before_the_end,
        a_streaming_list_equals_the_list,
        a_streaming_list_of_nothing_is_its_end,
        a_streaming_list_goes_on_with_what_happens,
        a_streaming_list_with_selectors_equals_that_list,
        a_streaming_list_without_bookmarks_does_not_say_where_it_ends,
        a_streaming_list_from_the_future_fails_in_the_stream,
        a_watch_without_initial_events_begins_now,
        initial_events_without_a_match_are_refused,
        a_match_without_initial_events_is_refused,
        an_exact_watch_is_refused,
        a_watch_that_continues_a_list_is_refused,
        a_watch_from_a_version_that_is_no_number_is_refused,
        a_watch_with_a_selector_that_is_none_is_refused,
        a_watch_ignores_a_limit,
        a_watch_from_before_the_kind_was_served_fails_in_the_stream,
        a_watch_ends_with_its_kind,
        a_watch_of_metadata_shows_nothing_else,
        kube_watches_objects,
        kube_watches_metadata,
    ]
}

async fn version_of_the_present(world: &World) -> anyhow::Result<u64> {
    version(&world.get(&world.core("configmaps")).await?.ok(200)?)
}

async fn watch_from_now(world: &World, query: &str) -> anyhow::Result<Watching> {
    let now = version_of_the_present(world).await?;
    Watching::open(world, &world.core(&format!("configmaps?resourceVersion={now}&{query}"))).await
}

async fn make_labelled(world: &World, name: &str, value: &str) -> anyhow::Result<Value> {
    let mut object = map(name);
    object["metadata"]["labels"] = json!({ "kept": value });
    world.post(&world.core("configmaps"), &object).await?.ok(201)
}

async fn label(world: &World, name: &str, value: &str) -> anyhow::Result<Value> {
    let patch = json!({ "metadata": { "labels": { "kept": value } } });
    world.merge(&world.core(&format!("configmaps/{name}")), &patch).await?.ok(200)
}

async fn change(world: &World, name: &str, value: &str) -> anyhow::Result<Value> {
    let patch = json!({ "data": { "a": value } });
    world.merge(&world.core(&format!("configmaps/{name}")), &patch).await?.ok(200)
}

async fn remove(world: &World, name: &str) -> anyhow::Result<Value> {
    world.delete(&world.core(&format!("configmaps/{name}")), &Value::Null).await?.ok(200)
}

async fn a_watch_without_a_version_begins_with_all_there_is(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["b", "a"]).await?;
    let mut watch = Watching::open(&world, &world.core("configmaps?")).await?;
    same(watch.take(2).await?, vec!["ADDED a", "ADDED b"])?;
    world.make_map("c").await?;
    same(watch.take(1).await?, vec!["ADDED c"])
}

async fn a_watch_from_version_zero_begins_with_all_there_is(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["b", "a"]).await?;
    change(&world, "a", "2").await?;
    let mut watch = Watching::open(&world, &world.core("configmaps?resourceVersion=0")).await?;
    same(watch.take(2).await?, vec!["ADDED a", "ADDED b"])
}

async fn a_watch_from_a_version_tells_what_came_after(world: World) -> anyhow::Result<()> {
    let first = version(&world.make_map("a").await?)?;
    world.make_map("b").await?;
    change(&world, "a", "2").await?;
    remove(&world, "b").await?;
    let path = world.core(&format!("configmaps?resourceVersion={first}"));
    let mut watch = Watching::open(&world, &path).await?;
    same(watch.take(3).await?, vec!["ADDED b", "MODIFIED a", "DELETED b"])
}

async fn a_watch_tells_what_happens(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "").await?;
    world.make_map("a").await?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    change(&world, "a", "2").await?;
    same(watch.take(1).await?, vec!["MODIFIED a"])?;
    remove(&world, "a").await?;
    same(watch.take(1).await?, vec!["DELETED a"])
}

async fn an_event_shows_the_object_as_it_was_answered(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "").await?;
    let made = world.make_map("a").await?;
    same(watch.event().await?, json!({ "type": "ADDED", "object": made }))?;
    let changed = change(&world, "a", "2").await?;
    same(watch.event().await?, json!({ "type": "MODIFIED", "object": changed }))
}

async fn a_deleted_object_has_the_version_of_its_deletion(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "").await?;
    let made = world.make_map("a").await?;
    remove(&world, "a").await?;
    watch.take(1).await?;
    let mut deleted = watch.event().await?;
    ensure!(version(&deleted["object"])? > version(&made)?, "{deleted}");
    deleted["object"]["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    same(deleted["object"].clone(), made)
}

async fn a_deleted_object_is_shown_as_it_was_last_stored(world: World) -> anyhow::Result<()> {
    let mut object = map("a");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    let mut watch = watch_from_now(&world, "").await?;
    remove(&world, "a").await?;
    let patch = json!({ "metadata": { "finalizers": null }, "data": { "a": "never stored" } });
    world.merge(&world.core("configmaps/a"), &patch).await?.ok(200)?;
    same(watch.take(1).await?, vec!["MODIFIED a"])?;
    let deleted = watch.event().await?;
    same(deleted["type"].clone(), "DELETED")?;
    same(deleted["object"]["metadata"]["finalizers"].clone(), json!(["example.com/hold"]))?;
    same(deleted["object"]["data"].clone(), json!({ "a": "1" }))
}

/// A second namespace with a map in it.
async fn neighbour(world: &World, name: &str) -> anyhow::Result<String> {
    let namespace = world.unique("neighbour");
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    world.post("/api/v1/namespaces", &object).await?;
    world.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &map(name)).await?.ok(201)?;
    Ok(namespace)
}

async fn a_watch_of_a_namespace_tells_nothing_of_others(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "").await?;
    neighbour(&world, "theirs").await?;
    world.make_map("ours").await?;
    same(watch.take(1).await?, vec!["ADDED ours"])
}

async fn a_watch_of_all_namespaces_tells_of_each(world: World) -> anyhow::Result<()> {
    let now = version_of_the_present(&world).await?;
    let query = format!("/api/v1/configmaps?resourceVersion={now}&labelSelector=kept%3D{}", world.namespace);
    let mut watch = Watching::open(&world, &query).await?;
    let namespace = neighbour(&world, "unlabelled").await?;
    let mut object = map("theirs");
    object["metadata"]["labels"] = json!({ "kept": world.namespace });
    world.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await?.ok(201)?;
    make_labelled(&world, "ours", &world.namespace).await?;
    same(watch.take(2).await?, vec!["ADDED theirs", "ADDED ours"])
}

async fn a_watch_by_name_tells_of_one_object(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "fieldSelector=metadata.name%3Db").await?;
    make_maps(&world, &["a", "b", "c"]).await?;
    change(&world, "a", "2").await?;
    change(&world, "b", "2").await?;
    remove(&world, "c").await?;
    remove(&world, "b").await?;
    same(watch.take(3).await?, vec!["ADDED b", "MODIFIED b", "DELETED b"])
}

async fn a_watch_by_name_over_all_namespaces_tells_of_each_of_that_name(world: World) -> anyhow::Result<()> {
    let now = version_of_the_present(&world).await?;
    let name = world.unique("common");
    let path = format!("/api/v1/configmaps?resourceVersion={now}&fieldSelector=metadata.name%3D{name}");
    let mut watch = Watching::open(&world, &path).await?;
    world.make_map("other").await?;
    world.make_map(&name).await?;
    neighbour(&world, &name).await?;
    let first = watch.event().await?;
    let second = watch.event().await?;
    same(first["object"]["metadata"]["namespace"].clone(), world.namespace.clone())?;
    same(second["object"]["metadata"]["namespace"].clone(), world.unique("neighbour"))
}

async fn an_object_that_begins_to_match_is_added(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "labelSelector=kept%3Dyes").await?;
    make_labelled(&world, "a", "no").await?;
    let labelled = label(&world, "a", "yes").await?;
    same(watch.event().await?, json!({ "type": "ADDED", "object": labelled }))
}

async fn an_object_that_no_longer_matches_is_deleted_and_shown_as_it_was(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "labelSelector=kept%3Dyes").await?;
    let mut seen = make_labelled(&world, "a", "yes").await?;
    let left = label(&world, "a", "no").await?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    seen["metadata"]["resourceVersion"] = left["metadata"]["resourceVersion"].clone();
    same(watch.event().await?, json!({ "type": "DELETED", "object": seen }))?;
    remove(&world, "a").await?;
    make_labelled(&world, "b", "yes").await?;
    // Its real end was nothing to this watch.
    same(watch.take(1).await?, vec!["ADDED b"])
}

async fn an_object_that_never_matched_is_not_told_of(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "labelSelector=kept%3Dyes").await?;
    make_labelled(&world, "a", "no").await?;
    change(&world, "a", "2").await?;
    remove(&world, "a").await?;
    make_labelled(&world, "b", "yes").await?;
    same(watch.take(1).await?, vec!["ADDED b"])
}

async fn a_watch_by_field_follows_the_field(world: World) -> anyhow::Result<()> {
    let now = version_of_the_present(&world).await?;
    let path = world.core(&format!("pods?resourceVersion={now}&fieldSelector=status.phase%3DRunning"));
    let mut watch = Watching::open(&world, &path).await?;
    super::selectors::make_pod(&world, "a", json!({})).await?;
    for phase in ["Running", "Succeeded"] {
        let patch = json!({ "status": { "phase": phase } });
        world.merge(&world.core("pods/a/status"), &patch).await?.ok(200)?;
    }
    same(watch.take(2).await?, vec!["ADDED a", "DELETED a"])
}

async fn a_watch_of_custom_objects_by_field_follows_the_field(world: World) -> anyhow::Result<()> {
    let mut watch = Watching::open(&world, &world.widgets("?fieldSelector=spec.color%3Dblue")).await?;
    world.make_widget("a", json!({ "title": "plain", "color": "red" })).await?;
    for color in ["blue", "green"] {
        world.merge(&world.widgets("/a"), &json!({ "spec": { "color": color } })).await?.ok(200)?;
    }
    let added = watch.event().await?;
    same(added["object"]["spec"]["color"].clone(), "blue")?;
    let deleted = watch.event().await?;
    same(deleted["type"].clone(), "DELETED")?;
    same(deleted["object"]["spec"]["color"].clone(), "blue")
}

async fn a_write_that_changes_nothing_tells_nothing(world: World) -> anyhow::Result<()> {
    let made = world.make_map("a").await?;
    let mut watch = watch_from_now(&world, "").await?;
    same(world.put(&world.core("configmaps/a"), &made).await?.ok(200)?, made.clone())?;
    same(change(&world, "a", "1").await?, made)?;
    change(&world, "a", "2").await?;
    let event = watch.event().await?;
    same(event["object"]["data"].clone(), json!({ "a": "2" }))
}

async fn a_dry_run_tells_nothing(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let mut watch = watch_from_now(&world, "").await?;
    world.post(&world.core("configmaps?dryRun=All"), &map("b")).await?.ok(201)?;
    let patch = json!({ "data": { "a": "2" } });
    world.merge(&world.core("configmaps/a?dryRun=All"), &patch).await?.ok(200)?;
    world.delete(&world.core("configmaps/a?dryRun=All"), &Value::Null).await?.ok(200)?;
    world.make_map("c").await?;
    same(watch.take(1).await?, vec!["ADDED c"])
}

async fn a_refused_write_tells_nothing(world: World) -> anyhow::Result<()> {
    let mut watch = Watching::open(&world, &world.widgets("?")).await?;
    world.make_widget("a", json!({ "title": "plain" })).await?;
    world.merge(&world.widgets("/a"), &json!({ "spec": { "size": 99 } })).await?.refused(422, "Invalid")?;
    world.merge(&world.widgets("/a"), &json!({ "spec": { "size": 2 } })).await?.ok(200)?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    same(watch.event().await?["object"]["spec"]["size"].clone(), 2)
}

async fn a_status_is_told_like_everything_else(world: World) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain" })).await?;
    let mut watch = Watching::open(&world, &world.widgets("?")).await?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    let written = world
        .merge(&world.widgets("/a/status"), &json!({ "status": { "phase": "Ready" } }))
        .await?
        .ok(200)?;
    same(watch.event().await?, json!({ "type": "MODIFIED", "object": written }))
}

async fn two_watchers_hear_the_same_in_the_same_order(world: World) -> anyhow::Result<()> {
    let mut first = watch_from_now(&world, "").await?;
    let mut second = watch_from_now(&world, "").await?;
    make_maps(&world, &["a", "b"]).await?;
    change(&world, "a", "2").await?;
    remove(&world, "b").await?;
    let mut heard = Vec::new();
    for _ in 0..4 {
        let event = first.event().await?;
        same(second.event().await?, event.clone())?;
        heard.push(stream::brief(&event));
    }
    same(heard, vec!["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"])
}

async fn writers_at_once_are_told_of_in_the_order_of_versions(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "").await?;
    let writers = (0..8).map(|number| {
        let world = world.clone();
        async move {
            let name = format!("map-{number}");
            world.make_map(&name).await?;
            change(&world, &name, "2").await?;
            remove(&world, &name).await
        }
    });
    futures::future::try_join_all(writers).await?;
    let mut last = 0;
    let mut states = std::collections::BTreeMap::new();
    for _ in 0..24 {
        let event = watch.event().await?;
        let version = version(&event["object"])?;
        ensure!(version > last, "{version} comes after {last}");
        last = version;
        let name = event["object"]["metadata"]["name"].to_string();
        let before = states.insert(name, event["type"].clone());
        let order = json!([before, event["type"]]);
        let wanted = [json!([null, "ADDED"]), json!(["ADDED", "MODIFIED"]), json!(["MODIFIED", "DELETED"])];
        ensure!(wanted.contains(&order), "one object went through {order}");
    }
    Ok(())
}

async fn a_watch_through_another_version_shows_that_version(world: World) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain" })).await?;
    let path = world.at("contract.example.com/v1alpha1", "widgets?allowWatchBookmarks=true");
    let mut watch = Watching::open(&world, &path).await?;
    world.merge(&world.widgets("/a"), &json!({ "spec": { "size": 2 } })).await?.ok(200)?;
    for wanted in ["ADDED", "BOOKMARK", "MODIFIED"] {
        let event = watch.event().await?;
        same(event["type"].clone(), wanted)?;
        same(event["object"]["apiVersion"].clone(), "contract.example.com/v1alpha1")?;
        same(event["object"]["kind"].clone(), "Widget")?;
    }
    Ok(())
}

async fn a_watch_ends_when_it_was_asked_to(world: World) -> anyhow::Result<()> {
    let watch = Watching::open(&world, &world.core("configmaps?timeoutSeconds=1")).await?;
    world.make_map("a").await?;
    same(watch.into_lines().await?, vec!["ADDED a"])
}

async fn a_watch_that_goes_on_loses_nothing(world: World) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    let mut last = version_of_the_present(&world).await?;
    for round in 0..5 {
        let path = world.core(&format!("configmaps?resourceVersion={last}"));
        let mut watch = Watching::open(&world, &path).await?;
        world.make_map(&format!("heard-{round}")).await?;
        let event = watch.event().await?;
        last = version(&event["object"])?;
        seen.push(event["object"]["metadata"]["name"].clone());
        drop(watch);
        world.make_map(&format!("missed-{round}")).await?;
        let path = world.core(&format!("configmaps?resourceVersion={last}"));
        let event = Watching::open(&world, &path).await?.event().await?;
        last = version(&event["object"])?;
        seen.push(event["object"]["metadata"]["name"].clone());
    }
    let wanted: Vec<String> =
        (0..5).flat_map(|round| [format!("heard-{round}"), format!("missed-{round}")]).collect();
    same(seen, wanted)
}

async fn a_watch_from_the_future_waits_for_it(world: World) -> anyhow::Result<()> {
    let path = world.core("configmaps?timeoutSeconds=1&resourceVersion=999999999");
    let watch = Watching::open(&world, &path).await?;
    world.make_map("too-early").await?;
    same(watch.into_lines().await?, Vec::<String>::new())
}

async fn a_watch_with_bookmarks_marks_the_end_of_what_there_was(world: World) -> anyhow::Result<()> {
    let made = world.make_map("a").await?;
    let mut watch = Watching::open(&world, &world.core("configmaps?allowWatchBookmarks=true")).await?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    let mut bookmark = watch.event().await?;
    ensure!(version(&bookmark["object"])? >= version(&made)?, "{bookmark}");
    bookmark["object"]["metadata"]["resourceVersion"] = Value::Null;
    let metadata = json!({ "resourceVersion": null, "annotations": { "k8s.io/initial-events-end": "true" } });
    let wanted = json!({
        "type": "BOOKMARK", "object": { "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata },
    });
    same(bookmark, wanted)
}

async fn a_watch_without_bookmarks_has_none(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let watch = Watching::open(&world, &world.core("configmaps?timeoutSeconds=4")).await?;
    same(watch.into_lines().await?, vec!["ADDED a"])
}

async fn a_bookmark_comes_before_the_end(world: World) -> anyhow::Result<()> {
    let now = version_of_the_present(&world).await?;
    let query = format!("configmaps?resourceVersion={now}&timeoutSeconds=5&allowWatchBookmarks=true");
    let mut watch = Watching::open(&world, &world.core(&query)).await?;
    let made = world.make_map("a").await?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    let bookmark = watch.next().await?.context("the watch goes on")?;
    same(bookmark["type"].clone(), "BOOKMARK")?;
    ensure!(version(&bookmark["object"])? >= version(&made)?, "{bookmark}");
    ensure!(bookmark["object"]["metadata"].get("annotations").is_none(), "{bookmark}");
    Ok(())
}

const STREAMING: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Reads a streaming list up to its end; gives the objects and the version.
async fn streamed(watch: &mut Watching) -> anyhow::Result<(Vec<Value>, u64)> {
    let mut objects = Vec::new();
    loop {
        let event = watch.event().await?;
        if event["type"] == "BOOKMARK" {
            let annotations = &event["object"]["metadata"]["annotations"];
            same(annotations.clone(), json!({ "k8s.io/initial-events-end": "true" }))?;
            return Ok((objects, version(&event["object"])?));
        }
        same(event["type"].clone(), "ADDED")?;
        objects.push(event["object"].clone());
    }
}

async fn a_streaming_list_equals_the_list(world: World) -> anyhow::Result<()> {
    for name in ["c", "a", "b"] {
        world.make_widget(name, json!({ "title": "plain" })).await?;
    }
    let mut watch = Watching::open(&world, &world.widgets(&format!("?{STREAMING}"))).await?;
    let (objects, revision) = streamed(&mut watch).await?;
    let list = world.get(&world.widgets("")).await?.ok(200)?;
    same(objects, list["items"].clone())?;
    let exact = format!("?resourceVersion={revision}&resourceVersionMatch=Exact");
    same(world.get(&world.widgets(&exact)).await?.ok(200)?["items"].clone(), list["items"].clone())
}

async fn a_streaming_list_of_nothing_is_its_end(world: World) -> anyhow::Result<()> {
    let mut watch = Watching::open(&world, &world.core(&format!("configmaps?{STREAMING}"))).await?;
    let (objects, revision) = streamed(&mut watch).await?;
    same(objects, Vec::<Value>::new())?;
    ensure!(revision > 0, "the end has a version");
    Ok(())
}

async fn a_streaming_list_goes_on_with_what_happens(world: World) -> anyhow::Result<()> {
    let made = version(&world.make_map("a").await?)?;
    let path = world.core(&format!("configmaps?{STREAMING}&resourceVersion={made}"));
    let mut watch = Watching::open(&world, &path).await?;
    let (objects, revision) = streamed(&mut watch).await?;
    same(objects.len(), 1)?;
    ensure!(revision >= made, "{revision} is before {made}");
    world.make_map("b").await?;
    remove(&world, "a").await?;
    same(watch.take(2).await?, vec!["ADDED b", "DELETED a"])
}

async fn a_streaming_list_with_selectors_equals_that_list(world: World) -> anyhow::Result<()> {
    make_labelled(&world, "a", "yes").await?;
    make_labelled(&world, "b", "no").await?;
    make_labelled(&world, "c", "yes").await?;
    let selectors = "labelSelector=kept%3Dyes&fieldSelector=metadata.name!%3Da";
    let path = world.core(&format!("configmaps?{STREAMING}&{selectors}"));
    let (objects, _) = streamed(&mut Watching::open(&world, &path).await?).await?;
    let list = world.get(&world.core(&format!("configmaps?{selectors}"))).await?.ok(200)?;
    same(names(&json!({ "items": objects })), names(&list))
}

async fn a_streaming_list_without_bookmarks_does_not_say_where_it_ends(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let query = "configmaps?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    let watch = Watching::open(&world, &world.core(query)).await?;
    same(watch.into_lines().await?, vec!["ADDED a"])
}

async fn a_streaming_list_from_the_future_fails_in_the_stream(world: World) -> anyhow::Result<()> {
    let path = world.core(&format!("configmaps?{STREAMING}&resourceVersion=999999999"));
    let mut watch = Watching::open(&world, &path).await?;
    let event = watch.event().await?;
    same(event["type"].clone(), "ERROR")?;
    same(event["object"]["code"].clone(), 504)?;
    same(event["object"]["reason"].clone(), "Timeout")?;
    ensure!(watch.next().await?.is_none(), "an error is the end");
    Ok(())
}

async fn a_watch_without_initial_events_begins_now(world: World) -> anyhow::Result<()> {
    world.make_map("before").await?;
    let query =
        "configmaps?sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watching::open(&world, &world.core(query)).await?;
    world.make_map("after").await?;
    same(watch.take(1).await?, vec!["ADDED after"])
}

async fn refused(world: &World, query: &str) -> anyhow::Result<Value> {
    world
        .get(&world.core(&format!("configmaps?watch=true&timeoutSeconds=1&{query}")))
        .await?
        .refused(422, "Invalid")
}

async fn initial_events_without_a_match_are_refused(world: World) -> anyhow::Result<()> {
    for query in ["sendInitialEvents=true", "sendInitialEvents=true&allowWatchBookmarks=true"] {
        let status = refused(&world, query).await?;
        let wanted = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents \
                      requires setting resourceVersionMatch to NotOlderThan";
        same(status["message"].clone(), wanted)?;
        same(status["details"]["kind"].clone(), "ListOptions")?;
    }
    Ok(())
}

async fn a_match_without_initial_events_is_refused(world: World) -> anyhow::Result<()> {
    let status = refused(&world, "resourceVersionMatch=NotOlderThan").await?;
    let wanted = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is \
                  forbidden for watch unless sendInitialEvents is provided";
    same(status["message"].clone(), wanted)
}

async fn an_exact_watch_is_refused(world: World) -> anyhow::Result<()> {
    let status = refused(&world, "resourceVersionMatch=Exact&resourceVersion=1").await?;
    let wanted =
        vec!["resourceVersionMatch FieldValueForbidden", "resourceVersionMatch FieldValueNotSupported"];
    same(causes(&status), wanted.clone())?;
    let streaming = "resourceVersionMatch=Exact&resourceVersion=1&sendInitialEvents=true";
    same(causes(&refused(&world, streaming).await?), wanted)
}

async fn a_watch_that_continues_a_list_is_refused(world: World) -> anyhow::Result<()> {
    let status = refused(&world, "continue=abc").await?;
    same(causes(&status), vec!["resourceVersionMatch FieldValueForbidden"])
}

async fn a_watch_from_a_version_that_is_no_number_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.get(&world.core("configmaps?watch=true&resourceVersion=abc")).await?;
    same(answer.code, 500)?;
    let wanted =
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax";
    same(answer.body["message"].clone(), wanted)
}

async fn a_watch_with_a_selector_that_is_none_is_refused(world: World) -> anyhow::Result<()> {
    for query in ["labelSelector=a%3D%3D%3D", "fieldSelector=spec.a%3Db", "fieldSelector=a"] {
        world
            .get(&world.core(&format!("configmaps?watch=true&{query}")))
            .await?
            .refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn a_watch_ignores_a_limit(world: World) -> anyhow::Result<()> {
    make_maps(&world, &["a", "b"]).await?;
    let mut watch = Watching::open(&world, &world.core("configmaps?limit=1")).await?;
    same(watch.take(2).await?, vec!["ADDED a", "ADDED b"])
}

/// A definition of a kind of the case's own.
async fn own_kind(world: &World) -> anyhow::Result<(String, Value)> {
    let group = format!("{}.example.com", world.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("things.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    define(world, &definition).await?;
    served(world, &definition).await?;
    Ok((group, definition))
}

async fn a_watch_from_before_the_kind_was_served_fails_in_the_stream(world: World) -> anyhow::Result<()> {
    let (group, _) = own_kind(&world).await?;
    let path = world.at(&format!("{group}/v1"), "things?resourceVersion=1");
    let mut watch = Watching::open(&world, &path).await?;
    let mut event = watch.event().await?;
    let message = event["object"]["message"].take();
    let message = message.as_str().unwrap_or_default();
    ensure!(message.starts_with("too old resource version: 1 ("), "{message}");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": null,
        "reason": "Expired", "code": 410,
    });
    same(event, json!({ "type": "ERROR", "object": status }))?;
    ensure!(watch.next().await?.is_none(), "an error is the end");
    Ok(())
}

async fn a_watch_ends_with_its_kind(world: World) -> anyhow::Result<()> {
    let (group, _) = own_kind(&world).await?;
    let path = world.at(&format!("{group}/v1"), "things");
    for name in ["a", "b"] {
        let thing =
            json!({ "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": { "name": name } });
        // A kind that was only just served may still refuse.
        world.eventually("a thing", async || Ok(world.post(&path, &thing).await?.ok(201).ok())).await?;
    }
    let watch = Watching::open(&world, &format!("{path}?")).await?;
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}");
    world.delete(&definition, &Value::Null).await?.ok(200)?;
    let mut heard = watch.into_lines().await?;
    // A real server deletes the objects of a kind in any order.
    heard.sort();
    same(heard, vec!["ADDED a", "ADDED b", "DELETED a", "DELETED b"])?;
    let gone = async || Ok((world.get(&path).await?.code == 404).then_some(()));
    world.eventually("the kind to go", gone).await
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

async fn a_watch_of_metadata_shows_nothing_else(world: World) -> anyhow::Result<()> {
    let made = world.make_map("a").await?;
    let path = world.core("configmaps?allowWatchBookmarks=true");
    let mut watch = Watching::open_with(&world, &path, METADATA).await?;
    let event = watch.event().await?;
    let wanted = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"],
    });
    same(event["object"].clone(), wanted)?;
    let bookmark = watch.event().await?;
    same(bookmark["object"]["kind"].clone(), "PartialObjectMetadata")?;
    let annotations = bookmark["object"]["metadata"]["annotations"].clone();
    same(annotations, json!({ "k8s.io/initial-events-end": "true" }))?;
    remove(&world, "a").await?;
    let deleted = watch.event().await?;
    same(deleted["type"].clone(), "DELETED")?;
    ensure!(deleted["object"].get("data").is_none(), "{deleted}");
    Ok(())
}

async fn kube_watches_objects(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let params = WatchParams::default().timeout(60);
    let mut events = std::pin::pin!(maps.watch(&params, "0").await?);
    remove(&world, "a").await?;
    let mut heard = Vec::new();
    while !heard.contains(&"deleted") {
        heard.push(match events.try_next().await?.context("the watch goes on")? {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => "bookmark",
            WatchEvent::Error(_) => "error",
        });
    }
    heard.dedup();
    same(heard, vec!["added", "bookmark", "deleted"])
}

async fn kube_watches_metadata(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let params = WatchParams::default().timeout(60);
    let mut events = std::pin::pin!(maps.watch_metadata(&params, "0").await?);
    let event = events.try_next().await?.context("the watch goes on")?;
    let WatchEvent::Added(object) = event else { anyhow::bail!("not added") };
    same(object.metadata.name, "a")
}
