//! Watches with options: bookmarks, lists as streams, metadata alone; and which options do not go together.

use anyhow::{Context as _, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::list::{cached, names, version};
use super::watch::{Watching, make_labelled, remove, version_of_the_present};
use super::world::{World, causes, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_watch_with_bookmarks_marks_the_end_of_what_there_was,
        a_watch_without_bookmarks_has_none,
        a_bookmark_comes_before_the_end,
        a_streaming_list_equals_the_list,
        a_streaming_list_of_nothing_is_its_end,
        a_streaming_list_continues_with_changes,
        a_streaming_list_with_selectors_equals_that_list,
        a_streaming_list_without_bookmarks_does_not_say_where_it_ends,
        a_streaming_list_from_the_future_fails_in_the_stream,
        a_watch_without_initial_events_begins_now,
        initial_events_without_a_match_are_refused,
        a_match_without_initial_events_is_refused,
        an_exact_watch_is_refused,
        a_watch_that_continues_a_list_is_refused,
        a_watch_of_metadata_shows_nothing_else,
        kube_watches_objects,
        kube_watches_metadata,
    ]
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

/// Reads a streaming list to its end. Returns the objects and the version.
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

async fn a_streaming_list_continues_with_changes(world: World) -> anyhow::Result<()> {
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
    cached(&world, &world.make_map("a").await?).await?;
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let params = WatchParams::default().timeout(60);
    let mut events = std::pin::pin!(maps.watch(&params, "0").await?);
    remove(&world, "a").await?;
    let mut received = Vec::new();
    while !received.contains(&"deleted") {
        received.push(match events.try_next().await?.context("the watch goes on")? {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => "bookmark",
            WatchEvent::Error(_) => "error",
        });
    }
    received.dedup();
    same(received, vec!["added", "bookmark", "deleted"])
}

async fn kube_watches_metadata(world: World) -> anyhow::Result<()> {
    cached(&world, &world.make_map("a").await?).await?;
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let params = WatchParams::default().timeout(60);
    let mut events = std::pin::pin!(maps.watch_metadata(&params, "0").await?);
    let event = events.try_next().await?.context("the watch goes on")?;
    let WatchEvent::Added(object) = event else { anyhow::bail!("not added") };
    same(object.metadata.name, "a")
}
