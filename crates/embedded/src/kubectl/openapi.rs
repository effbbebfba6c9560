//! What the fields of each kind mean, for `kubectl explain`, and which options a request may have, so that kubectl
//! leaves validation to the server. One document per group version, as in OpenAPI v3.

mod built_in;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::discovery;
use crate::dispatch::Answer;
use crate::refusal::Refusal;
use crate::resource::{Resource, Resources};
use crate::server::Server;

/// Answers `/openapi/v3` and everything below it. Each document is made once: kubectl asks for it before almost every
/// command.
pub fn answer(server: &Server, path: &[&str]) -> Result<Answer, Refusal> {
    let place = path.join("/");
    let (resources, kept) = {
        let state = server.lock();
        (state.resources.clone(), state.documents.get(&place).cloned())
    };
    if let Some(text) = kept {
        return Ok(Answer::text(StatusCode::OK, text));
    }
    let document = match path {
        [] => index(&resources),
        ["api", version] => document(&resources, "", version)?,
        ["apis", group, version] => document(&resources, group, version)?,
        _ => return Err(Refusal::no_such_path()),
    };
    let text = Bytes::from(document.to_string());
    let mut state = server.lock();
    // The document is not kept if a kind changed while the lock was free.
    if state.resources.edition() == resources.edition() {
        state.documents.insert(place, text.clone());
    }
    Ok(Answer::text(StatusCode::OK, text))
}

fn index(resources: &Resources) -> Value {
    let mut paths = Map::new();
    for resource in resources.iter() {
        for version in &resource.versions {
            let path = place(&resource.group, &version.name);
            let url = format!("/openapi/v3/{path}");
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    json!({ "paths": paths })
}

/// `api/v1`, `apis/apps/v1`.
fn place(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(resources: &Resources, group: &str, version: &str) -> Result<Value, Refusal> {
    let members: Vec<&Resource> = discovery::members(resources, group, version).collect();
    if members.is_empty() {
        return Err(Refusal::no_such_path());
    }
    let mut schemas = built_in::schemas(group, version);
    let mut paths = Map::new();
    for resource in members {
        if resource.is_custom {
            let name = format!("{}.{version}.{}", reversed(group), resource.kind);
            schemas.insert(name, defined(resource, version));
        }
        let below = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{}/{below}{}/{{name}}", place(group, version), resource.plural);
        paths.insert(path, json!({ "patch": patch(resource, version) }));
    }
    Ok(json!({
        "openapi": "3.0.0",
        "info": { "title": "Prewarm embedded API", "version": "v1" },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

/// A reversed domain as the beginning of a name: `io.kruise.apps`.
fn reversed(group: &str) -> String {
    group.rsplit('.').collect::<Vec<_>>().join(".")
}

fn group_version_kind(resource: &Resource, version: &str) -> Value {
    json!({ "group": resource.group, "version": version, "kind": resource.kind })
}

/// The schema of a definition, completed by the fields of every object.
fn defined(resource: &Resource, version: &str) -> Value {
    let source = resource.version(version).and_then(|version| version.source.as_deref());
    let mut schema = source.cloned().unwrap_or_else(|| json!({ "type": "object" }));
    let (api_version, kind, metadata) = built_in::common_fields();
    schema["properties"]["apiVersion"] = api_version;
    schema["properties"]["kind"] = kind;
    schema["properties"]["metadata"] = metadata;
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(resource, version)]);
    schema
}

/// The options of a patch: kubectl looks here to learn whether the server validates fields and supports dry runs.
fn patch(resource: &Resource, version: &str) -> Value {
    let parameter = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string" } });
    let parameters = ["dryRun", "fieldManager", "fieldValidation"].map(parameter);
    let mut formats = vec!["application/json-patch+json", "application/merge-patch+json"];
    if !resource.is_custom {
        formats.push("application/strategic-merge-patch+json");
    }
    let formats: Map<String, Value> = formats
        .into_iter()
        .map(|format| (format.to_owned(), json!({ "schema": { "type": "object" } })))
        .collect();
    json!({
        "parameters": parameters,
        "requestBody": { "content": formats, "required": true },
        "responses": { "200": { "description": "OK" } },
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": group_version_kind(resource, version),
    })
}
