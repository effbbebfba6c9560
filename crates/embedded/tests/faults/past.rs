//! Answers from an earlier revision, as from a replica that lags behind.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, GetParams, ListParams, VersionMatch, WatchEvent, WatchParams};
use prewarm_embedded::faults::{Action, Faults, Happened, ScriptedFault};
use prewarm_embedded::{Options, Server};

use super::steps::{always, any_version, change, create, maps, server, server_with, version};
/// A server on which `one` has had the values 0 to 9 and `two` was created in between.
async fn server_with_a_past() -> (Server, BTreeMap<u64, Vec<ConfigMap>>) {
    let server = server();
    let api = maps(server.client());
    let mut past = BTreeMap::new();
    create(&api, "one").await.unwrap();
    for value in 1..10 {
        let list = api.list(&ListParams::default()).await.unwrap();
        past.insert(list.metadata.resource_version.unwrap().parse().unwrap(), list.items);
        if value == 5 {
            create(&api, "two").await.unwrap();
        } else {
            change(&api, "one", value).await.unwrap();
        }
    }
    (server, past)
}

fn from_the_past(by: u64) -> Faults {
    always(|rates| {
        rates.stale = 1.0;
        rates.stale_by = by..=by;
    })
}

#[tokio::test(start_paused = true)]
async fn a_stale_list_equals_an_earlier_list() {
    let (server, past) = server_with_a_past().await;
    for by in 1..=past.len() as u64 {
        let faults = from_the_past(by);
        let list = maps(faults.client(&server)).list(&any_version()).await.unwrap();
        let revision = list.metadata.resource_version.unwrap().parse().unwrap();
        assert_eq!(list.items, past[&revision], "{by} revisions ago");
        assert_eq!(faults.journal()[0].happened, Happened::AnsweredStale(200, revision));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_object_can_be_older_or_missing_or_still_present() {
    let (server, _) = server_with_a_past().await;
    let old = maps(from_the_past(3).client(&server));
    let fresh = maps(server.client());
    let one = old.get_with("one", &GetParams::any()).await.unwrap();
    assert_eq!(version(&one), version(&fresh.get("one").await.unwrap()) - 3);
    let before = maps(from_the_past(5).client(&server));
    let error = before.get_with("two", &GetParams::any()).await.unwrap_err();
    let never = fresh.get("never").await.unwrap_err();
    let (kube::Error::Api(error), kube::Error::Api(never)) = (error, never) else { panic!("no Status") };
    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        serde_json::to_string(&never).unwrap().replace("never", "two")
    );
    fresh.delete("two", &DeleteParams::default()).await.unwrap();
    assert_eq!(old.get_with("two", &GetParams::any()).await.unwrap().name_any(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_read_is_never_older_than_it_allows() {
    let (server, past) = server_with_a_past().await;
    let floor = *past.keys().next_back().unwrap();
    let old = maps(from_the_past(1000).client(&server));
    let fresh = maps(server.client());
    let at_least = ListParams::default().matching(VersionMatch::NotOlderThan).at(&floor.to_string());
    let list = old.list(&at_least).await.unwrap();
    assert_eq!(list.metadata.resource_version.unwrap(), floor.to_string());
    // The client asks for the most recent state and gets it.
    assert_eq!(
        old.list(&ListParams::default()).await.unwrap().items,
        fresh.list(&ListParams::default()).await.unwrap().items
    );
    assert_eq!(old.get("one").await.unwrap(), fresh.get("one").await.unwrap());
    // A page continues at the same revision.
    let first = old.list(&ListParams::default().limit(1)).await.unwrap();
    let next = ListParams::default().limit(1).continue_token(&first.metadata.continue_.unwrap());
    assert_eq!(old.list(&next).await.unwrap().metadata.resource_version, first.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn reads_of_the_most_recent_state_are_old_only_if_the_plan_says_so() {
    let (server, past) = server_with_a_past().await;
    let faults = always(|rates| {
        rates.stale = 1.0;
        rates.stale_by = 2..=2;
        rates.stale_quorum_reads = true;
    });
    let list = maps(faults.client(&server)).list(&ListParams::default()).await.unwrap();
    let revision = list.metadata.resource_version.unwrap().parse().unwrap();
    assert_eq!(list.items, past[&revision]);
}

#[tokio::test(start_paused = true)]
async fn stale_pages_show_one_revision() {
    let (server, past) = server_with_a_past().await;
    let faults = Faults::scripted(vec![ScriptedFault::at(1, Action::Stale(3))]);
    let api = maps(faults.client(&server));
    let first = api.list(&ListParams::default().limit(1)).await.unwrap();
    let next = ListParams::default().limit(1).continue_token(&first.metadata.continue_.clone().unwrap());
    let second = api.list(&next).await.unwrap();
    let revision = first.metadata.resource_version.unwrap().parse().unwrap();
    assert_eq!([first.items, second.items].concat(), past[&revision]);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_the_server_has_forgotten_is_read_fresh() {
    let server = server_with(Options { history_changes: 3, ..Options::default() });
    let api = maps(server.client());
    create(&api, "one").await.unwrap();
    for value in 1..10 {
        change(&api, "one", value).await.unwrap();
    }
    let old = maps(from_the_past(8).client(&server));
    assert_eq!(old.get_with("one", &GetParams::any()).await.unwrap(), api.get("one").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_stale_watch_catches_up() {
    let (server, past) = server_with_a_past().await;
    let api = maps(from_the_past(4).client(&server));
    let present = past.keys().next_back().unwrap() + 1;
    let begin = present - 4;
    let way = WatchParams::default;
    let ways = [(way(), true), (way().initial_events(), true), (way().disable_bookmarks(), false)];
    for (params, has_end) in ways {
        let mut wanted: Vec<_> =
            past[&begin].iter().map(|map| format!("added {} {}", map.name_any(), version(map))).collect();
        wanted.extend(has_end.then(|| format!("bookmark {begin}")));
        wanted.extend((begin + 1..=present).map(|revision| format!("modified one {revision}")));
        let watch = api.watch(&params, "0").await.unwrap();
        let lines = watch.take(wanted.len()).map_ok(|event| match event {
            WatchEvent::Added(map) => format!("added {} {}", map.name_any(), version(&map)),
            WatchEvent::Modified(map) => format!("modified {} {}", map.name_any(), version(&map)),
            WatchEvent::Bookmark(mark) => format!("bookmark {}", mark.metadata.resource_version),
            other => panic!("{other:?}"),
        });
        assert_eq!(lines.try_collect::<Vec<_>>().await.unwrap(), wanted);
    }
}
