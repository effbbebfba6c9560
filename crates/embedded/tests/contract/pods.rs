//! The end of pods, which have a grace period, and of the other kinds, which have none.

use anyhow::ensure;
use serde_json::{Value, json};

use super::delete::{delete, is_gone, is_marked, make_held};
use super::fields::make_pod;
use super::list::version;
use super::watch::Watching;
use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_pod_without_a_node_goes_at_once_and_is_answered,
        watchers_see_the_mark_of_a_pod_that_goes_at_once,
        a_pod_on_a_node_has_thirty_seconds,
        a_pod_on_a_node_has_the_time_of_its_spec,
        a_pod_on_a_node_has_the_time_of_the_request,
        a_second_deletion_of_a_pod_may_only_shorten_its_time,
        a_pod_is_removed_by_force,
        a_pod_with_a_finalizer_stays_even_by_force,
        a_pod_that_has_ended_goes_at_once,
        other_kinds_have_no_time_to_end,
        a_job_leaves_its_pods_behind_unless_the_deletion_says_otherwise,
    ]
}

async fn delete_pod(world: &World, rest: &str) -> anyhow::Result<Value> {
    world.delete(&world.core(&format!("pods/{rest}")), &Value::Null).await?.ok(200)
}

async fn pod_is_gone(world: &World, name: &str) -> anyhow::Result<()> {
    world.get(&world.core(&format!("pods/{name}"))).await?.refused(404, "NotFound").map(drop)
}

/// The seconds between the deletion timestamp and the removal of an object.
fn grace(object: &Value) -> Value {
    object["metadata"]["deletionGracePeriodSeconds"].clone()
}

async fn a_pod_without_a_node_goes_at_once_and_is_answered(world: World) -> anyhow::Result<()> {
    let made = make_pod(&world, "one", json!({})).await?;
    let answer = delete_pod(&world, "one").await?;
    same(answer["kind"].clone(), "Pod")?;
    same(answer["metadata"]["uid"].clone(), made["metadata"]["uid"].clone())?;
    ensure!(is_marked(&answer) && version(&answer)? > version(&made)?, "{answer}");
    same(grace(&answer), 0)?;
    same(answer["metadata"]["generation"].clone(), 2)?;
    pod_is_gone(&world, "one").await
}

async fn watchers_see_the_mark_of_a_pod_that_goes_at_once(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({})).await?;
    let mut watch = Watching::open(&world, &world.core("pods?")).await?;
    delete_pod(&world, "one").await?;
    same(watch.take(1).await?, vec!["ADDED one"])?;
    for wanted in ["MODIFIED", "DELETED"] {
        let event = watch.event().await?;
        same(event["type"].clone(), wanted)?;
        ensure!(is_marked(&event["object"]), "{event}");
    }
    Ok(())
}

async fn a_pod_on_a_node_has_thirty_seconds(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    let answer = delete_pod(&world, "one").await?;
    same(grace(&answer), 30)?;
    same(answer["metadata"]["generation"].clone(), 2)?;
    same(world.get(&world.core("pods/one")).await?.ok(200)?, answer.clone())?;
    same(delete_pod(&world, "one").await?, answer)
}

async fn a_pod_on_a_node_has_the_time_of_its_spec(world: World) -> anyhow::Result<()> {
    let spec = json!({ "nodeName": "here", "terminationGracePeriodSeconds": 5 });
    make_pod(&world, "one", spec).await?;
    same(grace(&delete_pod(&world, "one").await?), 5)?;
    let spec = json!({ "nodeName": "here", "terminationGracePeriodSeconds": 0 });
    make_pod(&world, "two", spec).await?;
    delete_pod(&world, "two").await?;
    pod_is_gone(&world, "two").await
}

async fn a_pod_on_a_node_has_the_time_of_the_request(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    same(grace(&delete_pod(&world, "one?gracePeriodSeconds=600").await?), 600)?;
    make_pod(&world, "two", json!({ "nodeName": "here" })).await?;
    let answer = world.delete(&world.core("pods/two"), &json!({ "gracePeriodSeconds": 7 })).await?;
    same(grace(&answer.ok(200)?), 7)?;
    make_pod(&world, "three", json!({ "nodeName": "here" })).await?;
    same(grace(&delete_pod(&world, "three?gracePeriodSeconds=-1").await?), 1)
}

async fn a_second_deletion_of_a_pod_may_only_shorten_its_time(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    let first = delete_pod(&world, "one").await?;
    same(delete_pod(&world, "one?gracePeriodSeconds=60").await?, first.clone())?;
    let shorter = delete_pod(&world, "one?gracePeriodSeconds=10").await?;
    same(grace(&shorter), 10)?;
    same(shorter["metadata"]["generation"].clone(), 2)?;
    let end = |object: &Value| object["metadata"]["deletionTimestamp"].as_str().map(str::to_owned);
    ensure!(end(&shorter) < end(&first), "{shorter}");
    Ok(())
}

async fn a_pod_is_removed_by_force(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    delete_pod(&world, "one").await?;
    same(grace(&delete_pod(&world, "one?gracePeriodSeconds=0").await?), 0)?;
    pod_is_gone(&world, "one").await?;
    make_pod(&world, "two", json!({ "nodeName": "here" })).await?;
    delete_pod(&world, "two?gracePeriodSeconds=0").await?;
    pod_is_gone(&world, "two").await
}

async fn a_pod_with_a_finalizer_stays_even_by_force(world: World) -> anyhow::Result<()> {
    make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
    let hold = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    world.merge(&world.core("pods/one"), &hold).await?.ok(200)?;
    same(grace(&delete_pod(&world, "one?gracePeriodSeconds=0").await?), 0)?;
    world.get(&world.core("pods/one")).await?.ok(200)?;
    let release = json!({ "metadata": { "finalizers": null } });
    world.merge(&world.core("pods/one"), &release).await?.ok(200)?;
    pod_is_gone(&world, "one").await
}

async fn a_pod_that_has_ended_goes_at_once(world: World) -> anyhow::Result<()> {
    for phase in ["Succeeded", "Failed"] {
        make_pod(&world, "one", json!({ "nodeName": "here" })).await?;
        let patch = json!({ "status": { "phase": phase } });
        world.merge(&world.core("pods/one/status"), &patch).await?.ok(200)?;
        delete_pod(&world, "one").await?;
        pod_is_gone(&world, "one").await?;
    }
    Ok(())
}

async fn other_kinds_have_no_time_to_end(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    delete(&world, "one?gracePeriodSeconds=30", Value::Null).await?;
    is_gone(&world, "one").await?;
    make_held(&world, "two", &["example.com/hold"]).await?;
    same(grace(&delete(&world, "two?gracePeriodSeconds=30", Value::Null).await?), 0)
}

async fn a_job_leaves_its_pods_behind_unless_the_deletion_says_otherwise(world: World) -> anyhow::Result<()> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "one" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "nginx:1.25" }],
        } } },
    });
    let path = world.at("batch/v1", "jobs");
    world.post(&path, &job).await?.ok(201)?;
    let answer = world.delete(&format!("{path}/one"), &Value::Null).await?.ok(200)?;
    same(answer["metadata"]["finalizers"].clone(), json!(["orphan"]))?;
    let gone = async || Ok((world.get(&format!("{path}/one")).await?.code == 404).then_some(()));
    world.eventually("the job to go", gone).await?;
    world.post(&path, &job).await?.ok(201)?;
    let options = json!({ "propagationPolicy": "Background" });
    same(world.delete(&format!("{path}/one"), &options).await?.ok(200)?["kind"].clone(), "Status")
}
