//! Sizes, and concurrent writers.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, causes, map, same, widget};
use super::{Case, cases};

const MIB: usize = 1024 * 1024;

pub fn cases() -> Vec<Case> {
    cases![
        an_object_of_a_mebibyte_is_stored,
        an_object_above_the_limit_of_the_store_is_refused,
        a_body_above_the_limit_of_the_server_is_refused,
        a_patch_above_the_limit_of_the_server_is_refused,
        a_config_map_above_a_mebibyte_is_refused,
        of_many_writers_of_one_version_one_wins,
        of_many_creators_of_one_name_one_wins,
        no_update_is_missing_after_writers_have_retried,
        of_many_patches_guarded_by_a_generation_each_is_applied_once,
        spec_and_status_writers_do_not_disturb_each_other,
        versions_grow_with_every_write,
    ]
}

fn heavy(name: &str, bytes: usize) -> Value {
    widget(name, json!({ "title": "plain", "free": { "load": "x".repeat(bytes) } }))
}

async fn an_object_of_a_mebibyte_is_stored(world: World) -> anyhow::Result<()> {
    world.post(&world.widgets(""), &heavy("one", MIB)).await?.ok(201)?;
    let found = world.get(&world.widgets("/one")).await?.ok(200)?;
    same(found["spec"]["free"]["load"].as_str().map_or(0, str::len), MIB)
}

async fn an_object_above_the_limit_of_the_store_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.post(&world.widgets(""), &heavy("one", MIB + 600_000)).await?;
    same(answer.code, 500)?;
    same(answer.body["message"].clone(), "etcdserver: request is too large")?;
    world.get(&world.widgets("/one")).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_body_above_the_limit_of_the_server_is_refused(world: World) -> anyhow::Result<()> {
    let answer = world.post(&world.widgets(""), &heavy("one", 3 * MIB)).await?;
    let status = answer.refused(413, "RequestEntityTooLarge")?;
    same(status["message"].clone(), "Request entity too large: limit is 3145728")
}

async fn a_patch_above_the_limit_of_the_server_is_refused(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let patch = json!({ "spec": { "free": { "load": "x".repeat(3 * MIB) } } });
    world.merge(&world.widgets("/one"), &patch).await?.refused(413, "RequestEntityTooLarge")?;
    Ok(())
}

async fn a_config_map_above_a_mebibyte_is_refused(world: World) -> anyhow::Result<()> {
    let mut map = map("one");
    map["data"]["a"] = "x".repeat(MIB + 1).into();
    let status = world.post(&world.core("configmaps"), &map).await?.refused(422, "Invalid")?;
    same(causes(&status), vec!["[] FieldValueTooLong"])
}

async fn of_many_writers_of_one_version_one_wins(world: World) -> anyhow::Result<()> {
    let object = world.make_widget("one", json!({ "title": "plain" })).await?;
    let writes = (1..=10).map(|size| {
        let (world, mut object) = (world.clone(), object.clone());
        object["metadata"]["annotations"] = json!({ "writer": size.to_string() });
        async move { world.put(&world.widgets("/one"), &object).await }
    });
    let mut codes = Vec::new();
    for answer in futures::future::join_all(writes).await {
        codes.push(answer?.code);
    }
    codes.sort_unstable();
    same(codes, json!([200, 409, 409, 409, 409, 409, 409, 409, 409, 409]))
}

async fn of_many_creators_of_one_name_one_wins(world: World) -> anyhow::Result<()> {
    let writes = (0..10).map(|_| {
        let world = world.clone();
        async move { world.post(&world.core("configmaps"), &map("one")).await }
    });
    let mut codes = Vec::new();
    for answer in futures::future::join_all(writes).await {
        codes.push(answer?.code);
    }
    codes.sort_unstable();
    same(codes, json!([201, 409, 409, 409, 409, 409, 409, 409, 409, 409]))
}

async fn no_update_is_missing_after_writers_have_retried(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain", "free": { "count": 0 } })).await?;
    let writers = (0..4).map(|_| {
        let world = world.clone();
        async move {
            for _ in 0..5 {
                count_up(&world).await?;
            }
            anyhow::Ok(())
        }
    });
    for outcome in futures::future::join_all(writers).await {
        outcome?;
    }
    let found = world.get(&world.widgets("/one")).await?.ok(200)?;
    same(found["spec"]["free"]["count"].clone(), 20)?;
    same(found["metadata"]["generation"].clone(), 21)
}

async fn count_up(world: &World) -> anyhow::Result<()> {
    loop {
        let mut object = world.get(&world.widgets("/one")).await?.ok(200)?;
        let count = object["spec"]["free"]["count"].as_u64().unwrap_or(0);
        object["spec"]["free"]["count"] = (count + 1).into();
        let answer = world.put(&world.widgets("/one"), &object).await?;
        if answer.code != 409 {
            answer.ok(200)?;
            return Ok(());
        }
    }
}

async fn of_many_patches_guarded_by_a_generation_each_is_applied_once(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain", "numbers": [0] })).await?;
    let writes = (1..=6).map(|number| {
        let world = world.clone();
        async move {
            loop {
                let object = world.get(&world.widgets("/one")).await?.ok(200)?;
                let patch = json!([
                    { "op": "test", "path": "/metadata/generation", "value": object["metadata"]["generation"] },
                    { "op": "add", "path": "/spec/numbers/-", "value": number },
                ]);
                let answer = world.json_patch(&world.widgets("/one"), &patch).await?;
                if answer.code != 422 {
                    return answer.ok(200);
                }
            }
        }
    });
    for outcome in futures::future::join_all(writes).await {
        outcome?;
    }
    let found = world.get(&world.widgets("/one")).await?.ok(200)?;
    let mut numbers: Vec<i64> = serde_json::from_value(found["spec"]["numbers"].clone())?;
    numbers.sort_unstable();
    same(numbers, json!([0, 1, 2, 3, 4, 5, 6]))?;
    same(found["metadata"]["generation"].clone(), 7)
}

async fn spec_and_status_writers_do_not_disturb_each_other(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let writes = (0..10).map(|number| {
        let world = world.clone();
        async move {
            let (path, patch) = if number % 2 == 0 {
                (world.widgets("/one"), json!({ "spec": { "free": { format!("k{number}"): number } } }))
            } else {
                (world.widgets("/one/status"), json!({ "status": { "observedGeneration": number } }))
            };
            world.merge(&path, &patch).await?.ok(200)
        }
    });
    for outcome in futures::future::join_all(writes).await {
        outcome?;
    }
    let found = world.get(&world.widgets("/one")).await?.ok(200)?;
    same(found["metadata"]["generation"].clone(), 6)?;
    same(found["spec"]["free"].clone(), json!({ "k0": 0, "k2": 2, "k4": 4, "k6": 6, "k8": 8 }))?;
    ensure!(found["status"]["observedGeneration"].is_i64(), "{found}");
    Ok(())
}

async fn versions_grow_with_every_write(world: World) -> anyhow::Result<()> {
    let mut last = 0;
    for number in 0..5 {
        let created = world.make_map(&format!("map-{number}")).await?;
        let version: u64 = created["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?;
        ensure!(version > last, "{version} after {last}");
        last = version;
    }
    Ok(())
}
