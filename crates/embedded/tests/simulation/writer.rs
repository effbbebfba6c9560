//! A client that writes in bursts, carelessly, and ignores the results.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use prewarm_embedded::faults::Faults;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::operator::FINALIZER;
use super::world::{KINDS, Kind, World};

/// Names that all writers share, so that they conflict.
const NAMES: u32 = 15;
/// The longest time between two bursts.
const LONGEST_PAUSE: Duration = Duration::from_hours(2);
/// The longest burst.
const LONGEST_BURST: u32 = 40;

/// Writes until the end.
pub async fn write(world: World, faults: Faults, seed: u64, end: Instant) {
    let client = faults.client(&world.server);
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        sleep(LONGEST_PAUSE.mul_f64(random.random_range(0.0..1.0))).await;
        for _ in 0..random.random_range(1..=LONGEST_BURST) {
            if Instant::now() >= end {
                return;
            }
            let kind = &KINDS[random.random_range(0..KINDS.len())];
            // A failed write is forgotten: another writer will write something else.
            let _ = write_one(kind, &kind.api(client.clone()), &mut random).await;
        }
    }
}

async fn write_one(kind: &Kind, api: &Api<DynamicObject>, random: &mut StdRng) -> kube::Result<()> {
    let name = format!("object-{}", random.random_range(0..NAMES));
    let value = random.random_range(0..1_000_000);
    let merge = PatchParams::default();
    match random.random_range(0..100) {
        0..40 => drop(api.create(&PostParams::default(), &object(kind, &name, value, random)).await?),
        40..60 => drop(
            api.patch(
                &name,
                &merge,
                &Patch::Merge(json!({ "spec": spec(kind, value), "data": data(kind, value) })),
            )
            .await?,
        ),
        60..70 => {
            let color = ["red", "blue"][random.random_range(0..2)];
            let labels = json!({ "metadata": { "labels": { "color": color } } });
            api.patch(&name, &merge, &Patch::Merge(labels)).await?;
        }
        70..80 => {
            // If another client has written in between, this is a conflict.
            let mut read = api.get(&name).await?;
            read.metadata.annotations.get_or_insert_default().insert("value".into(), value.to_string());
            api.replace(&name, &PostParams::default(), &read).await?;
        }
        80..98 => drop(api.delete(&name, &DeleteParams::default()).await?),
        _ => {
            let red = ListParams::default().labels("color=red");
            api.delete_collection(&DeleteParams::default(), &red).await?;
        }
    }
    Ok(())
}

fn object(kind: &Kind, name: &str, value: u32, random: &mut StdRng) -> DynamicObject {
    let mut object = DynamicObject::new(name, &kind.resource());
    let color = ["red", "blue"][random.random_range(0..2)];
    object.metadata.labels = Some([("color".to_owned(), color.to_owned())].into());
    if kind.name == "Widget" && random.random_bool(0.5) {
        object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    }
    object.data = json!({});
    for (field, content) in [("spec", spec(kind, value)), ("data", data(kind, value))] {
        if let Some(content) = content {
            object.data[field] = content;
        }
    }
    object
}

fn spec(kind: &Kind, value: u32) -> Option<serde_json::Value> {
    match kind.name {
        "Widget" => Some(json!({ "value": value.to_string() })),
        "Node" => Some(
            json!({ "unschedulable": value.is_multiple_of(2), "podCIDR": format!("10.0.{}.0/24", value % 250) }),
        ),
        _ => None,
    }
}

fn data(kind: &Kind, value: u32) -> Option<serde_json::Value> {
    (kind.name == "ConfigMap").then(|| json!({ "value": value.to_string() }))
}
