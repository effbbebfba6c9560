//! What kubectl asks besides objects: which kinds there are, what their fields mean, and tables.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube::api::ListParams;
use kube::discovery::{ApiGroup, Discovery, verbs};
use prewarm_embedded::{Options, Server, TokioClock};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const JOBS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs";

fn server() -> Server {
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let server = Server::new(Arc::new(TokioClock::starting_at(start)), Options::default());
    server.install_definitions();
    server
}

fn install_job(server: &Server, name: &str) {
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": name },
        "spec": { "image": "nginx:1.25" },
    });
    server.install(&job).unwrap();
}

/// The code, the content type and the body of an answer.
async fn ask(server: &Server, path: &str, accept: &str) -> (u16, String, Value) {
    let request = Request::get(path).header("accept", accept).body(Full::new(Bytes::new())).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let (code, content_type) = (response.status().as_u16(), response.headers()["content-type"].clone());
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (code, content_type.to_str().unwrap().to_owned(), serde_json::from_slice(&text).unwrap())
}

#[tokio::test]
async fn both_ways_of_discovery_find_the_same_kinds() {
    let server = server();
    let piece_by_piece = Discovery::new(server.client()).run().await.unwrap();
    let at_once = Discovery::new(server.client()).run_aggregated().await.unwrap();
    let kinds = |discovery: &Discovery| {
        let mut kinds: Vec<String> = discovery
            .groups()
            .flat_map(ApiGroup::recommended_resources)
            .filter(|(_, capabilities)| capabilities.supports_operation(verbs::WATCH))
            .map(|(kind, capabilities)| {
                format!("{}/{} {:?}", kind.api_version, kind.plural, capabilities.scope)
            })
            .collect();
        kinds.sort();
        kinds
    };
    let found = kinds(&piece_by_piece);
    assert_eq!(found, kinds(&at_once));
    for kind in ["v1/pods Namespaced", "apps.kruise.io/v1beta1/nodeimages Cluster"] {
        assert!(found.iter().any(|found| found == kind), "{kind} is missing in {found:?}");
    }
}

#[tokio::test]
async fn an_old_client_is_not_given_aggregated_discovery() {
    let server = server();
    let newest = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (_, content_type, list) = ask(&server, "/apis", newest).await;
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert!(content_type.contains("as=APIGroupDiscoveryList"), "clients recognise it by {content_type}");
    let (_, content_type, list) = ask(&server, "/apis", "application/json").await;
    assert_eq!((list["kind"].as_str(), content_type.as_str()), (Some("APIGroupList"), "application/json"));
}

#[tokio::test]
async fn every_kind_has_a_schema_and_says_that_the_server_validates() {
    let server = server();
    let (_, _, index) = ask(&server, "/openapi/v3", "application/json").await;
    let documents = index["paths"].as_object().unwrap();
    let mut kinds = 0;
    for document in documents.values() {
        let (code, _, document) =
            ask(&server, document["serverRelativeURL"].as_str().unwrap(), "application/json").await;
        assert_eq!(code, 200);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for path in document["paths"].as_object().unwrap().values() {
            let kind = &path["patch"]["x-kubernetes-group-version-kind"];
            let schema =
                schemas.values().find(|schema| schema["x-kubernetes-group-version-kind"][0] == *kind);
            let schema = schema.unwrap_or_else(|| panic!("{kind} has no schema"));
            assert!(schema["properties"]["metadata"].is_object(), "{kind}");
            let parameters = path["patch"]["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"), "{kind}");
            kinds += 1;
        }
        for reference in references(&document) {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.contains_key(name), "{reference} leads nowhere");
        }
    }
    assert!(kinds > 30, "{kinds} kinds");
}

fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, field)| match field.as_str() {
                Some(reference) if name == "$ref" => vec![reference],
                _ => references(field),
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_shows_how_old_objects_are_by_the_servers_clock() {
    let server = server();
    install_job(&server, "web");
    tokio::time::advance(Duration::from_hours(2 * 24 + 3)).await;
    install_job(&server, "young");
    let (_, _, table) = ask(&server, JOBS, TABLE).await;
    let heading =
        table["columnDefinitions"].as_array().unwrap().iter().position(|column| column["name"] == "AGE");
    let age = |row: usize| &table["rows"][row]["cells"][heading.unwrap()];
    assert_eq!((age(0), age(1)), (&json!("2d3h"), &json!("0s")));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn the_client_chooses_what_accompanies_the_cells() {
    let server = server();
    install_job(&server, "web");
    let beside = async |query: &str| {
        let (_, _, table) = ask(&server, &format!("{JOBS}/web?includeObject={query}"), TABLE).await;
        table["rows"][0]["object"].clone()
    };
    assert_eq!(beside("None").await, Value::Null);
    assert_eq!(beside("Metadata").await["metadata"]["name"], "web");
    assert_eq!(beside("Object").await["spec"]["image"], "nginx:1.25");
    let (code, _, _) = ask(&server, &format!("{JOBS}?includeObject=All"), TABLE).await;
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_watched_table_has_headings_once() {
    let server = server();
    install_job(&server, "a");
    install_job(&server, "b");
    let path = format!("{JOBS}?watch=true&timeoutSeconds=1");
    let request = Request::get(path).header("accept", TABLE).body(Full::new(Bytes::new())).unwrap();
    let text = server.oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let headings: Vec<bool> =
        events.iter().map(|event| event["object"]["columnDefinitions"].is_array()).collect();
    let names: Vec<&Value> = events.iter().map(|event| &event["object"]["rows"][0]["cells"][0]).collect();
    assert_eq!((headings, names), (vec![true, false], vec![&json!("a"), &json!("b")]));
}

#[tokio::test]
async fn only_metadata_can_be_asked_for() {
    let server = server();
    install_job(&server, "web");
    let jobs = kube::Api::<prewarm_api::kruise::ImagePullJob>::default_namespaced(server.client());
    let listed = jobs.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].metadata.name.as_deref(), Some("web"));
    assert_eq!(jobs.get_metadata("web").await.unwrap().types.unwrap().kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn an_unsupported_form_is_refused() {
    let server = server();
    for accept in ["text/html", "application/json;as=Table;v=v7;g=meta.k8s.io", "application/yaml"] {
        let (code, _, status) = ask(&server, JOBS, accept).await;
        assert_eq!((code, status["reason"].as_str()), (406, Some("NotAcceptable")), "{accept}");
    }
}
