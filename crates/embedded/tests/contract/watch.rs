//! Watches: which events they send, to whom, and in which order.

#[path = "watch/stream.rs"]
mod stream;

use anyhow::ensure;
use serde_json::{Value, json};

use super::list::{cached, make_maps, version};
use super::world::{World, map, same};
use super::{Case, cases};
pub use stream::Watching;

pub fn cases() -> Vec<Case> {
    cases![
        a_watch_without_a_version_begins_with_all_there_is,
        a_watch_from_version_zero_begins_with_all_there_is,
        a_watch_from_a_version_shows_what_came_after,
        a_watch_shows_what_happens,
        an_event_shows_the_object_as_it_was_answered,
        a_deleted_object_has_the_version_of_its_deletion,
        a_deleted_object_is_shown_as_it_was_last_stored,
        a_watch_of_a_namespace_shows_nothing_of_others,
        a_watch_of_all_namespaces_shows_each,
        a_watch_by_name_shows_one_object,
        a_watch_by_name_over_all_namespaces_shows_each_object_of_that_name,
        an_object_that_begins_to_match_is_added,
        an_object_that_no_longer_matches_is_deleted_and_shown_as_it_was,
        an_object_that_never_matched_causes_no_event,
        a_watch_by_field_follows_the_field,
        a_watch_of_custom_objects_by_field_follows_the_field,
        a_write_that_changes_nothing_causes_no_event,
        a_dry_run_causes_no_event,
        a_refused_write_causes_no_event,
        a_status_change_is_an_event_like_any_other,
        two_watchers_get_the_same_events_in_the_same_order,
        concurrent_writes_are_watched_in_the_order_of_versions,
        a_watch_through_another_version_shows_that_version,
    ]
}

pub async fn version_of_the_present(world: &World) -> anyhow::Result<u64> {
    version(&world.get(&world.core("configmaps")).await?.ok(200)?)
}

async fn watch_from_now(world: &World, query: &str) -> anyhow::Result<Watching> {
    let now = version_of_the_present(world).await?;
    Watching::open(world, &world.core(&format!("configmaps?resourceVersion={now}&{query}"))).await
}

pub async fn make_labelled(world: &World, name: &str, value: &str) -> anyhow::Result<Value> {
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

pub async fn remove(world: &World, name: &str) -> anyhow::Result<Value> {
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
    cached(&world, &change(&world, "a", "2").await?).await?;
    let mut watch = Watching::open(&world, &world.core("configmaps?resourceVersion=0")).await?;
    same(watch.take(2).await?, vec!["ADDED a", "ADDED b"])
}

async fn a_watch_from_a_version_shows_what_came_after(world: World) -> anyhow::Result<()> {
    let first = version(&world.make_map("a").await?)?;
    world.make_map("b").await?;
    change(&world, "a", "2").await?;
    remove(&world, "b").await?;
    let path = world.core(&format!("configmaps?resourceVersion={first}"));
    let mut watch = Watching::open(&world, &path).await?;
    same(watch.take(3).await?, vec!["ADDED b", "MODIFIED a", "DELETED b"])
}

async fn a_watch_shows_what_happens(world: World) -> anyhow::Result<()> {
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

async fn a_watch_of_a_namespace_shows_nothing_of_others(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "").await?;
    neighbour(&world, "theirs").await?;
    world.make_map("ours").await?;
    same(watch.take(1).await?, vec!["ADDED ours"])
}

async fn a_watch_of_all_namespaces_shows_each(world: World) -> anyhow::Result<()> {
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

async fn a_watch_by_name_shows_one_object(world: World) -> anyhow::Result<()> {
    let mut watch = watch_from_now(&world, "fieldSelector=metadata.name%3Db").await?;
    make_maps(&world, &["a", "b", "c"]).await?;
    change(&world, "a", "2").await?;
    change(&world, "b", "2").await?;
    remove(&world, "c").await?;
    remove(&world, "b").await?;
    same(watch.take(3).await?, vec!["ADDED b", "MODIFIED b", "DELETED b"])
}

async fn a_watch_by_name_over_all_namespaces_shows_each_object_of_that_name(
    world: World,
) -> anyhow::Result<()> {
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
    // The real deletion did not concern this watch.
    same(watch.take(1).await?, vec!["ADDED b"])
}

async fn an_object_that_never_matched_causes_no_event(world: World) -> anyhow::Result<()> {
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
    super::fields::make_pod(&world, "a", json!({})).await?;
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

async fn a_write_that_changes_nothing_causes_no_event(world: World) -> anyhow::Result<()> {
    let made = world.make_map("a").await?;
    let mut watch = watch_from_now(&world, "").await?;
    same(world.put(&world.core("configmaps/a"), &made).await?.ok(200)?, made.clone())?;
    same(change(&world, "a", "1").await?, made)?;
    change(&world, "a", "2").await?;
    let event = watch.event().await?;
    same(event["object"]["data"].clone(), json!({ "a": "2" }))
}

async fn a_dry_run_causes_no_event(world: World) -> anyhow::Result<()> {
    world.make_map("a").await?;
    let mut watch = watch_from_now(&world, "").await?;
    world.post(&world.core("configmaps?dryRun=All"), &map("b")).await?.ok(201)?;
    let patch = json!({ "data": { "a": "2" } });
    world.merge(&world.core("configmaps/a?dryRun=All"), &patch).await?.ok(200)?;
    world.delete(&world.core("configmaps/a?dryRun=All"), &Value::Null).await?.ok(200)?;
    world.make_map("c").await?;
    same(watch.take(1).await?, vec!["ADDED c"])
}

async fn a_refused_write_causes_no_event(world: World) -> anyhow::Result<()> {
    let mut watch = Watching::open(&world, &world.widgets("?")).await?;
    world.make_widget("a", json!({ "title": "plain" })).await?;
    world.merge(&world.widgets("/a"), &json!({ "spec": { "size": 99 } })).await?.refused(422, "Invalid")?;
    world.merge(&world.widgets("/a"), &json!({ "spec": { "size": 2 } })).await?.ok(200)?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    same(watch.event().await?["object"]["spec"]["size"].clone(), 2)
}

async fn a_status_change_is_an_event_like_any_other(world: World) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain" })).await?;
    let mut watch = Watching::open(&world, &world.widgets("?")).await?;
    same(watch.take(1).await?, vec!["ADDED a"])?;
    let written = world
        .merge(&world.widgets("/a/status"), &json!({ "status": { "phase": "Ready" } }))
        .await?
        .ok(200)?;
    same(watch.event().await?, json!({ "type": "MODIFIED", "object": written }))
}

async fn two_watchers_get_the_same_events_in_the_same_order(world: World) -> anyhow::Result<()> {
    let mut first = watch_from_now(&world, "").await?;
    let mut second = watch_from_now(&world, "").await?;
    make_maps(&world, &["a", "b"]).await?;
    change(&world, "a", "2").await?;
    remove(&world, "b").await?;
    let mut received = Vec::new();
    for _ in 0..4 {
        let event = first.event().await?;
        same(second.event().await?, event.clone())?;
        received.push(stream::brief(&event));
    }
    same(received, vec!["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"])
}

async fn concurrent_writes_are_watched_in_the_order_of_versions(world: World) -> anyhow::Result<()> {
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
