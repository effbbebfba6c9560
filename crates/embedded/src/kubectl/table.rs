//! Objects as rows with cells. A definition says where its columns find their values; the columns of built-in kinds are
//! code, as in a real server.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::form::Beside;
use super::json_path::JsonPath;
use super::{age, built_in};
use crate::resource::{Column, Resource};

/// What a real server says about the two columns that nearly every kind has.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
                    resources may allow a client to request the generation of an appropriate name automatically. Name \
                    is primarily intended for creation idempotence and configuration definition. Cannot be updated. \
                    More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

#[derive(Clone)]
pub enum Columns {
    /// From a definition: the name, followed by these.
    Defined(Vec<(Column, Option<JsonPath>)>),
    /// Of a built-in kind.
    BuiltIn(&'static [built_in::Column]),
}

impl Columns {
    /// The columns that `kubectl get` shows.
    pub fn of(resource: &Resource, version: &str) -> Self {
        if !resource.is_custom {
            return Self::BuiltIn(built_in::columns(&resource.group, &resource.kind));
        }
        let columns = resource.version(version).map(|version| version.columns.clone()).unwrap_or_default();
        let with_path = |column: Column| {
            let path = JsonPath::parse(&column.json_path);
            (column, path)
        };
        Self::Defined(columns.into_iter().map(with_path).collect())
    }

    pub fn definitions(&self) -> Value {
        let definition = |name: &str, kind: &str, format: &str, description: &str, priority: i64| {
            json!({
                "name": name, "type": kind, "format": format, "description": description, "priority": priority,
            })
        };
        match self {
            Self::Defined(columns) => {
                let name = definition("Name", "string", "name", NAME, 0);
                let rest = columns.iter().map(|(column, _)| {
                    let Column { name, value_type, format, description, priority, .. } = column;
                    definition(name, value_type, format, description, *priority)
                });
                std::iter::once(name).chain(rest).collect()
            }
            Self::BuiltIn(columns) => columns
                .iter()
                .map(|column| {
                    let (format, description) = if column.name == "Name" { ("name", NAME) } else { ("", "") };
                    definition(column.name, column.value_type, format, description, column.priority)
                })
                .collect(),
        }
    }

    /// An object as a row; `api_version` and `kind` are its own.
    pub fn row(&self, object: &Value, kind: (&str, &str), beside: Beside, now: Timestamp) -> Value {
        let cells: Vec<Value> = match self {
            Self::Defined(columns) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().into();
                let rest =
                    columns.iter().map(|(column, path)| cell(&column.value_type, path.as_ref(), object, now));
                std::iter::once(name).chain(rest).collect()
            }
            Self::BuiltIn(columns) => columns.iter().map(|column| (column.cell)(object, now)).collect(),
        };
        let beside = match beside {
            Beside::Nothing => Value::Null,
            Beside::Metadata => metadata(object),
            Beside::Object => whole(object, kind),
        };
        json!({ "cells": cells, "object": beside })
    }
}

/// Only the metadata of an object.
pub fn metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
    })
}

fn whole(object: &Value, (api_version, kind): (&str, &str)) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

/// The cell of a column from a definition. A value that does not fit the column's type is left out, as in a real
/// server.
fn cell(value_type: &str, path: Option<&JsonPath>, object: &Value, now: Timestamp) -> Value {
    let Some(value) = path.and_then(|path| path.find(object)) else { return Value::Null };
    match (value_type, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            #[expect(clippy::cast_possible_truncation, reason = "the column shows whole numbers")]
            (None, Some(fraction)) => (fraction.trunc() as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => {
            value.clone()
        }
        ("string", other) => other.to_string().into(),
        ("date", Value::String(_)) => age::since(value, now).into(),
        _ => Value::Null,
    }
}
