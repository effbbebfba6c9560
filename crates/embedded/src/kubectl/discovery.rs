//! Which groups, versions and kinds there are: in one answer for kubectl, and piece by piece for older clients.

use http::StatusCode;
use serde_json::{Value, json};

use super::form::wants_aggregated_discovery;
use crate::dispatch::Answer;
use crate::refusal::Refusal;
use crate::resource::{Resource, Resources, version_priority};
use crate::server::{Server, Whole};

/// The media type by which clients recognise the aggregated answer.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of definitions, in the order of a real server.
const DEFINED_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// `/api`: the core group.
pub fn core(server: &Server, request: &Whole) -> Answer {
    let resources = &server.lock().resources;
    if wants_aggregated_discovery(request.headers()) {
        return aggregated(resources, &[""]);
    }
    Answer::json(
        StatusCode::OK,
        &json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
    )
}

/// `/apis`: all groups except the core.
pub fn groups(server: &Server, request: &Whole) -> Answer {
    let resources = &server.lock().resources;
    let names = group_names(resources);
    if wants_aggregated_discovery(request.headers()) {
        return aggregated(resources, &names);
    }
    let groups: Vec<Value> = names.iter().map(|name| group_value(resources, name)).collect();
    Answer::json(StatusCode::OK, &json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
}

/// `/apis/G`: one group.
pub fn group(server: &Server, name: &str) -> Result<Answer, Refusal> {
    let resources = &server.lock().resources;
    if !group_names(resources).contains(&name) {
        return Err(Refusal::no_such_path());
    }
    let mut group = group_value(resources, name);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Ok(Answer::json(StatusCode::OK, &group))
}

/// `/apis/G/V`: the kinds of one version.
pub fn resources(server: &Server, group: &str, version: &str) -> Result<Answer, Refusal> {
    let resources = &server.lock().resources;
    let mut listed = Vec::new();
    for resource in members(resources, group, version) {
        listed.push(plain(resource));
        if resource.has_status {
            listed.push(json!({
                "name": format!("{}/status", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": resource.kind, "verbs": STATUS_VERBS,
            }));
        }
    }
    if listed.is_empty() {
        return Err(Refusal::no_such_path());
    }
    let group_version = group_version(group, version);
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed,
    });
    Ok(Answer::json(StatusCode::OK, &list))
}

/// The groups except the core. Built-in ones come first, so that a definition cannot take a short name from them.
fn group_names(resources: &Resources) -> Vec<&str> {
    let mut names: Vec<(bool, &str)> = resources
        .iter()
        .filter(|resource| !resource.group.is_empty())
        .map(|resource| (resource.is_custom, resource.group.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|(_, name)| name).collect()
}

/// The versions of a group, most preferred first.
pub fn versions<'a>(resources: &'a Resources, group: &str) -> Vec<&'a str> {
    let members = resources.iter().filter(|resource| resource.group == group);
    let mut versions: Vec<&str> =
        members.flat_map(|resource| &resource.versions).map(|version| version.name.as_str()).collect();
    versions.sort_unstable_by_key(|name| (std::cmp::Reverse(version_priority(name)), *name));
    versions.dedup();
    versions
}

/// The kinds in a version.
pub fn members<'a>(
    resources: &'a Resources,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'a Resource> {
    let members = resources.iter().map(AsRef::as_ref);
    members.filter(move |resource| resource.group == group && resource.version(version).is_some())
}

/// `v1`, `apps/v1`.
pub fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group_value(resources: &Resources, name: &str) -> Value {
    let version =
        |version: &&str| json!({ "groupVersion": group_version(name, version), "version": version });
    let versions: Vec<Value> = versions(resources, name).iter().map(version).collect();
    json!({ "name": name, "versions": versions, "preferredVersion": versions.first() })
}

fn verbs(resource: &Resource) -> [&'static str; 8] {
    if resource.is_custom { DEFINED_VERBS } else { VERBS }
}

fn plain(resource: &Resource) -> Value {
    let mut value = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": verbs(resource),
    });
    add_names(resource, &mut value);
    value
}

fn add_names(resource: &Resource, value: &mut Value) {
    for (field, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            value[field] = json!(names);
        }
    }
}

fn aggregated(resources: &Resources, groups: &[&str]) -> Answer {
    let items: Vec<Value> = groups.iter().map(|group| aggregated_group(resources, group)).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    Answer::json(StatusCode::OK, &list).of_type(AGGREGATED)
}

fn aggregated_group(resources: &Resources, group: &str) -> Value {
    let version = |version: &&str| {
        let members = members(resources, group, version);
        let members: Vec<Value> = members.map(|resource| aggregated_resource(resource, version)).collect();
        json!({ "version": version, "resources": members, "freshness": "Current" })
    };
    let versions: Vec<Value> = versions(resources, group).iter().map(version).collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({ "name": group }) };
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource(resource: &Resource, version: &str) -> Value {
    let response_kind = json!({ "group": resource.group, "version": version, "kind": resource.kind });
    let mut value = json!({
        "resource": resource.plural,
        "responseKind": response_kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    add_names(resource, &mut value);
    if resource.has_status {
        value["subresources"] =
            json!([{ "subresource": "status", "responseKind": response_kind, "verbs": STATUS_VERBS }]);
    }
    value
}
