//! The dashboard: importable, and about metrics that exist.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::exported::Exported;
use crate::expression::faults;
use crate::read;

const FILE: &str = "deploy/chart/files/dashboard.json";

/// What of the dashboard is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    uid: String,
    title: String,
    schema_version: u32,
    templating: Value,
    /// Rows and panels, as they stand.
    pub panels: Vec<Panel>,
}

/// A panel, or the title of a row.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Panel {
    id: u32,
    /// `row`, `stat`, `timeseries`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is written above it.
    pub title: String,
    #[serde(default)]
    description: String,
    /// Where it is.
    pub grid_pos: Place,
    #[serde(default)]
    datasource: Value,
    #[serde(default)]
    targets: Vec<Target>,
}

/// A place, in units of the grid, which has 24 columns.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Place {
    pub x: u32,
    pub y: u32,
    pub w: u32,
    pub h: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    expr: String,
    legend_format: String,
    datasource: Value,
}

/// The dashboard of the tree.
pub fn dashboard() -> Dashboard {
    serde_json::from_str(&read(FILE)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn panels_show_what_is_exported() {
    let exported = Exported::gather().await;
    for panel in dashboard().panels {
        for Target { expr, legend_format, .. } in &panel.targets {
            let shown = shown_labels(legend_format);
            assert_eq!(faults(expr, &shown, &exported), Vec::<String>::new(), "{}", panel.title);
        }
    }
}

/// The labels in a legend such as `{{kind}} {{state}}`.
fn shown_labels(legend: &str) -> Vec<String> {
    legend.split("{{").skip(1).map(|label| label.split("}}").next().unwrap().trim().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_shown_somewhere() {
    let exported = Exported::gather().await;
    let panels = dashboard().panels;
    let shown: String =
        panels.iter().flat_map(|panel| &panel.targets).map(|target| target.expr.as_str()).collect();
    let hidden: Vec<&String> =
        exported.metrics.iter().filter(|metric| !shown.contains(metric.as_str())).collect();
    assert_eq!(hidden, Vec::<&String>::new());
}

#[test]
fn the_dashboard_can_be_imported_and_asks_for_its_prometheus() {
    let Dashboard { uid, title, schema_version, templating, panels } = dashboard();
    assert_eq!((uid.as_str(), title.as_str(), schema_version), ("prewarm", "Prewarm", 39));
    let variable = &templating["list"][0];
    assert_eq!(
        (&variable["name"], &variable["type"], &variable["query"]),
        (&"datasource".into(), &"datasource".into(), &"prometheus".into())
    );
    let source = serde_json::json!({"type": "prometheus", "uid": "${datasource}"});
    let (rows, panels): (Vec<Panel>, Vec<Panel>) = panels.into_iter().partition(|panel| panel.kind == "row");
    for panel in &panels {
        assert!(!panel.targets.is_empty() && !panel.description.is_empty(), "{}", panel.title);
        assert!(panel.datasource == source, "{}", panel.title);
        assert!(panel.targets.iter().all(|target| target.datasource == source), "{}", panel.title);
    }
    let titles: Vec<&str> = rows.iter().map(|row| row.title.as_str()).collect();
    assert_eq!(titles, ["Overview", "Waiting", "Failures", "Controller health", "Agents"]);
    let all = || rows.iter().chain(&panels);
    assert_eq!(all().map(|panel| panel.id).collect::<BTreeSet<_>>().len(), all().count(), "ids are unique");
    assert_eq!(all().map(|panel| &panel.title).collect::<BTreeSet<_>>().len(), all().count(), "and titles");
}

#[test]
fn no_panel_lies_on_another_and_none_leaves_the_grid() {
    let places: Vec<Place> = dashboard().panels.iter().map(|panel| panel.grid_pos).collect();
    for (number, one) in places.iter().enumerate() {
        assert!(one.x + one.w <= 24, "{one:?}");
        for other in &places[number + 1..] {
            let is_beside = one.x + one.w <= other.x || other.x + other.w <= one.x;
            let is_above = one.y + one.h <= other.y || other.y + other.h <= one.y;
            assert!(is_beside || is_above, "{one:?} {other:?}");
        }
    }
}
