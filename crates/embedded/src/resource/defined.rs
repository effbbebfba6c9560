//! Reads a kind from its CustomResourceDefinition.

use std::collections::BTreeSet;
use std::sync::Arc;

use prewarm_api::rule;
use prewarm_api::schema::{CompileError, Schema};
use prewarm_api::served::{self, Served};
use serde_json::{Value, json};

use super::{Column, Resource, Selectable, Version};

/// The kind that a definition describes. All versions are served from one store, as with conversion `None`.
pub fn from_definition(definition: &Value) -> Result<Resource, CompileError> {
    let spec = &definition["spec"];
    let (group, kind) = (text(spec, "group"), text(&spec["names"], "kind"));
    let all = spec["versions"].as_array().into_iter().flatten();
    let in_use: Vec<&Value> = all.filter(|version| version["served"] == Value::Bool(true)).collect();
    let stored = spec["versions"].as_array().into_iter().flatten().find(|one| one["storage"] == true);
    let stored = stored.map_or(&Value::Null, schema_of);
    let ours = served::find(&group, &kind);
    let mut versions: Vec<Version> =
        in_use.iter().map(|version| compiled(version, stored, ours)).collect::<Result<_, _>>()?;
    versions.sort_by_key(|version| std::cmp::Reverse(version_priority(&version.name)));
    Ok(Resource {
        plural: text(&spec["names"], "plural"),
        singular: text(&spec["names"], "singular"),
        short_names: texts(&spec["names"]["shortNames"]),
        categories: texts(&spec["names"]["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        has_status: in_use.iter().any(|version| !version["subresources"]["status"].is_null()),
        has_generation: true,
        stored: Some(compile(stored, ours)?),
        selectable: selectable(&versions),
        versions,
        rules: if ours.is_some() { rule::of(&kind) } else { Vec::new() },
        is_custom: true,
        group,
        kind,
    })
}

fn schema_of(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

fn compiled(version: &Value, stored: &Value, ours: Option<&Served>) -> Result<Version, CompileError> {
    let source = schema_of(version);
    Ok(Version {
        name: text(version, "name"),
        schema: Some(compile(source, ours)?),
        narrows: source != stored,
        source: Some(Arc::new(source.clone())),
        columns: columns(version),
        selectable: paths_of_selectable(version),
    })
}

/// Compiles a schema, unless it is one of ours. Those are compiled once, since simulations start thousands of servers.
fn compile(source: &Value, ours: Option<&Served>) -> Result<Arc<Schema>, CompileError> {
    let whole = whole(source);
    match ours {
        Some(ours) if ours.source == whole => Ok(ours.schema.clone()),
        _ => Ok(Arc::new(Schema::compile(&whole)?)),
    }
}

/// The schema of a whole object: every kind has these fields, whether its definition names them or not.
fn whole(source: &Value) -> Value {
    let mut schema = source.clone();
    for (field, kind) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        if schema["properties"][field].is_null() {
            schema["properties"][field] = json!({ "type": kind });
        }
    }
    schema
}

/// The columns of a definition. Without any, the age is shown.
fn columns(version: &Value) -> Vec<Column> {
    let Some(columns) = version["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty())
    else {
        return vec![Column {
            name: "Age".to_owned(),
            value_type: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            priority: 0,
        }];
    };
    let column = |column: &Value| Column {
        name: text(column, "name"),
        value_type: text(column, "type"),
        format: text(column, "format"),
        description: text(column, "description"),
        json_path: text(column, "jsonPath"),
        priority: column["priority"].as_i64().unwrap_or(0),
    };
    columns.iter().map(column).collect()
}

fn paths_of_selectable(version: &Value) -> Vec<String> {
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    fields.map(|field| text(field, "jsonPath").trim_start_matches('.').to_owned()).collect()
}

fn selectable(versions: &[Version]) -> Vec<Selectable> {
    let paths: BTreeSet<&String> = versions.iter().flat_map(|version| &version.selectable).collect();
    let selectable = |path: &String| Selectable { name: path.clone(), path: path.clone(), absent: "" };
    paths.into_iter().map(selectable).collect()
}

/// Kubernetes' order of versions: stable before beta before alpha, newer before older.
pub fn version_priority(version: &str) -> (u8, u64, u64) {
    let digits = |text: &str| text.parse::<u64>().ok();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    if let Some(major) = digits(rest) {
        return (3, major, 0);
    }
    for (word, rank) in [("beta", 2), ("alpha", 1)] {
        if let Some((major, minor)) = rest.split_once(word)
            && let (Some(major), Some(minor)) = (digits(major), digits(minor))
        {
            return (rank, major, minor);
        }
    }
    (0, 0, 0)
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
