//! Where a watch can start, how it ends, and how it resumes.

use anyhow::ensure;
use serde_json::{Value, json};

use super::list::{make_maps, version};
use super::watch::{Watching, version_of_the_present};
use super::world::{World, define, same, served};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_watch_ends_when_it_was_asked_to,
        a_resumed_watch_misses_nothing,
        a_watch_from_the_future_waits_for_it,
        a_watch_from_a_version_that_is_no_number_is_refused,
        a_watch_with_an_invalid_selector_is_refused,
        a_watch_ignores_a_limit,
        a_watch_from_before_the_kind_was_served_fails_in_the_stream,
        a_watch_ends_with_its_kind,
    ]
}

async fn a_watch_ends_when_it_was_asked_to(world: World) -> anyhow::Result<()> {
    let watch = Watching::open(&world, &world.core("configmaps?timeoutSeconds=1")).await?;
    world.make_map("a").await?;
    same(watch.into_lines().await?, vec!["ADDED a"])
}

async fn a_resumed_watch_misses_nothing(world: World) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    let mut last = version_of_the_present(&world).await?;
    for round in 0..5 {
        let path = world.core(&format!("configmaps?resourceVersion={last}"));
        let mut watch = Watching::open(&world, &path).await?;
        world.make_map(&format!("seen-{round}")).await?;
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
        (0..5).flat_map(|round| [format!("seen-{round}"), format!("missed-{round}")]).collect();
    same(seen, wanted)
}

async fn a_watch_from_the_future_waits_for_it(world: World) -> anyhow::Result<()> {
    let path = world.core("configmaps?timeoutSeconds=1&resourceVersion=999999999");
    let watch = Watching::open(&world, &path).await?;
    world.make_map("too-early").await?;
    same(watch.into_lines().await?, Vec::<String>::new())
}

async fn a_watch_from_a_version_that_is_no_number_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.get(&world.core("configmaps?watch=true&resourceVersion=abc")).await?;
    same(answer.code, 500)?;
    let wanted =
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax";
    same(answer.body["message"].clone(), wanted)
}

async fn a_watch_with_an_invalid_selector_is_refused(world: World) -> anyhow::Result<()> {
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
        // A kind that has only just been served may still refuse.
        world.eventually("a thing", async || Ok(world.post(&path, &thing).await?.ok(201).ok())).await?;
    }
    let watch = Watching::open(&world, &format!("{path}?")).await?;
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}");
    world.delete(&definition, &Value::Null).await?.ok(200)?;
    let mut received = watch.into_lines().await?;
    // A real server deletes the objects of a kind in any order.
    received.sort();
    same(received, vec!["ADDED a", "ADDED b", "DELETED a", "DELETED b"])?;
    let gone = async || Ok((world.get(&path).await?.code == 404).then_some(()));
    world.eventually("the kind to go", gone).await
}
