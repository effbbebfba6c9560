//! Events, which two APIs share: what is written through one is read through the other.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        an_event_of_the_core_is_read_through_the_other_api,
        an_event_of_the_other_api_is_read_through_the_core,
        an_event_has_one_version_and_one_uid_in_both_apis,
        an_event_deleted_in_one_api_is_gone_in_the_other,
        an_event_patched_in_one_api_is_changed_in_the_other,
        events_are_listed_in_both_apis,
        events_are_watched_in_both_apis,
        events_are_selected_by_what_they_are_about,
        the_name_of_an_event_is_taken_in_both_apis,
        an_event_is_replaced_without_its_version,
    ]
}

fn of_core(world: &World) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "one" },
        "involvedObject": { "kind": "Pod", "namespace": world.namespace, "name": "web", "uid": "u1" },
        "reason": "Pulled", "message": "It is there.", "type": "Normal",
        "source": { "component": "agent", "host": "node-1" },
        "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z", "count": 3,
    })
}

fn of_events(world: &World) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "one" },
        "regarding": { "kind": "Pod", "namespace": world.namespace, "name": "web", "uid": "u1" },
        "reason": "Pulled", "note": "It is there.", "type": "Normal", "action": "Pulling",
        "reportingController": "example.com/agent", "reportingInstance": "agent-1",
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "series": { "count": 2, "lastObservedTime": "2026-01-02T03:04:07.000000Z" },
    })
}

fn path(world: &World, rest: &str) -> String {
    world.at("events.k8s.io/v1", &format!("events{rest}"))
}

/// The listed fields of a value.
fn part(value: &Value, fields: &[&str]) -> Value {
    fields
        .iter()
        .map(|field| ((*field).to_owned(), value[*field].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

async fn an_event_of_the_core_is_read_through_the_other_api(world: World) -> anyhow::Result<()> {
    let event = of_core(&world);
    let created = world.post(&world.core("events"), &event).await?.ok(201)?;
    let fields =
        ["involvedObject", "reason", "message", "type", "source", "firstTimestamp", "lastTimestamp", "count"];
    same(part(&created, &fields), part(&event, &fields))?;
    let found = world.get(&path(&world, "/one")).await?.ok(200)?;
    same(found["apiVersion"].clone(), "events.k8s.io/v1")?;
    let wanted = json!({
        "regarding": event["involvedObject"], "reason": "Pulled", "note": "It is there.", "type": "Normal",
        "deprecatedSource": event["source"], "deprecatedFirstTimestamp": event["firstTimestamp"],
        "deprecatedLastTimestamp": event["lastTimestamp"], "deprecatedCount": 3,
    });
    let fields: Vec<&str> = wanted.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    same(part(&found, &fields), wanted.clone())?;
    for field in ["involvedObject", "message", "source", "firstTimestamp", "lastTimestamp", "count"] {
        ensure!(found.get(field).is_none(), "{field}: {found}");
    }
    Ok(())
}

async fn an_event_of_the_other_api_is_read_through_the_core(world: World) -> anyhow::Result<()> {
    let event = of_events(&world);
    world.post(&path(&world, ""), &event).await?.ok(201)?;
    let found = world.get(&world.core("events/one")).await?.ok(200)?;
    same(found["apiVersion"].clone(), "v1")?;
    let wanted = json!({
        "involvedObject": event["regarding"], "reason": "Pulled", "message": "It is there.", "type": "Normal",
        "action": "Pulling", "reportingComponent": "example.com/agent", "reportingInstance": "agent-1",
        "eventTime": event["eventTime"], "series": event["series"], "source": {}, "firstTimestamp": null,
        "lastTimestamp": null,
    });
    let fields: Vec<&str> = wanted.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    same(part(&found, &fields), wanted.clone())?;
    for field in ["regarding", "note", "reportingController"] {
        ensure!(found.get(field).is_none(), "{field}: {found}");
    }
    Ok(())
}

async fn an_event_has_one_version_and_one_uid_in_both_apis(world: World) -> anyhow::Result<()> {
    let created = world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    let found = world.get(&world.core("events/one")).await?.ok(200)?;
    let fields = ["uid", "resourceVersion", "creationTimestamp", "name", "namespace"];
    same(part(&created["metadata"], &fields), part(&found["metadata"], &fields))
}

async fn an_event_deleted_in_one_api_is_gone_in_the_other(world: World) -> anyhow::Result<()> {
    world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    world.delete(&world.core("events/one"), &Value::Null).await?.ok(200)?;
    world.get(&path(&world, "/one")).await?.refused(404, "NotFound")?;
    world.get(&world.core("events/one")).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn an_event_patched_in_one_api_is_changed_in_the_other(world: World) -> anyhow::Result<()> {
    world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    let series = json!({ "series": { "count": 5, "lastObservedTime": "2026-01-02T03:05:00.000000Z" } });
    let patched = world.merge(&path(&world, "/one"), &series).await?.ok(200)?;
    let found = world.get(&world.core("events/one")).await?.ok(200)?;
    same(found["series"].clone(), series["series"].clone())?;
    same(found["metadata"]["resourceVersion"].clone(), patched["metadata"]["resourceVersion"].clone())?;
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    world.merge(&world.core("events/one"), &patch).await?.ok(200)?;
    let found = world.get(&path(&world, "/one")).await?.ok(200)?;
    same(found["metadata"]["labels"].clone(), json!({ "a": "b" }))?;
    same(found["note"].clone(), "It is there.")
}

async fn events_are_listed_in_both_apis(world: World) -> anyhow::Result<()> {
    world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    let mut other = of_core(&world);
    other["metadata"]["name"] = "two".into();
    world.post(&world.core("events"), &other).await?.ok(201)?;
    for (path, field) in [(world.core("events"), "message"), (path(&world, ""), "note")] {
        let list = world.get(&path).await?.ok(200)?;
        let words: Vec<Value> =
            list["items"].as_array().into_iter().flatten().map(|event| event[field].clone()).collect();
        same(words, json!(["It is there.", "It is there."]))?;
    }
    Ok(())
}

async fn events_are_watched_in_both_apis(world: World) -> anyhow::Result<()> {
    let map = world.make_map("before").await?;
    let version = map["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    let query = format!("?watch=1&timeoutSeconds=1&resourceVersion={version}");
    for (path, field) in [(world.core(&format!("events{query}")), "message"), (path(&world, &query), "note")]
    {
        let text = world.get(&path).await?.text;
        let first: Value = serde_json::from_str(text.lines().next().unwrap_or_default())?;
        same(first["type"].clone(), "ADDED")?;
        same(first["object"][field].clone(), "It is there.")?;
    }
    Ok(())
}

async fn events_are_selected_by_what_they_are_about(world: World) -> anyhow::Result<()> {
    world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    let count = async |path: String| -> anyhow::Result<usize> {
        Ok(world.get(&path).await?.ok(200)?["items"].as_array().map_or(0, Vec::len))
    };
    let core = |selector: &str| world.core(&format!("events?fieldSelector={selector}"));
    same(count(core("involvedObject.name%3Dweb,involvedObject.kind%3DPod")).await?, 1)?;
    same(count(core("involvedObject.name%3Dother")).await?, 0)?;
    same(count(core("involvedObject.uid%3Du1,type%3DNormal,reason%3DPulled")).await?, 1)?;
    same(count(path(&world, "?fieldSelector=regarding.name%3Dweb")).await?, 1)?;
    same(count(path(&world, "?fieldSelector=regarding.name%3Dother")).await?, 0)
}

async fn the_name_of_an_event_is_taken_in_both_apis(world: World) -> anyhow::Result<()> {
    world.post(&path(&world, ""), &of_events(&world)).await?.ok(201)?;
    world.post(&world.core("events"), &of_core(&world)).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

async fn an_event_is_replaced_without_its_version(world: World) -> anyhow::Result<()> {
    world.post(&world.core("events"), &of_core(&world)).await?.ok(201)?;
    let mut event = of_core(&world);
    event["count"] = 4.into();
    event["lastTimestamp"] = "2026-01-02T03:05:06Z".into();
    world.put(&world.core("events/one"), &event).await?.ok(200)?;
    same(world.get(&path(&world, "/one")).await?.ok(200)?["deprecatedCount"].clone(), 4)
}
