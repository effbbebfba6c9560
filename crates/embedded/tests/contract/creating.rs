//! Creating objects.

use anyhow::ensure;
use serde_json::json;

use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![a_created_object_has_a_uid_a_time_and_a_version]
}

async fn a_created_object_has_a_uid_a_time_and_a_version(world: World) -> anyhow::Result<()> {
    let widget = world.make_widget("one", json!({ "title": "plain" })).await?;
    let metadata = &widget["metadata"];
    ensure!(metadata["uid"].as_str().is_some_and(|uid| uid.len() == 36), "{widget}");
    ensure!(metadata["creationTimestamp"].as_str().is_some_and(|time| time.len() == 20), "{widget}");
    ensure!(metadata["resourceVersion"].as_str().is_some_and(|text| text.parse::<u64>().is_ok()), "{widget}");
    same(metadata["generation"].clone(), 1)
}
