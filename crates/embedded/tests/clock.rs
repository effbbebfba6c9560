//! The server takes the time from the clock that it was given.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use prewarm_embedded::{Clock, Options, Server, TokioClock};
use serde_json::json;

const BEGINNING: &str = "2030-02-28T12:00:00Z";

fn beginning() -> Timestamp {
    BEGINNING.parse().unwrap()
}

fn maps(server: &Server) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

fn map(name: &str) -> ConfigMap {
    let object = json!({ "metadata": { "name": name, "finalizers": ["example.org/held"] } });
    serde_json::from_value(object).unwrap()
}

fn version(object: &ConfigMap) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_clock_follows_paused_time() {
    let clock = TokioClock::starting_at(beginning());
    assert_eq!(clock.now(), beginning());
    tokio::time::advance(Duration::from_hours(24)).await;
    assert_eq!(clock.now().to_string(), "2030-03-01T12:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn objects_carry_the_simulated_time_of_their_creation() {
    let server = Server::new(Arc::new(TokioClock::starting_at(beginning())), Options::default());
    let api = maps(&server);
    for hour in 0..24 {
        let created = api.create(&PostParams::default(), &map(&format!("hour-{hour:02}"))).await.unwrap();
        let wanted = beginning() + Duration::from_hours(hour);
        assert_eq!(created.creation_timestamp().unwrap().0, wanted);
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    let deleted = api.delete("hour-00", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(deleted.metadata.deletion_timestamp.unwrap().0, beginning() + Duration::from_hours(24));
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(server.client());
    let namespace = namespaces.get("default").await.unwrap();
    assert_eq!(namespace.creation_timestamp().unwrap().0, beginning());
}

#[tokio::test(start_paused = true)]
async fn timestamps_have_whole_seconds() {
    let server = Server::new(Arc::new(TokioClock::starting_at(beginning())), Options::default());
    tokio::time::advance(Duration::from_millis(1999)).await;
    let created = maps(&server).create(&PostParams::default(), &map("one")).await.unwrap();
    assert_eq!(created.creation_timestamp().unwrap().0, beginning() + Duration::from_secs(1));
}

/// A clock that somebody sets.
struct SetClock(Mutex<Timestamp>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_affects_only_timestamps() {
    let clock = Arc::new(SetClock(Mutex::new(beginning())));
    let server = Server::new(clock.clone(), Options::default());
    let api = maps(&server);
    let watch = api.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap();
    let mut versions = Vec::new();
    let merge = PatchParams::default();
    for round in 0..10 {
        // Back by an hour each time, and at last to the beginning of time.
        let back = if round == 9 { Timestamp::UNIX_EPOCH } else { clock.now() - Duration::from_hours(1) };
        *clock.0.lock().unwrap() = back;
        let name = format!("round-{round}");
        let created = api.create(&PostParams::default(), &map(&name)).await.unwrap();
        assert_eq!(created.creation_timestamp().unwrap().0, back);
        let patch = Patch::Merge(json!({ "data": { "round": round.to_string() } }));
        let patched = api.patch(&name, &merge, &patch).await.unwrap();
        let deleted = api.delete(&name, &DeleteParams::default()).await.unwrap().left().unwrap();
        assert_eq!(deleted.metadata.deletion_timestamp.as_ref().unwrap().0, back);
        versions.extend([version(&created), version(&patched), version(&deleted)]);
    }
    assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
    let seen: Vec<WatchEvent<ConfigMap>> = watch.take(30).try_collect().await.unwrap();
    let seen = seen.iter().map(|event| match event {
        WatchEvent::Added(map) | WatchEvent::Modified(map) => version(map),
        other => panic!("{other:?}"),
    });
    assert_eq!(seen.collect::<Vec<_>>(), versions);
    // Pages and earlier versions are found by revision, never by time.
    let page = api.list(&ListParams::default().limit(3)).await.unwrap();
    let next = ListParams::default().limit(10).continue_token(&page.metadata.continue_.unwrap());
    assert_eq!(api.list(&next).await.unwrap().items.len(), 7);
}
