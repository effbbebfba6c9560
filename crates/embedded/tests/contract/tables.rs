//! Objects as rows of a table, as `kubectl get` requests them.

use anyhow::ensure;
use serde_json::{Value, json};

use super::world::{World, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        a_table_of_a_built_in_kind_has_its_columns,
        a_table_of_a_custom_kind_has_the_columns_of_its_definition,
        a_table_of_our_own_kind_shows_how_far_it_is,
        a_table_of_one_object_has_one_row,
        the_rows_of_a_table_bring_as_much_of_the_object_as_asked,
        a_table_of_nothing_has_columns_and_no_rows,
        a_table_of_an_object_that_is_not_there_is_refused,
    ]
}

const WIDGET_COLUMNS: [&str; 4] = ["Name string", "Color string", "Size integer", "Age date"];

async fn table(world: &World, path: &str) -> anyhow::Result<Value> {
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let table = world.send_with("GET", path, &accept, Vec::new()).await?.ok(200)?;
    ensure!(table["kind"] == "Table" && table["apiVersion"] == "meta.k8s.io/v1", "no table: {table}");
    Ok(table)
}

/// The columns that are always shown, as `name type`.
fn columns(table: &Value) -> Vec<String> {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    let shown = columns.filter(|column| column["priority"] == 0);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    shown.map(|column| format!("{} {}", text(&column["name"]), text(&column["type"]))).collect()
}

async fn a_table_of_a_built_in_kind_has_its_columns(world: World) -> anyhow::Result<()> {
    world.make_map("two").await?;
    let table = table(&world, &world.core("configmaps?fieldSelector=metadata.name%3Dtwo")).await?;
    same(columns(&table), vec!["Name string", "Data string", "Age string"])?;
    same(table["rows"][0]["cells"][0].clone(), "two")?;
    same(table["rows"][0]["cells"][1].clone(), 1)
}

async fn a_table_of_a_custom_kind_has_the_columns_of_its_definition(world: World) -> anyhow::Result<()> {
    world.make_widget("one", json!({ "title": "plain" })).await?;
    let table = table(&world, &world.widgets("")).await?;
    same(columns(&table), WIDGET_COLUMNS.to_vec())?;
    same(table["rows"][0]["cells"][0].clone(), "one")?;
    same(table["rows"][0]["cells"][1].clone(), "red")?;
    same(table["rows"][0]["cells"][2].clone(), 1)
}

async fn a_table_of_our_own_kind_shows_how_far_it_is(world: World) -> anyhow::Result<()> {
    let path = world.at("apps.kruise.io/v1beta1", "imagepulljobs");
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": "web" },
        "spec": { "image": "registry.example/shop/web:v1", "completionPolicy": { "type": "Always" } },
    });
    world.post(&path, &job).await?.ok(201)?;
    let status = json!({ "status": { "desired": 3, "active": 1, "succeeded": 2, "failed": 0 } });
    world.merge(&format!("{path}/web/status"), &status).await?.ok(200)?;
    let table = table(&world, &path).await?;
    let names = ["TOTAL integer", "ACTIVE integer", "SUCCEED integer", "FAILED integer"];
    let columns = columns(&table);
    ensure!(names.iter().all(|name| columns.iter().any(|column| column == name)), "{columns:?}");
    let cells = table["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
    same(cells.into_iter().take(5).collect::<Vec<_>>(), json!(["web", 3, 1, 2, 0]))
}

async fn a_table_of_one_object_has_one_row(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    world.make_map("two").await?;
    let table = table(&world, &world.core("configmaps/two")).await?;
    same(table["rows"].as_array().map_or(0, Vec::len), 1)?;
    same(table["rows"][0]["cells"][0].clone(), "two")
}

async fn the_rows_of_a_table_bring_as_much_of_the_object_as_asked(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    for (query, kind) in [
        ("", json!("PartialObjectMetadata")),
        ("?includeObject=Metadata", json!("PartialObjectMetadata")),
        ("?includeObject=Object", json!("ConfigMap")),
        ("?includeObject=None", Value::Null),
    ] {
        let table = table(&world, &world.core(&format!("configmaps/one{query}"))).await?;
        same(table["rows"][0]["object"]["kind"].clone(), kind)?;
    }
    Ok(())
}

async fn a_table_of_nothing_has_columns_and_no_rows(world: World) -> anyhow::Result<()> {
    let table = table(&world, &world.widgets("")).await?;
    same(columns(&table), WIDGET_COLUMNS.to_vec())?;
    same(table["rows"].clone(), json!([]))
}

async fn a_table_of_an_object_that_is_not_there_is_refused(world: World) -> anyhow::Result<()> {
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let path = world.core("configmaps/nothing");
    world.send_with("GET", &path, &accept, Vec::new()).await?.refused(404, "NotFound").map(drop)
}
