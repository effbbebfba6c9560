//! What a real server only does after a long time or under load: it forgets revisions, cuts off slow watchers, sends
//! bookmarks and deletes long chains.

#![expect(clippy::unwrap_used, reason = "the steps that tests share fail where they panic")]

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use prewarm_embedded::{Options, Server, TokioClock};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server(options: Options) -> Server {
    Server::new(Arc::new(TokioClock::of_the_machine()), options)
}

fn maps(server: &Server) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

async fn make(server: &Server, name: &str) -> ConfigMap {
    let map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    maps(server).create(&PostParams::default(), &map).await.unwrap()
}

async fn change(server: &Server, name: &str, value: usize) {
    let patch = Patch::Merge(json!({ "data": { "a": value.to_string() } }));
    maps(server).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn open(server: &Server, path: &str) -> (u16, Body) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = server.client().send(request).await.unwrap();
    (response.status().as_u16(), response.into_body())
}

async fn read(server: &Server, path: &str) -> (u16, Value) {
    let (code, body) = open(server, path).await;
    (code, serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap())
}

/// The next event of a watch, which is one frame, or none when the watch is over.
async fn event(watch: &mut Body) -> Option<Value> {
    let frame = watch.frame().await?.unwrap();
    Some(serde_json::from_slice(&frame.into_data().unwrap()).unwrap())
}

#[tokio::test]
async fn a_slow_watcher_is_cut_and_nobody_waits_for_it() {
    let server = server(Options { watch_buffer: 4, ..Options::default() });
    make(&server, "one").await;
    let (_, mut slow) = open(&server, &format!("{MAPS}?watch=true")).await;
    let (_, mut fast) = open(&server, &format!("{MAPS}?watch=true")).await;
    event(&mut fast).await.unwrap();
    for value in 0..20 {
        change(&server, "one", value).await;
        assert_eq!(event(&mut fast).await.unwrap()["object"]["data"]["a"], value.to_string());
    }
    let mut received = Vec::new();
    while let Some(event) = event(&mut slow).await {
        received.push(event["object"]["data"]["a"].clone());
    }
    assert_eq!(json!(received), json!([null, "0", "1", "2", "3"]));
}

#[tokio::test]
async fn a_list_that_continues_too_late_is_refused_with_another_token() {
    let server = server(Options { history_changes: 3, ..Options::default() });
    for name in ["a", "b", "c", "d"] {
        make(&server, name).await;
    }
    let (_, first) = read(&server, &format!("{MAPS}?limit=1")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    for value in 0..5 {
        change(&server, "a", value).await;
    }
    maps(&server).delete("c", &DeleteParams::default()).await.unwrap();
    let (code, status) = read(&server, &format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    assert!(status["message"].as_str().unwrap().starts_with("The provided continue parameter is too old"));
    let token = status["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = read(&server, &format!("{MAPS}?limit=9&continue={token}")).await;
    let names: Vec<&Value> =
        rest["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!((code, json!(names)), (200, json!(["b", "d"])));
}

#[tokio::test]
async fn a_forgotten_revision_is_not_listed() {
    let server = server(Options { history_changes: 3, ..Options::default() });
    let first = make(&server, "a").await.metadata.resource_version.unwrap();
    for value in 0..5 {
        change(&server, "a", value).await;
    }
    let path = format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=Exact");
    let (code, status) = read(&server, &path).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    assert_eq!(status["message"], "The resourceVersion for the provided list is too old.");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_says_so_and_ends() {
    let server = server(Options { history_changes: 3, ..Options::default() });
    let first = make(&server, "a").await.metadata.resource_version.unwrap();
    for value in 0..5 {
        change(&server, "a", value).await;
    }
    let (code, mut watch) = open(&server, &format!("{MAPS}?watch=true&resourceVersion={first}")).await;
    let said = event(&mut watch).await.unwrap();
    assert_eq!(code, 200);
    assert_eq!((&said["type"], &said["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event(&mut watch).await, None);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_follow_what_happens_elsewhere() {
    let server = server(Options::default());
    let path = format!("{MAPS}?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dquiet");
    let (_, mut watch) = open(&server, &path).await;
    event(&mut watch).await.unwrap();
    for minute in 1..=3 {
        let start = tokio::time::Instant::now();
        let made = make(&server, &format!("loud-{minute}")).await;
        let bookmark = event(&mut watch).await.unwrap();
        assert_eq!(bookmark["type"], "BOOKMARK");
        assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], json!(made.metadata.resource_version));
        assert_eq!(start.elapsed().as_secs(), 60);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_has_something_to_send_ends_in_time() {
    let server = server(Options::default());
    make(&server, "one").await;
    let (_, mut watch) = open(&server, &format!("{MAPS}?watch=true&timeoutSeconds=10")).await;
    let mut received = 0;
    while event(&mut watch).await.is_some() {
        received += 1;
        change(&server, "one", received).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!((9..=12).contains(&received), "{received} events in ten seconds");
}

#[tokio::test]
async fn ten_thousand_objects_in_a_chain_of_owners_go_with_the_first() {
    let server = server(Options::default());
    let api = maps(&server);
    let mut owner = make(&server, "map-0").await;
    for number in 1..10_000 {
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid,
        });
        let map = json!({ "metadata": { "name": format!("map-{number}"), "ownerReferences": [reference] } });
        let map = serde_json::from_value(map).unwrap();
        owner = api.create(&PostParams::default(), &map).await.unwrap();
    }
    api.delete("map-0", &DeleteParams::default()).await.unwrap();
    let (_, list) = read(&server, MAPS).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn an_object_is_serialised_once_however_many_watch_it() {
    let server = server(Options::default());
    make(&server, "one").await;
    let mut watches = Vec::new();
    for _ in 0..50 {
        watches.push(open(&server, &format!("{MAPS}?watch=true")).await.1);
    }
    let before = server.serialised_objects();
    for value in 0..10 {
        change(&server, "one", value).await;
    }
    for watch in &mut watches {
        for _ in 0..11 {
            event(watch).await.unwrap();
        }
    }
    assert_eq!(server.serialised_objects() - before, 10);
}
